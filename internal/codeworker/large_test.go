package codeworker

import (
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
)

func TestAWorkspaceAtItsLimitsIsMountedTakenAndKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	began := time.Now()
	got := b.do("import os\nfor i in range(1999):\n os.makedirs(f'workspace/d{i%50}',exist_ok=True)\n open(f'workspace/d{i%50}/{i}.txt','w').write(f'file {i}\\n')\n"+
		"open('workspace/big.bin','wb').write(b'\\0\\1\\2\\3'*(15<<20))", nil)
	t.Logf("made in %s", time.Since(began))
	if got.Status != call.OK || len(got.Changes.Created) != 2000 {
		t.Fatalf("%s %s, %d created\n%.500s", got.Status, got.Code, len(got.Changes.Created), got.text)
	}
	began = time.Now()
	got = b.do("import os,hashlib\nn=sum(len(f) for _,_,f in os.walk('workspace'))\nprint(n, os.path.getsize('workspace/big.bin'))\n"+
		"print(open('workspace/big.bin','rb').read()==b'\\0\\1\\2\\3'*(15<<20))\nos.remove('workspace/d0/0.txt')", nil)
	t.Logf("mounted and taken in %s", time.Since(began))
	if got.data.Stdout != "2000 62914560\nTrue\n" || strings.Join(got.Changes.Deleted, " ") != "d0/0.txt" || len(got.Changes.Created)+len(got.Changes.Modified) != 0 {
		t.Errorf("stdout %q, changes %+v\n%s", got.data.Stdout, got.Changes, got.data.Stderr)
	}
}

func TestOutputOfAnyKindIsReturned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	got := b.do("print('\\0\\x1b[31m\\u2028<script>', end='')", nil)
	if want := "\x00\x1b[31m\u2028<script>"; got.data.Stdout != want || got.Status != call.OK {
		t.Errorf("stdout %q, want %q", got.data.Stdout, want)
	}
	got = b.do("import sys\nprint('o'*9000); print('e'*9000,file=sys.stderr)", nil)
	if len(got.data.Stdout) > 8300 || len(got.data.Stderr) > 8300 || !strings.Contains(got.data.Stdout, "[cut here: ") {
		t.Errorf("%d and %d bytes are told", len(got.data.Stdout), len(got.data.Stderr))
	}
	if got.stored.Stdout != strings.Repeat("o", 9000)+"\n" || got.stored.Stderr != strings.Repeat("e", 9000)+"\n" {
		t.Errorf("%d and %d bytes are stored", len(got.stored.Stdout), len(got.stored.Stderr))
	}
	if !strings.Contains(got.whole, strings.Repeat("o", 9000)) || !strings.Contains(got.whole, strings.Repeat("e", 9000)) {
		t.Error("the stored text is not whole")
	}
	if !strings.Contains(got.text, got.ResultRef) || len(got.text) > 8500 {
		t.Errorf("the told text has %d bytes", len(got.text))
	}
}
