package input

import (
	"io/fs"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"treeline/internal/workspace"
)

// Whatever uploads are called, each gets a path of its own that any file system takes.
func TestAnyNamesAreMadeSafeAndUnique(t *testing.T) {
	name := rapid.OneOf(
		rapid.StringOfN(rapid.SampledFrom([]rune("ab.() 2/\\\x00\n..é")), 0, 8, -1),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 300), func(b []byte) string { return string(b) }),
		rapid.StringOfN(rapid.SampledFrom([]rune("aé😀.")), 200, 400, -1),
		rapid.SampledFrom([]string{"a.csv", "a (2).csv", "a (2) (2).csv", ".", "..", ""}),
	)
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(name, 1, 20).Draw(t, "names")
		wanted := map[string]int{}
		for _, n := range all {
			wanted[safe(n)]++
		}
		names, seen := newNames(), map[string]bool{}
		for _, n := range all {
			base, ending := split(safe(n))
			for _, p := range []string{names.unique(filesFolder, base, ending, wanted), names.unique(passagesFolder, safe(n), ".json", nil)} {
				folder, file := p[:strings.LastIndex(p, "/")], p[strings.LastIndex(p, "/")+1:]
				switch {
				case seen[p]:
					t.Fatalf("%q is given twice", p)
				case folder != filesFolder && folder != passagesFolder:
					t.Fatalf("%q lies in %q", n, folder)
				case !fs.ValidPath(p) || !utf8.ValidString(p) || len(file) > workspace.PartBytes || strings.ContainsFunc(file, unicode.IsControl):
					t.Fatalf("%q becomes %q", n, p)
				case wanted[n] == 1 && safe(n) == n && len(n) <= workspace.PartBytes && folder == filesFolder && file != n:
					t.Fatalf("%q becomes %q though nobody else wants it", n, file)
				}
				seen[p] = true
			}
		}
	})
}
