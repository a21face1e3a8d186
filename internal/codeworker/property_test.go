package codeworker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"treeline/internal/call"
)

// mutates does random things to the tree, the seed put before it, then prints the hash of every regular file there is.
const mutates = `
import os,random,shutil,hashlib,json
random.seed(seed)
names=['a','b','c.txt','d.bin','é','F','x y','-','..z']
def folders(): return [d for d,_,_ in os.walk('workspace')]
def files(): return [os.path.join(d,f) for d,_,fs in os.walk('workspace') for f in fs]
for _ in range(random.randint(1,60)):
    try:
        kind=random.randrange(8)
        into=os.path.join(random.choice(folders()),random.choice(names))
        if kind<3: open(into,'wb').write(random.choice([b'',b'text\n',os.urandom(9),b'long'*70000]))
        elif kind==3: os.makedirs(into)
        elif kind==4: os.remove(random.choice(files()))
        elif kind==5: shutil.rmtree(random.choice(folders()[1:]))
        elif kind==6: os.rename(random.choice(files()),into)
        else: os.symlink('a',into)
    except (OSError,IndexError): pass
seen={f[10:]:hashlib.sha256(open(f,'rb').read()).hexdigest() for f in files() if not os.path.islink(f)}
if fails: print(json.dumps(seen)); raise SystemExit(1)
print(json.dumps(seen))
`

func TestTheWorkspaceIsAfterwardsWhatTheProgramLastSaw(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	before := map[string]string{}
	for seed := range 25 {
		fails := seed%3 == 0
		got := b.do(fmt.Sprintf("seed=%d; fails=%d\n", seed, map[bool]int{true: 1}[fails])+mutates, nil)
		if (got.Code == call.Raised) != fails || got.stored.Stdout == "" {
			t.Fatalf("seed %d: %s %s\n%s", seed, got.Status, got.Code, got.text)
		}
		var want map[string]string
		if err := json.Unmarshal([]byte(got.stored.Stdout), &want); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		after := map[string]string{}
		for path, content := range b.files() {
			sum := sha256.Sum256([]byte(content))
			after[path] = hex.EncodeToString(sum[:])
		}
		if !maps.Equal(after, want) {
			t.Fatalf("seed %d: the workspace has %v, the program saw %v", seed, after, want)
		}
		checkChanges(t, seed, got, before, after)
		before = after
	}
}

// checkChanges holds the changes that a result names against the difference of the workspace before and after.
func checkChanges(t *testing.T, seed int, got answer, before, after map[string]string) {
	t.Helper()
	named := map[string]string{}
	for op, list := range map[string][]string{"created": got.Changes.Created, "modified": got.Changes.Modified, "deleted": got.Changes.Deleted} {
		for _, path := range list {
			named[path] = op
		}
	}
	want := map[string]string{}
	for path, sum := range after {
		if old, there := before[path]; !there {
			want[path] = "created"
		} else if old != sum {
			want[path] = "modified"
		}
	}
	for path := range before {
		if _, still := after[path]; !still {
			want[path] = "deleted"
		}
	}
	if !maps.Equal(named, want) {
		t.Errorf("seed %d: changes %v, want %v", seed, named, want)
	}
}
