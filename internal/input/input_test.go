package input_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"treeline/internal/artifact"
	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/codeworker"
	"treeline/internal/devenv/devtest"
	"treeline/internal/input"
	"treeline/internal/ledger"
	"treeline/internal/skill"
	"treeline/internal/store"
	"treeline/internal/turn"
	"treeline/internal/upload"
	"treeline/internal/workspace"
)

func TestMain(m *testing.M) { devtest.Main(m) }

type bench struct {
	t    *testing.T
	db   *devtest.Database
	turn turn.Turn
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, db: devtest.Postgres(t, store.Migrate)}
	if _, err := ledger.New(b.db.Pool, ledger.DefaultConfig()).PutConversation(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	b.turn = turn.Turn{ID: "t1", Conversation: "k1", Generation: 1,
		Caller: turn.Caller{User: "u1", Department: "d1", Collections: []string{"col1"}}}
	return b
}

func (b *bench) upload(id, collection, name, content string) {
	b.t.Helper()
	if _, _, err := upload.New(b.db.Pool).Put(b.t.Context(), id, collection, name, strings.NewReader(content)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) passages(id, body string) {
	b.t.Helper()
	if _, err := upload.New(b.db.Pool).PutPassages(b.t.Context(), id, strings.NewReader(body)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) artifact(id string, kind artifact.Kind, title, owner, content string) {
	b.t.Helper()
	p := artifact.Put{ID: id, Kind: kind, Title: title, Owner: owner, Department: "d9"}
	if _, _, err := artifact.New(b.db.Pool).Put(b.t.Context(), p, strings.NewReader(content)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) share(id string, shares ...artifact.Share) {
	b.t.Helper()
	if err := artifact.New(b.db.Pool).SetShares(b.t.Context(), id, shares); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) result(ref, output string) {
	b.t.Helper()
	_, err := store.PutResult(b.t.Context(), b.db.Pool, "k1", store.StoredResult{Ref: ref, ToolName: "fetch", IsError: true, Output: json.RawMessage(output)})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) skill(name string, files map[string]string) {
	b.t.Helper()
	var body bytes.Buffer
	w := zip.NewWriter(&body)
	for path, content := range files {
		f, err := w.Create(path)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.t.Fatal(err)
	}
	if _, _, err := skill.New(b.db.Pool, 16<<20).Put(b.t.Context(), name, &body); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) resolve(args catalogue.RunCode, limits workspace.Limits) (codeworker.Plan, *call.Refusal) {
	b.t.Helper()
	plan, err := input.New(b.db.Pool, limits).Resolve(b.t.Context(), b.turn, args)
	var r *call.Refusal
	if errors.As(err, &r) {
		if len(plan.Mounts)+len(plan.Inputs) > 0 {
			b.t.Error("mounts came with a refusal")
		}
		return plan, r
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return plan, nil
}

// mounted gives what code would find, by path.
func (b *bench) mounted(args catalogue.RunCode) map[string]string {
	b.t.Helper()
	plan, refusal := b.resolve(args, workspace.DefaultLimits())
	if refusal != nil {
		b.t.Fatal(refusal)
	}
	got := map[string]string{}
	for _, m := range plan.Mounts {
		r, err := m.Open(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil || int64(len(content)) > m.Size {
			b.t.Fatalf("%s: %d bytes of at most %d, error %v", m.Path, len(content), m.Size, err)
		}
		if _, twice := got[m.Path]; twice {
			b.t.Errorf("%s is mounted twice", m.Path)
		}
		got[m.Path] = string(content)
	}
	return got
}

func files(ids ...string) []catalogue.RunFile {
	var out []catalogue.RunFile
	for _, id := range ids {
		out = append(out, catalogue.RunFile{ID: id, Shape: catalogue.ShapeFile})
	}
	return out
}

func number(n int) *int { return &n }

func expect(t *testing.T, got, want map[string]string) {
	t.Helper()
	for path, content := range want {
		if c, ok := got[path]; !ok || c != content {
			t.Errorf("%s has %.100q (%t), want %.100q", path, c, ok, content)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is mounted too", path)
		}
	}
}

func TestEverythingIsMountedInItsPlace(t *testing.T) {
	b := newBench(t)
	b.turn.Knowledge, b.turn.Skills = []string{"up-2"}, []string{"sk"}
	big := strings.Repeat("0123456789", 150_000)
	b.upload("up-1", "col1", "sales.csv", "n\n1\n")
	b.upload("up-2", "other", "big.bin", big)
	b.passages("up-1", `[{"text":"first"},{"text":"second"}]`)
	b.artifact("ar-d", artifact.Document, "Plan", "u1", "# Plan")
	b.artifact("ar-c", artifact.Chart, "Chart", "u1", "{}")
	b.artifact("ar-w", artifact.Web, "Page", "u1", "<p>")
	b.artifact("ar-t", artifact.Text, "T", "u1", "text")
	b.artifact("ar-f", artifact.File, "x.tar.gz", "u1", "\x1f\x8b")
	b.artifact("ar-d", "", "", "", "# Plan 2")
	b.result("r-a", `{"n": 1, "h": "<b>"}`)
	b.result("r-b", `"text"`)
	b.skill("sk", map[string]string{"SKILL.md": "# S", "scripts/x.py": "print(1)", "z": big})

	got := b.mounted(catalogue.RunCode{
		Files: append(files("up-1", "up-2"), catalogue.RunFile{ID: "up-1", Shape: catalogue.ShapePassages}),
		Artifacts: []catalogue.RunArtifact{{ID: "ar-d"}, {ID: "ar-c"}, {ID: "ar-w"}, {ID: "ar-t"}, {ID: "ar-f"},
			{ID: "ar-d", Version: number(1)}, {ID: "ar-d", Version: number(2)}},
		ToolResults: []string{"r-b", "r-a", "r-b"}, Skills: []string{"sk", "sk"},
	})
	expect(t, got, map[string]string{
		"inputs/files/sales.csv": "n\n1\n", "inputs/files/big.bin": big,
		"inputs/passages/sales.csv.json": `[{"text":"first"},{"text":"second"}]`,
		"inputs/artifacts/ar-d.md":       "# Plan 2", "inputs/artifacts/ar-d (2).md": "# Plan", "inputs/artifacts/ar-c.json": "{}",
		"inputs/artifacts/ar-w.html": "<p>", "inputs/artifacts/ar-t.txt": "text", "inputs/artifacts/ar-f.tar.gz": "\x1f\x8b",
		"inputs/tool-results/1.json": `{"ref":"r-b","toolName":"fetch","isError":true,"output":"text"}` + "\n",
		"inputs/tool-results/2.json": `{"ref":"r-a","toolName":"fetch","isError":true,"output":{"n": 1, "h": "<b>"}}` + "\n",
		"inputs/tool-results/3.json": `{"ref":"r-b","toolName":"fetch","isError":true,"output":"text"}` + "\n",
		"skills/sk/SKILL.md":         "# S", "skills/sk/scripts/x.py": "print(1)", "skills/sk/z": big,
	})
}

func TestNamesAreMadeSafeAndUnique(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("é", 200)
	names := []string{"a.csv", "a.csv", "a (2).csv", "../../etc/passwd", "..", "a/b\\c\n.txt", "", ".hidden", long + ".txt", long + ".txt", "A.csv"}
	var ids []string
	for i, name := range names {
		id := fmt.Sprintf("up-%02d", i)
		b.upload(id, "col1", name, id)
		ids = append(ids, id)
	}
	got := b.mounted(catalogue.RunCode{Files: files(ids...)})
	expect(t, got, map[string]string{
		"inputs/files/a.csv": "up-00", "inputs/files/a (3).csv": "up-01", "inputs/files/a (2).csv": "up-02",
		"inputs/files/.._.._etc_passwd": "up-03", "inputs/files/___": "up-04", "inputs/files/a_b_c_.txt": "up-05", "inputs/files/up-06": "up-06",
		"inputs/files/.hidden": "up-07", "inputs/files/" + strings.Repeat("é", 125) + ".txt": "up-08",
		"inputs/files/" + strings.Repeat("é", 123) + " (2).txt": "up-09", "inputs/files/A.csv": "up-10",
	})
	plan, _ := b.resolve(catalogue.RunCode{Files: files(ids...)}, workspace.DefaultLimits())
	told := map[string]bool{}
	for _, in := range plan.Inputs {
		told[in.ID] = in.Note != ""
	}
	for i, id := range ids {
		if want := slices.Contains([]int{1, 3, 4, 5, 8, 9}, i); told[id] != want {
			t.Errorf("that %q has another name is told: %t, want %t", names[i], told[id], want)
		}
	}
}

// Whoever asks for what is not his learns nothing from the words.
func TestWhatDoesNotResolveReadsTheSame(t *testing.T) {
	for _, c := range []struct {
		name string
		args catalogue.RunCode
		make func(b *bench)
	}{
		{"a file", catalogue.RunCode{Files: files("x")}, func(b *bench) { b.upload("x", "other", "s", "1") }},
		{"a file in no collection", catalogue.RunCode{Files: files("x")}, func(b *bench) { b.upload("x", "", "s", "1") }},
		{"passages", catalogue.RunCode{Files: []catalogue.RunFile{{ID: "x", Shape: catalogue.ShapePassages}}}, func(b *bench) {
			b.upload("x", "other", "s", "1")
			b.passages("x", "[]")
		}},
		{"an artifact", catalogue.RunCode{Artifacts: []catalogue.RunArtifact{{ID: "x"}}}, func(b *bench) {
			b.artifact("x", artifact.Text, "T", "u9", "1")
		}},
		{"an artifact shared with others", catalogue.RunCode{Artifacts: []catalogue.RunArtifact{{ID: "x"}}}, func(b *bench) {
			b.artifact("x", artifact.Text, "T", "u9", "1")
			b.share("x", artifact.Share{User: "d1", Right: "read"}, artifact.Share{Department: "u1", Right: "change"})
		}},
		{"a version of an artifact", catalogue.RunCode{Artifacts: []catalogue.RunArtifact{{ID: "x", Version: number(2)}}}, func(b *bench) {
			b.artifact("x", artifact.Text, "T", "u1", "1")
		}},
		{"a result of another conversation", catalogue.RunCode{ToolResults: []string{"x"}}, func(b *bench) {
			_, err := b.db.Pool.Exec(b.t.Context(), `INSERT INTO conversations (id) VALUES ('k2')`)
			if err == nil {
				_, err = store.PutResult(b.t.Context(), b.db.Pool, "k2", store.StoredResult{Ref: "x", Output: json.RawMessage("1")})
			}
			if err != nil {
				b.t.Fatal(err)
			}
		}},
		{"a skill", catalogue.RunCode{Skills: []string{"x"}}, func(b *bench) { b.skill("x", map[string]string{"SKILL.md": "s"}) }},
		{"several", catalogue.RunCode{Files: files("x", "y"), Skills: []string{"x"}}, func(b *bench) {
			b.upload("x", "other", "s", "1")
			b.skill("x", map[string]string{"SKILL.md": "s"})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			_, before := b.resolve(c.args, workspace.DefaultLimits())
			c.make(b)
			_, after := b.resolve(c.args, workspace.DefaultLimits())
			if before == nil || after == nil || *before != *after {
				t.Fatalf("before: %v\nafter: %v", before, after)
			}
			if after.Code != call.InputNotFound || !strings.Contains(after.Text, `"x"`) {
				t.Errorf("refused as %v", after)
			}
		})
	}
}

func TestSharesOpenAnArtifact(t *testing.T) {
	b := newBench(t)
	b.artifact("ar", artifact.Text, "T", "u9", "1")
	for _, c := range []struct {
		name   string
		shares []artifact.Share
		want   bool
	}{
		{"with the user, to read", []artifact.Share{{User: "u1", Right: "read"}}, true},
		{"with the user, to change", []artifact.Share{{User: "u1", Right: "change"}}, true},
		{"with the department", []artifact.Share{{User: "u2", Right: "read"}, {Department: "d1", Right: "read"}}, true},
		{"with another department", []artifact.Share{{Department: "d2", Right: "change"}}, false},
		{"no more", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.share("ar", c.shares...)
			if _, refusal := b.resolve(catalogue.RunCode{Artifacts: []catalogue.RunArtifact{{ID: "ar"}}}, workspace.DefaultLimits()); (refusal == nil) != c.want {
				t.Errorf("refused as %v", refusal)
			}
		})
	}
}

func TestPassagesThatAreNotThere(t *testing.T) {
	b := newBench(t)
	b.upload("up", "col1", "a", "1")
	_, refusal := b.resolve(catalogue.RunCode{Files: []catalogue.RunFile{{ID: "up", Shape: catalogue.ShapePassages}}}, workspace.DefaultLimits())
	if refusal == nil || refusal.Code != call.InputNotFound || !strings.Contains(refusal.Text, `"file"`) {
		t.Errorf("refused as %v", refusal)
	}
}

func TestLimits(t *testing.T) {
	b := newBench(t)
	b.turn.Skills = []string{"sk"}
	b.upload("up", "col1", "a", strings.Repeat("x", 600))
	b.skill("sk", map[string]string{"SKILL.md": strings.Repeat("x", 600)})
	limits := workspace.DefaultLimits()
	limits.SkillBytes = 599
	if _, refusal := b.resolve(catalogue.RunCode{Skills: []string{"sk"}}, limits); refusal == nil || refusal.Code != call.SkillTooLarge {
		t.Errorf("a large skill: %v", refusal)
	}
	plan, refusal := b.resolve(catalogue.RunCode{Skills: []string{"sk"}, Files: files("up", "up")}, workspace.DefaultLimits())
	if refusal != nil || plan.Size() != 1200 {
		t.Errorf("size %d, refused as %v", plan.Size(), refusal)
	}
}

// A run that has begun reads what it resolved, whatever is put meanwhile.
func TestWhatWasResolvedStaysReadable(t *testing.T) {
	b := newBench(t)
	b.turn.Skills = []string{"sk"}
	b.upload("up", "col1", "a", "old")
	b.skill("sk", map[string]string{"SKILL.md": "old skill"})
	plan, refusal := b.resolve(catalogue.RunCode{Files: files("up"), Skills: []string{"sk"}}, workspace.DefaultLimits())
	if refusal != nil {
		t.Fatal(refusal)
	}
	b.upload("up", "col1", "a", "new, and longer")
	b.skill("sk", map[string]string{"SKILL.md": "new"})
	var got []string
	for _, m := range plan.Mounts {
		r, err := m.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(content))
	}
	if want := []string{"old", "old skill"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}
