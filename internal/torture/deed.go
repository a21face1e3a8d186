package torture

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"treeline/internal/call"
)

// deed is what a call does: its arguments, and the verdict of the model on it.
type deed struct {
	tool string
	args any
	// apply does it to the model, and may look at what came of it. It gives the verdict.
	apply func(m *model, o occasion) verdict
	// writes are the paths that a write_file names.
	writes []string
	// mayNotBegin marks a run whose time may be up before its first line; once it has begun it prints begun.
	mayNotBegin bool
	// long marks a run that lasts long enough to be cancelled.
	long bool
}

// occasion is when a call was done, and what came of it.
type occasion struct {
	turn string
	// from is a time before the call was sent, and to one after it was done.
	from, to time.Time
	status   call.Status
	// result is nil where a deletion has dropped it.
	result *call.Result
}

// longFile is the one that grows past what may be replaced whole.
const longFile = "long.txt"

// The paths that calls of one conversation quarrel about. "n" and "n/x" cannot both be there. longFile is the last, and no
// batch names it: a batch that clashes with itself is refused at the door, which has no place in the order.
var paths = []string{"a.txt", "b.txt", "c.txt", "d/e.txt", "d/f.txt", "n", "n/x", longFile}

const marker = "<<here>>"

// fresh makes content that no other call writes.
func fresh(r *rand.Rand, id string, long bool) string {
	lines := 1 + r.IntN(6)
	if long {
		lines = 120
	}
	var b strings.Builder
	b.WriteString([]string{"header A\n", "header B\n"}[r.IntN(2)])
	for i := range lines {
		fmt.Fprintf(&b, "line %d of %s %s\n", i, id, strings.Repeat("x", r.IntN(60)))
	}
	b.WriteString(marker + "\n")
	return b.String()
}

// deeds are the kinds of call, each with how often it comes.
type deeds struct {
	random *rand.Rand
	code   bool // there are code workers
	// own is what the conversation's turns may reach beside the workspace; with none, nothing is done with that.
	own *belongings
}

// next makes a deed at random; id is unique.
func (d deeds) next(id string) deed {
	r := d.random
	pick := func() string { return paths[r.IntN(len(paths))] }
	if d.own != nil && r.IntN(4) == 0 {
		return d.beside(id)
	}
	n := r.IntN(100)
	if !d.code && n >= 92 {
		n = r.IntN(92)
	}
	switch {
	case n < 20:
		p := pick()
		return write(newFile{p, fresh(r, id, p == longFile && r.IntN(2) == 0)})
	case n < 26:
		files := []newFile{}
		for _, i := range r.Perm(len(paths) - 1)[:2+r.IntN(2)] {
			files = append(files, newFile{paths[i], fresh(r, id+"."+paths[i], false)})
		}
		return write(files...)
	case n < 44:
		return editText(pick(), textEdit{Find: marker, Replace: "inserted by " + id + "\n" + marker})
	case n < 48:
		return editText(pick(), textEdit{Find: "line 0 of", Replace: "line zero of", All: r.IntN(2) == 0})
	case n < 54:
		headers := []string{"header A", "header B"}
		return editLine(pick(), lineEdit{StartLine: 1, EndLine: 1, Anchor: headers[r.IntN(2)], Text: headers[r.IntN(2)]})
	case n < 58:
		at := 1 + r.IntN(9)
		return editLine(pick(), lineEdit{StartLine: at, EndLine: at - 1, Anchor: "", Text: "appended by " + id})
	case n < 63:
		return remove(pick())
	case n < 65:
		i := r.Perm(len(paths))
		return remove(paths[i[0]], paths[i[1]])
	case n < 70:
		return move(pick(), pick())
	case n < 76:
		return read(pick())
	case n < 79:
		return list()
	case n < 81:
		return search("line")
	case n < 88:
		return write(newFile{fmt.Sprintf("many/%s.txt", id), fresh(r, id, true)})
	case n < 92:
		return calculate(r.IntN(1000), r.IntN(1000))
	}
	return d.run(id)
}

func write(files ...newFile) deed {
	var args any = files[0]
	if len(files) > 1 {
		args = map[string]any{"files": files}
	}
	d := deed{tool: "write_file", args: args}
	for _, f := range files {
		d.writes = append(d.writes, f.Path)
	}
	d.apply = func(m *model, _ occasion) verdict { return m.write(files) }
	return d
}

func editText(path string, e textEdit) deed {
	return deed{tool: "edit_file", args: map[string]any{"path": path, "edits": []textEdit{e}},
		apply: func(m *model, _ occasion) verdict { return m.editText(path, e) }}
}

