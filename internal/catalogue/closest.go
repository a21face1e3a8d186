package catalogue

import "strings"

// meant are names that callers use for fields called otherwise; the first that the tool has is the one.
var meant = map[string][]string{
	"file": {"path"}, "filename": {"path"}, "filepath": {"path"}, "folder": {"path"}, "directory": {"path"}, "dir": {"path"},
	"text": {"content"}, "body": {"content"}, "data": {"content"}, "contents": {"content"},
	"old": {"find"}, "oldtext": {"find"}, "oldstring": {"find"}, "oldstr": {"find"}, "search": {"find", "queries"},
	"new": {"replace"}, "newtext": {"replace", "text"}, "newstring": {"replace"}, "newstr": {"replace"}, "replacement": {"replace"},
	"replaceall": {"all"}, "count": {"expectedMatches"}, "line": {"startLine"}, "offset": {"startLine"},
	"pattern": {"queries", "glob"}, "query": {"queries"}, "caseinsensitive": {"ignoreCase"},
	"source": {"from"}, "src": {"from"}, "oldpath": {"from"}, "destination": {"to"}, "dest": {"to"}, "target": {"to"}, "newpath": {"to"},
	"script": {"code"}, "python": {"code"}, "program": {"code"}, "results": {"toolResults"},
	"id": {"artifactId", "resultRef", "name"}, "skill": {"name", "skills"}, "formula": {"expressions"},
}

// closest gives the known name that an unknown one most likely stands for, or "".
func closest(name string, known []string) string {
	if len(name) > 4*shownChars {
		return ""
	}
	asked := plainName(name)
	for _, candidate := range meant[asked] {
		for _, k := range known {
			if k == candidate {
				return k
			}
		}
	}
	best, least := "", len(name)+1
	for _, k := range known {
		candidate := plainName(k)
		d := distance(asked, candidate)
		if len(asked) > 1 && (strings.Contains(candidate, asked) || strings.Contains(asked, candidate)) {
			d = min(d, 1)
		}
		if d < least && d <= max(len(asked), len(candidate))/2 {
			best, least = k, d
		}
	}
	return best
}

// plainName takes start_line, StartLine and start-line for one.
func plainName(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
}

// distance is the number of single-byte changes between two short names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
