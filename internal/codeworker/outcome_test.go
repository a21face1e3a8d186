package codeworker

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"treeline/internal/call"
	"treeline/internal/workspace"
)

func paths(p ...string) []string { return append([]string{}, p...) }

// outcomeCase is one run over a workspace, and all that comes of it.
type outcomeCase struct {
	name   string
	before map[string]string
	code   string
	more   map[string]any

	status  call.Status
	coded   call.Code
	changes call.Changes
	after   map[string]string
	says    []string
	stdout  string
	exit    int
	ignored []string
	outside []string
}

var outcomeCases = []outcomeCase{
	{
		name: "prints", code: "print(6*7)", status: call.OK, stdout: "42\n", after: map[string]string{},
		says: []string{"ran to its end", "\nstdout:\n42"},
	},
	{
		name: "says nothing", code: "x = 1", status: call.OK, after: map[string]string{}, says: []string{"It printed nothing."},
	},
	{
		name:   "creates, modifies and deletes",
		before: map[string]string{"m.txt": "m", "d.txt": "d", "same.txt": "same"},
		code: "import os\nos.makedirs('workspace/n')\nopen('workspace/n/new.txt','w').write('1')\nopen('workspace/m.txt','a').write('!')\n" +
			"os.remove('workspace/d.txt')\nopen('workspace/same.txt','w').write('same')",
		status:  call.OK,
		changes: call.Changes{Created: paths("n/new.txt"), Modified: paths("m.txt"), Deleted: paths("d.txt")},
		after:   map[string]string{"m.txt": "m!", "same.txt": "same", "n/new.txt": "1"},
		says:    []string{"Created: n/new.txt.", "Modified: m.txt.", "Deleted: d.txt."},
	},
	{
		name: "other bytes of the same size and time", before: map[string]string{"a": "1"},
		code:   "import os\ns=os.stat('workspace/a')\nopen('workspace/a','w').write('2')\nos.utime('workspace/a',ns=(s.st_atime_ns,s.st_mtime_ns))",
		status: call.OK, changes: call.Changes{Modified: paths("a")}, after: map[string]string{"a": "2"},
	},
	{
		name: "raised", code: "open('workspace/half.txt','w').write('h')\n1/0", status: call.Failed, coded: call.Raised, exit: 1,
		changes: call.Changes{Created: paths("half.txt")}, after: map[string]string{"half.txt": "h"},
		says: []string{"Traceback (most recent call last):\n  File \"main.py\", line 2, in <module>\n    1/0", "ZeroDivisionError: division by zero",
			"is kept"},
	},
	{
		name: "left with a code", code: "import sys; sys.exit(3)", status: call.Failed, coded: call.Raised, exit: 3, after: map[string]string{},
		says: []string{"exit code 3", "changed nothing"},
	},
	{
		name: "died of a signal", code: "import os; os.kill(os.getpid(), 11)", status: call.Failed, coded: call.Raised, exit: 139,
		after: map[string]string{}, says: []string{"signal 11"},
	},
	{
		name: "timeout", code: "open('workspace/a','w').write('1')\nimport time\ntime.sleep(60)", more: map[string]any{"timeoutSeconds": 1},
		status: call.Failed, coded: call.Timeout, exit: 137, changes: call.Changes{Created: paths("a")}, after: map[string]string{"a": "1"},
		says: []string{"stopped after 1 s, its time limit", "is kept"},
	},
	{
		name: "removes everything", before: map[string]string{"a": "1", "b/c": "2"},
		code:   "import shutil,os\nfor f in os.listdir('workspace'):\n p='workspace/'+f\n shutil.rmtree(p) if os.path.isdir(p) else os.remove(p)",
		status: call.OK, changes: call.Changes{Deleted: paths("a", "b/c")}, after: map[string]string{},
	},
	{
		name: "removes the folder itself", before: map[string]string{"a": "1"}, code: "import shutil; shutil.rmtree('workspace')",
		status: call.OK, changes: call.Changes{Deleted: paths("a")}, after: map[string]string{},
	},
	{
		name: "puts a link in the folder's place", before: map[string]string{"a": "1"},
		code:   "import shutil,os; shutil.rmtree('workspace'); os.symlink('/tmp', 'workspace')",
		status: call.Failed, coded: call.TreeUnreadable, after: map[string]string{"a": "1"}, says: []string{"could not be read whole", "as it was"},
	},
	{
		name: "a file in a folder's place", before: map[string]string{"a/b": "1"},
		code:   "import shutil; shutil.rmtree('workspace/a'); open('workspace/a','w').write('2')",
		status: call.OK, changes: call.Changes{Created: paths("a"), Deleted: paths("a/b")}, after: map[string]string{"a": "2"},
	},
	{
		name: "left outside", code: "import os\nopen('out.csv','w').write('1'); os.makedirs('d'); open('d/e','w').write('1')", status: call.OK,
		outside: paths("d/e", "out.csv"), after: map[string]string{}, says: []string{"Left outside workspace/ and gone: d/e, out.csv."},
	},
	{
		name: "links and pipes", code: "import os\nos.symlink('/etc/passwd','workspace/l'); os.mkfifo('workspace/p'); open('workspace/k','w').write('1')",
		status: call.OK, changes: call.Changes{Created: paths("k")}, after: map[string]string{"k": "1"}, ignored: paths("l", "p"),
		says: []string{"Not kept: l (it is a symbolic link), p (it is a named pipe)."},
	},
	{
		name: "a link in a file's place", before: map[string]string{"a": "1"}, code: "import os; os.remove('workspace/a'); os.symlink('b','workspace/a')",
		status: call.OK, changes: call.Changes{Deleted: paths("a")}, after: map[string]string{}, ignored: paths("a"),
	},
	{
		name: "names that are no path here",
		code: "import os\nfor n in (b'workspace/\\xff.txt', b'workspace/a\\\\b', b'workspace/new\\nline'):\n open(n,'w').write('1')\n" +
			"os.makedirs('workspace/workspace/x')\nopen('workspace/workspace/x/y','w').write('1')",
		status: call.OK, after: map[string]string{}, ignored: paths(`\xff.txt`, "a\\b", "new\nline", "workspace/x/y"),
	},
	{
		name: "two names that are one path", code: "open('workspace/e\\u0301','w').write('decomposed'); open('workspace/\\u00e9','w').write('composed')",
		status: call.OK, changes: call.Changes{Created: paths("é")}, after: map[string]string{"é": "composed"}, ignored: paths("e\u0301"),
	},
	{
		name: "a decomposed name is composed", before: map[string]string{"é": "1"},
		code:   "import os; os.remove('workspace/\\u00e9'); open('workspace/e\\u0301','w').write('2')",
		status: call.OK, changes: call.Changes{Modified: paths("é")}, after: map[string]string{"é": "2"},
	},
	{
		name: "look-alikes are kept", before: map[string]string{"a.txt": "1"}, code: "open('workspace/A.txt','w').write('2')", status: call.OK,
		changes: call.Changes{Created: paths("A.txt")}, after: map[string]string{"a.txt": "1", "A.txt": "2"},
	},
	{
		name: "files that their owner may not read", before: map[string]string{"a": "1"},
		code:   "import os\nopen('workspace/b','w').write('2')\nos.chmod('workspace/b',0)\nos.chmod('workspace/a',0)\nos.chmod('workspace',0)",
		status: call.OK, changes: call.Changes{Created: paths("b")}, after: map[string]string{"a": "1", "b": "2"},
	},
	{
		name: "bytes that are not text", code: "import sys\nsys.stdout.buffer.write(b'\\xff\\n'); print('after')", status: call.OK, stdout: "\ufffd\nafter\n",
		after: map[string]string{}, says: []string{"after"},
	},
	{
		name: "paths are those that the model knows", before: map[string]string{"m.py": "def f():\n    open('/work/workspace/none')\n"},
		code:   "import sys; sys.path.insert(0,'/work/workspace')\nimport m\nm.f()",
		status: call.Failed, coded: call.Raised, exit: 1, after: map[string]string{"m.py": "def f():\n    open('/work/workspace/none')\n"},
		says: []string{`File "workspace/m.py", line 2, in f`, "No such file or directory: 'workspace/none'"},
	},
	{
		name: "an input that is not there", code: "print(1)", more: map[string]any{"files": []any{map[string]any{"id": "up-1"}}},
		status: call.Refused, coded: call.InputNotFound, after: map[string]string{}, says: []string{`"up-1"`},
	},
}

