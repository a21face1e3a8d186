package codeworker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"strconv"
	"strings"
	"testing"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

// given are inputs that open whatever a test says.
type given struct {
	plan Plan
	err  error
}

func (g *given) Resolve(context.Context, turn.Turn, catalogue.RunCode) (Plan, error) {
	return g.plan, g.err
}

func mountOf(path, content string) Mount {
	return Mount{Path: path, Size: int64(len(content)), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

func TestInputsAreMountedReadOnlyAndTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := &given{plan: Plan{
		Mounts: []Mount{mountOf("inputs/files/sales.csv", "n\n1\n2\n"), mountOf("skills/sk/scripts/x.py", "print('from the skill')")},
		Inputs: []Input{{Kind: InputFile, ID: "up-1", Path: "inputs/files/sales.csv", Bytes: 6, Note: "numbered"},
			{Kind: InputSkill, ID: "sk", Path: "skills/sk", Bytes: 23}},
	}}
	b.start(in, testConfig())
	got := b.do("import subprocess,sys\nprint(open('inputs/files/sales.csv').read())\n"+
		"print(subprocess.run([sys.executable,'skills/sk/scripts/x.py'],capture_output=True,text=True).stdout)\n"+
		"for p in ('inputs/x','inputs/files/sales.csv','skills/sk/y'):\n try: open(p,'w'); print('wrote')\n except OSError as e: print('refused')", nil)
	if want := "n\n1\n2\n\nfrom the skill\n\nrefused\nrefused\nrefused\n"; got.data.Stdout != want {
		t.Errorf("stdout %q, want %q", got.data.Stdout, want)
	}
	if len(got.data.Inputs) != 2 || got.data.Inputs[0] != in.plan.Inputs[0] || got.data.Inputs[1] != in.plan.Inputs[1] {
		t.Errorf("inputs: %+v", got.data.Inputs)
	}
	if !strings.Contains(got.text, "Mounted: inputs/files/sales.csv (numbered), skills/sk.") {
		t.Error(got.text)
	}
	if len(got.data.Outside) != 0 || !got.Changes.Empty() {
		t.Errorf("outside %q, changes %+v", got.data.Outside, got.Changes)
	}
}

func TestInputsPastTheLimitAreRefusedBeforeAByteIsRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, limits(func(l *workspace.Limits) { l.InputBytes = 10 }))
	in := &given{plan: Plan{Mounts: []Mount{mountOf("inputs/a", "123456"), mountOf("inputs/b", "12345")}}}
	for i := range in.plan.Mounts {
		in.plan.Mounts[i].Open = func(context.Context) (io.ReadCloser, error) {
			t.Error("it was opened")
			return nil, errors.New("opened")
		}
	}
	b.start(in, testConfig())
	got := b.do("open('workspace/a','w').write('1')", nil)
	if got.Status != call.Refused || got.Code != call.InputsTooLarge || !strings.Contains(got.text, "11 bytes") {
		t.Errorf("%s %s\n%s", got.Status, got.Code, got.text)
	}
	if files := b.files(); len(files) != 0 {
		t.Errorf("files: %q", files)
	}
}

func TestWhatOneKindOfInputIsRefusedWith(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args catalogue.RunCode
		says string
	}{
		{catalogue.RunCode{Files: []catalogue.RunFile{{ID: "x"}}}, `There is no upload "x"`},
		{catalogue.RunCode{Artifacts: []catalogue.RunArtifact{{ID: "x"}}}, `There is no artifact "x"`},
		{catalogue.RunCode{ToolResults: []string{"x"}}, `There is no stored result "x"`},
		{catalogue.RunCode{Skills: []string{"x"}}, `There is no skill "x"`},
	} {
		_, err := NoInputs{}.Resolve(t.Context(), turn.Turn{}, c.args)
		var refusal *call.Refusal
		if !errors.As(err, &refusal) || refusal.Code != call.InputNotFound || !strings.HasPrefix(refusal.Text, c.says) {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
	if _, err := (NoInputs{}).Resolve(t.Context(), turn.Turn{}, catalogue.RunCode{}); err != nil {
		t.Error(err)
	}
}

func TestFilesOfManyPiecesAreMountedWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	files := map[string]string{"exact": strings.Repeat("x", 2<<20), "over": strings.Repeat("ab", 1<<20) + "c", "empty": ""}
	for _, name := range strings.Fields("a b c d e f") {
		files["small/"+name] = strings.Repeat(name, 1<<20)
	}
	b.seed(files)
	want := maps.Clone(files)
	got := b.do("import os\nfor d,_,f in os.walk('workspace'):\n for n in f:\n  p=os.path.join(d,n); s=open(p).read(); print(p,len(s),s.count(s[:1]) if s else 0)", nil)
	for path, content := range want {
		line := "workspace/" + path + " " + strconv.Itoa(len(content)) + " "
		if !strings.Contains(got.data.Stdout, line) {
			t.Errorf("%q is not in %s", line, got.data.Stdout)
		}
	}
	if !got.Changes.Empty() || !maps.Equal(b.files(), want) {
		t.Errorf("changes: %+v", got.Changes)
	}
}

func TestAManyPiecesFileIsReadPieceByPiece(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	content := strings.Repeat("x", 3<<20) + "end"
	b.seed(map[string]string{"big": content})
	w := New(b.ledger, b.queue, b.teller, b.driver, NoInputs{}, testConfig(), b.log)
	e := workspace.NewEntry("big", []byte(content), 1)
	r := &run{Worker: w}
	r.work.Key.Conversation = b.turn.Conversation
	got, err := io.ReadAll(&pieces{ctx: t.Context(), run: r, sum: e.SHA256, left: e.Bytes})
	if err != nil || !bytes.Equal(got, []byte(content)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