func editLine(path string, e lineEdit) deed {
	return deed{tool: "edit_file", args: map[string]any{"path": path, "edits": []lineEdit{e}},
		apply: func(m *model, _ occasion) verdict { return m.editLine(path, e) }}
}

func remove(paths ...string) deed {
	var args any = map[string]any{"path": paths[0]}
	if len(paths) > 1 {
		args = map[string]any{"paths": paths}
	}
	return deed{tool: "delete_file", args: args, apply: func(m *model, o occasion) verdict { return m.remove(o.turn, paths) }}
}

func move(from, to string) deed {
	return deed{tool: "move_file", args: map[string]any{"from": from, "to": to},
		apply: func(m *model, o occasion) verdict { return m.move(o.turn, from, to) }}
}

func read(path string) deed {
	return deed{tool: "read_file", args: map[string]any{"path": path}, apply: func(m *model, _ occasion) verdict {
		b, is := m.files[path]
		if !is {
			return m.absent(path)
		}
		return verdict{status: call.OK, codes: []call.Code{""}, check: func(res call.Result) error { return checkRead(res, splitLines(b)) }}
	}}
}

// checkRead compares the lines that were shown with those that the file had when the call had its turn.
func checkRead(res call.Result, lines []string) error {
	var data struct {
		Files []struct {
			TotalLines int
			Cut        string
		}
	}
	if err := json.Unmarshal(res.Data, &data); err != nil || len(data.Files) != 1 {
		return fmt.Errorf("the data of a read is %s", res.Data)
	}
	if data.Files[0].TotalLines != len(lines) {
		return fmt.Errorf("read %d lines of a file of %d", data.Files[0].TotalLines, len(lines))
	}
	if data.Files[0].Cut != "" {
		return nil
	}
	text := call.TextOf(res.Content)
	for i, line := range lines {
		if want := fmt.Sprintf("%d\t%s", i+1, line); !strings.Contains(text, want) {
			return fmt.Errorf("what was read has not %q: %s", want, text)
		}
	}
	return nil
}

func list() deed {
	return deed{tool: "list_files", args: map[string]any{}, apply: func(m *model, _ occasion) verdict {
		n, bytes, names := len(m.files), size(m.files), slices.Sorted(maps.Keys(m.files))
		return verdict{status: call.OK, codes: []call.Code{""}, check: func(res call.Result) error {
			var data struct {
				Files      []struct{ Path string }
				TotalFiles int
				TotalBytes int64
			}
			if err := json.Unmarshal(res.Data, &data); err != nil || data.TotalFiles != n || data.TotalBytes != bytes || len(data.Files) != n {
				return fmt.Errorf("listed %s, and there were %d files with %d bytes", res.Data, n, bytes)
			}
			for i, f := range data.Files {
				if f.Path != names[i] {
					return fmt.Errorf("listed %q where %q was", f.Path, names[i])
				}
			}
			return nil
		}}
	}}
}

func search(query string) deed {
	return deed{tool: "search_files", args: map[string]any{"queries": []string{query}}, apply: func(m *model, _ occasion) verdict {
		lines, files := 0, 0
		for _, b := range m.files {
			found := 0
			for _, line := range splitLines(b) {
				if strings.Contains(line, query) {
					found++
				}
			}
			if lines += found; found > 0 {
				files++
			}
		}
		return verdict{status: call.OK, codes: []call.Code{""}, check: func(res call.Result) error {
			var data struct {
				Totals []struct{ Matches, Files int }
			}
			if err := json.Unmarshal(res.Data, &data); err != nil || len(data.Totals) != 1 || data.Totals[0].Matches != lines || data.Totals[0].Files != files {
				return fmt.Errorf("found %s, and %d lines in %d files had it", res.Data, lines, files)
			}
			return nil
		}}
	}}
}

func calculate(a, b int) deed {
	return deed{tool: "calculate", args: map[string]any{"expressions": []string{fmt.Sprintf("%d + %d", a, b)}},
		apply: func(*model, occasion) verdict {
			return verdict{status: call.OK, codes: []call.Code{""}, check: func(res call.Result) error {
				var data struct{ Results []struct{ Value string } }
				if err := json.Unmarshal(res.Data, &data); err != nil || len(data.Results) != 1 || data.Results[0].Value != fmt.Sprint(a+b) {
					return fmt.Errorf("%d + %d came to %s", a, b, res.Data)
				}
				return nil
			}}
		}}
}