func TestARunIsMadeIntoOneOutcome(t *testing.T) {
	driver := newDriver(t)
	for _, c := range outcomeCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, driven(driver))
			b.start(NoInputs{}, testConfig())
			if c.before != nil {
				b.seed(c.before)
			}
			c.check(t, b, b.do(c.code, c.more))
		})
	}
}

func (c outcomeCase) check(t *testing.T, b *bench, got answer) {
	t.Helper()
	if got.Status != c.status || got.Code != c.coded || got.IsError != (c.status != call.OK) {
		t.Errorf("status %s, code %q, isError %v; want %s, %q\n%s", got.Status, got.Code, got.IsError, c.status, c.coded, got.text)
	}
	if !reflect.DeepEqual(got.Changes, c.changes.Normal()) {
		t.Errorf("changes: %+v, want %+v", got.Changes, c.changes)
	}
	if files := b.files(); !maps.Equal(files, c.after) {
		t.Errorf("files: %q, want %q", files, c.after)
	}
	for _, part := range c.says {
		if !strings.Contains(got.text, part) {
			t.Errorf("the text lacks %q:\n%s", part, got.text)
		}
	}
	if c.status == call.Refused {
		return
	}
	if got.data.ExitCode != c.exit || (c.stdout != "" && got.data.Stdout != c.stdout) {
		t.Errorf("exit code %d, stdout %q; want %d, %q", got.data.ExitCode, got.data.Stdout, c.exit, c.stdout)
	}
	var ignored []string
	for _, i := range got.data.Ignored {
		ignored = append(ignored, i.Path)
		if i.Reason == "" {
			t.Errorf("%s is ignored without a reason", i.Path)
		}
	}
	if !slices.Equal(ignored, c.ignored) || !slices.Equal(got.data.Outside, c.outside) {
		t.Errorf("ignored %q, outside %q; want %q, %q", ignored, got.data.Outside, c.ignored, c.outside)
	}
	for _, path := range slices.Concat(c.changes.Created, c.changes.Modified) {
		if got.data.Revisions[path] != got.Seq {
			t.Errorf("data.revisions of %s: %d, want %d", path, got.data.Revisions[path], got.Seq)
		}
	}
	if want := len(c.changes.Created) + len(c.changes.Modified); len(got.data.Revisions) != want {
		t.Errorf("data.revisions has %d paths, want %d", len(got.data.Revisions), want)
	}
}

