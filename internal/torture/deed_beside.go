package torture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"treeline/internal/call"
)

// beside makes a deed that reaches beyond the workspace, at random.
func (d deeds) beside(id string) deed {
	r, own := d.random, d.own
	path := paths[r.IntN(len(paths)-1)] // not the long one: an artifact is stored whole with each version
	artifact := []string{own.document(), own.document(), own.lent(), own.private(), common}[r.IntN(5)]
	switch n := r.IntN(100); {
	case n < 12:
		return save(own, path, "")
	case n < 30:
		return save(own, path, artifact)
	case n < 50:
		return editArtifact(own, artifact, "inserted by "+id+"\n")
	case n < 62:
		return loadSkill(own, own.skillName())
	case n < 65:
		return loadSkill(own, []string{own.otherSkill(), "no-skill"}[r.IntN(2)])
	case n < 73:
		return d.readKnown(id)
	case n < 77:
		return readResult(textRef, own.resultText())
	case n < 79:
		return readResult(absentRef, "")
	case n < 90 || !d.code:
		return d.export(path)
	}
	return d.runWithInputs(id)
}

// readKnown reads a result that the caller has already.
func (d deeds) readKnown(id string) deed {
	ref, text := d.own.known()
	if ref == "" {
		return calculate(len(id), 1)
	}
	return readResult(ref, text)
}

// export writes what a stored result holds.
func (d deeds) export(path string) deed {
	source, content := map[string]any{"toolResult": textRef}, d.own.resultText()
	switch d.random.IntN(5) {
	case 0:
		source, content = map[string]any{"toolResult": objectRef, "pointer": "/field"}, d.own.resultField()
	case 1:
		source, content = map[string]any{"toolResult": absentRef}, ""
	}
	return deed{tool: "write_file", args: map[string]any{"path": path, "source": source}, writes: []string{path},
		apply: func(m *model, _ occasion) verdict {
			if content == "" {
				return refused(call.SourceNotFound, call.PathClash, call.WholeFileReplacement)
			}
			return m.write([]newFile{{path, content}})
		}}
}

// loadSkill loads a skill, whose text may be replaced meanwhile.
func loadSkill(own *belongings, name string) deed {
	return deed{tool: "load_skill", args: map[string]any{"name": name}, apply: func(_ *model, o occasion) verdict {
		if name != own.skillName() {
			return refused(call.InputNotFound)
		}
		return verdict{status: call.OK, codes: []call.Code{""}, check: func(res call.Result) error {
			texts := own.skill.during(o.from, o.to)
			got := call.TextOf(res.Content)
			at := slices.IndexFunc(texts, func(text string) bool { return strings.HasPrefix(got, text) })
			if at < 0 {
				return fmt.Errorf("the skill's text was one of %q, and it was loaded as %q", texts, got)
			}
			var data struct {
				Files []struct {
					Path  string
					Bytes int
				}
			}
			want := map[string]int{"SKILL.md": len(texts[at]), "fixed.txt": len(own.skillFile())}
			if err := json.Unmarshal(res.Data, &data); err != nil || len(data.Files) != len(want) {
				return fmt.Errorf("the data of a skill are %s", res.Data)
			}
			for _, f := range data.Files {
				if want[f.Path] != f.Bytes {
					return fmt.Errorf("the skill has the files %v, and they were told as %s", want, res.Data)
				}
			}
			return nil
		}}
	}}
}

// readResult reads a stored result whose text is known; an empty one is that of none.
func readResult(ref, text string) deed {
	return deed{tool: "read_result", args: map[string]any{"resultRef": ref}, apply: func(*model, occasion) verdict {
		if text == "" {
			return refused(call.InputNotFound)
		}
		return verdict{status: call.OK, codes: []call.Code{""}, check: func(res call.Result) error {
			var want strings.Builder
			for i, line := range splitLines([]byte(text)) {
				fmt.Fprintf(&want, "%d\t%s\n", i+1, line)
			}
			if got := call.TextOf(res.Content); got != want.String() {
				return fmt.Errorf("the result %s was read as %q, and it is %q", ref, got, want.String())
			}
			return nil
		}}
	}}
}

// runWithInputs makes a run that reads something of each kind, or names something that is not its turn's.
func (d deeds) runWithInputs(id string) deed {
	own := d.own
	if d.random.IntN(4) == 0 {
		denied := []map[string]any{
			{"files": []any{map[string]any{"id": own.foreign()}}},
			{"artifacts": []any{map[string]any{"id": own.private()}}},
			{"skills": []string{own.otherSkill()}},
			{"toolResults": []string{absentRef}},
		}[d.random.IntN(4)]
		denied["code"] = appends(id)
		return deed{tool: "run_code", args: denied, apply: func(*model, occasion) verdict { return refused(call.InputNotFound) }}
	}
	code := strings.Join([]string{
		"import glob, json",
		"found = ['run " + id + "']",
		"found += [open(p).read() for p in sorted(glob.glob('inputs/files/*'))]",
		"found += [p['text'] for p in json.load(open(glob.glob('inputs/passages/*.json')[0]))]",
		"found.append(open('inputs/artifacts/" + own.document() + ".txt').read())",
		"found.append(json.load(open('inputs/tool-results/1.json'))['output'])",
		"found.append(open('skills/" + own.skillName() + "/fixed.txt').read())",
		"open('workspace/" + runFile + "', 'a').write('|'.join(found).replace('\\n', '~') + '\\n')",
		"",
	}, "\n")
	found := []string{"run " + id, own.uploaded(), own.uploaded()}
	found = append(append(found, own.passages()...), own.begin(), own.resultText(), own.skillFile())
	line := strings.ReplaceAll(strings.Join(found, "|"), "\n", "~") + "\n"
	return deed{tool: "run_code", args: map[string]any{"code": code, "timeoutSeconds": 30,
		"files": []any{map[string]any{"id": own.collected()}, map[string]any{"id": own.bound(), "shape": "file"},
			map[string]any{"id": own.bound(), "shape": "passages"}},
		"artifacts":   []any{map[string]any{"id": own.document(), "version": 1}},
		"toolResults": []string{textRef},
		"skills":      []string{own.skillName()},
	}, apply: func(m *model, _ occasion) verdict { return m.appendRun(line, call.OK, "") }}
}
