package workspace

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"treeline/internal/call"
)

func TestPathKeeps(t *testing.T) {
	long := strings.Repeat("a", PartBytes)
	for _, c := range []struct{ name, in, want string }{
		{"plain", "notes/a.txt", "notes/a.txt"},
		{"dots within a name", "foo..bar.txt", "foo..bar.txt"},
		{"three dots", ".../a", ".../a"},
		{"hidden", ".gitignore", ".gitignore"},
		{"blanks", "a b/ c", "a b/ c"},
		{"composed on the way in", "cafe\u0301.md", "caf\u00e9.md"},
		{"the sandbox's word further down", "a/workspace/b", "a/workspace/b"},
		{"a name that only begins so", "workspaces/a", "workspaces/a"},
		{"the sandbox's folder is a name like any", "work/a", "work/a"},
		{"a part of 255 bytes", long, long},
		{"512 bytes", long + "/" + long[1:] + "/b", long + "/" + long[1:] + "/b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, refusal := Path(c.in)
			if refusal != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, refusal, c.want)
			}
		})
	}
}

func TestPathRefuses(t *testing.T) {
	for _, c := range []struct {
		name, in string
		code     call.Code
		facts    []string
	}{
		{"empty", "", call.PathInvalid, []string{"empty", `"notes/a.txt"`}},
		{"absolute", "/etc/passwd", call.PathInvalid, []string{`"/etc/passwd"`, "absolute", `"etc/passwd"`}},
		{"climbing", "../a", call.PathInvalid, []string{`"../a"`, `".."`}},
		{"climbing within", "a/../b", call.PathInvalid, []string{`"a/../b"`, `".."`}},
		{"climbing at the end", "a/..", call.PathInvalid, []string{`".."`}},
		{"this folder", "./a", call.PathInvalid, []string{`"."`, `its path is "a"`}},
		{"this folder within", "a/./b", call.PathInvalid, []string{`"."`, `its path is "a/b"`}},
		{"dot alone", ".", call.PathInvalid, []string{`"."`}},
		{"trailing slash", "a/", call.PathInvalid, []string{`ends in "/"`, `its path is "a"`}},
		{"double slash", "a//b", call.PathInvalid, []string{`"//"`, `its path is "a/b"`}},
		{"backslash", `a\b`, call.PathInvalid, []string{`"a\\b"`, "backslash", `its path is "a/b"`}},
		{"U+0000", "a\x00b", call.PathInvalid, []string{`"a\x00b"`, "U+0000"}},
		{"newline", "a\nb", call.PathInvalid, []string{`"a\nb"`, "U+000A"}},
		{"delete", "a\x7f", call.PathInvalid, []string{"U+007F"}},
		{"next line", "a\u0085", call.PathInvalid, []string{"U+0085"}},
		{"not UTF-8", "a\xff", call.PathInvalid, []string{`"a\xff"`, "UTF-8"}},
		{"513 bytes", strings.Repeat("a/", 256) + "b", call.PathInvalid, []string{"513 bytes", "512", "the first 300 of 513 characters"}},
		{"a part of 256 bytes", strings.Repeat("a", 256), call.PathInvalid, []string{"256 bytes", "255"}},
		{"bytes are counted, not characters", strings.Repeat("é", 128), call.PathInvalid, []string{"256 bytes"}},

		{"sandbox", "workspace/deck.html", call.PathInSandboxForm, []string{`"workspace/deck.html"`, `the path is "deck.html"`}},
		{"sandbox, absolute", "/workspace/deck.html", call.PathInSandboxForm, []string{`the path is "deck.html"`}},
		{"sandbox, from here", "./workspace/a/deck.html", call.PathInSandboxForm, []string{`the path is "a/deck.html"`}},
		{"sandbox, from its working folder", "/work/workspace/deck.html", call.PathInSandboxForm, []string{`the path is "deck.html"`}},
		{"sandbox twice", "workspace/workspace/deck.html", call.PathInSandboxForm, []string{`the path is "deck.html"`}},
		{"sandbox with a folder of that name", "workspace/work/workspace/a", call.PathInSandboxForm, []string{`the path is "work/workspace/a"`}},
		{"sandbox, double slash", "workspace//deck.html", call.PathInSandboxForm, []string{`the path is "deck.html"`}},
		{"the workspace itself", "workspace", call.PathInSandboxForm, []string{"the root of the workspace", `leave "path" out`}},
		{"the workspace itself, as a folder", "/work/workspace/", call.PathInSandboxForm, []string{"the root of the workspace"}},
		{"sandbox, but no path in it", "workspace/../a", call.PathInvalid, []string{`".."`}},
		{"sandbox's folder, outside", "/work/out.csv", call.PathInvalid, []string{"absolute", `its path is "out.csv"`}},
		{"sandbox with backslash", `workspace\deck.html`, call.PathInvalid, []string{"backslash", `its path is "deck.html"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, refusal := Path(c.in)
			wantRefusal(t, refusal, c.code, c.facts...)
		})
	}
}

func TestFolderPath(t *testing.T) {
	if got, refusal := FolderPath(""); got != "" || refusal != nil {
		t.Errorf("the root: %q, %v", got, refusal)
	}
	if got, refusal := FolderPath("a/b"); got != "a/b" || refusal != nil {
		t.Errorf("a folder: %q, %v", got, refusal)
	}
	for _, root := range []string{".", "/", "./", "//"} {
		_, refusal := FolderPath(root)
		wantRefusal(t, refusal, call.PathInvalid, `leave "path" out`)
	}
	_, refusal := FolderPath("workspace")
	wantRefusal(t, refusal, call.PathInSandboxForm, `leave "path" out`)
	_, refusal = FolderPath("workspace/notes/")
	wantRefusal(t, refusal, call.PathInSandboxForm, `the path is "notes"`)
	_, refusal = FolderPath("../")
	wantRefusal(t, refusal, call.PathInvalid, "..")
}

func TestFoundPaths(t *testing.T) {
	kept, ignored := FoundPaths([]string{
		"a", "n/b", "x\xff", "bad\nname", `back\slash`, "workspace", "workspace/c", strings.Repeat("é", 128),
		"caf\u00e9", "cafe\u0301", // one is composed already
		"o\u0302\u0323", "o\u0323\u0302", // neither is
		"d\u00e9", "de\u0301/below", // a file, and a folder that is it once composed
		"e\u0301x", // alone: kept composed
		"Case", "case",
	})
	wantKept := map[string]string{"a": "a", "n/b": "n/b", "caf\u00e9": "caf\u00e9", "d\u00e9": "d\u00e9", "\u00e9x": "e\u0301x", "Case": "Case",
		"case": "case"}
	if !maps.Equal(kept, wantKept) {
		t.Errorf("kept %q, want %q", kept, wantKept)
	}
	var paths []string
	reasons := map[string]string{}
	for _, i := range ignored {
		paths = append(paths, i.Path)
		reasons[i.Path] = i.Reason
	}
	want := []string{`back\slash`, "bad\nname", "cafe\u0301", "de\u0301/below", "o\u0302\u0323", "o\u0323\u0302", "workspace", "workspace/c", `x\xff`,
		strings.Repeat("é", 128)}
	if slices.Sort(want); !slices.Equal(paths, want) {
		t.Fatalf("ignored %q, want %q", paths, want)
	}
	for path, fact := range map[string]string{`x\xff`: "UTF-8", "bad\nname": "U+000A", `back\slash`: "backslash", "workspace/c": "workspace",
		"cafe\u0301": "NFC", "de\u0301/below": "below a file", strings.Repeat("é", 128): "256 bytes"} {
		if !strings.Contains(reasons[path], fact) {
			t.Errorf("%q is ignored for %q, which does not say %q", path, reasons[path], fact)
		}
	}
}