func TestUnchangedFilesKeepTheirRecords(t *testing.T) {
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	first := b.seed(map[string]string{"a": "1", "b": "2"})
	got := b.do("open('workspace/b','w').write('3'); open('workspace/a','w').write('1')", nil)
	if r := b.revisions(); r["a"] != first || r["b"] != got.Seq {
		t.Errorf("revisions %v, want a at %d, b at %d", r, first, got.Seq)
	}
}

func TestATreePastTheLimitsIsNotKept(t *testing.T) {
	small := limits(func(l *workspace.Limits) { l.WorkspaceBytes, l.WorkspaceFiles = 1000, 3 })
	driver := newDriver(t)
	for _, c := range []struct{ name, code string }{
		{"bytes", "open('workspace/big','w').write('x'*1001)\nprint('said')"},
		{"files", "for i in range(4): open(f'workspace/{i}','w').write('x')\nprint('said')"},
		{"more files than the sandbox gives", "for i in range(1200): open(f'workspace/{i}','w').write('x')\nprint('said')"},
		{"after it raised", "open('workspace/big','w').write('x'*1001)\nprint('said')\n1/0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, small, driven(driver))
			b.start(NoInputs{}, testConfig())
			b.seed(map[string]string{"a": "1"})
			got := b.do(c.code, nil)
			if got.Status != call.Failed || got.Code != call.WorkspaceFull || !got.Changes.Empty() || got.data.Stdout != "said\n" {
				t.Errorf("%s %s, changes %+v, stdout %q\n%s", got.Status, got.Code, got.Changes, got.data.Stdout, got.text)
			}
			if files := b.files(); !maps.Equal(files, map[string]string{"a": "1"}) {
				t.Errorf("files: %q", files)
			}
		})
	}
}

func TestRunningOutOfMemoryKeepsAWholeTree(t *testing.T) {
	b := newBench(t, limits(func(l *workspace.Limits) { l.RunMemoryBytes = 200 << 20 }))
	b.start(NoInputs{}, testConfig())
	got := b.do("open('workspace/a','w').write('1')\nx = bytearray(400<<20)\nfor i in range(0,len(x),4096): x[i]=1\nimport time; time.sleep(20)", nil)
	if got.Status != call.Failed || got.Code != call.OutOfMemory || !strings.Contains(got.text, "200 MiB of memory") {
		t.Errorf("%s %s\n%s", got.Status, got.Code, got.text)
	}
	if files := b.files(); !maps.Equal(files, map[string]string{"a": "1"}) {
		t.Errorf("files: %q", files)
	}
}
