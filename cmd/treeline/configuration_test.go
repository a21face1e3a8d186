package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"treeline/internal/role"
)

var update = flag.Bool("update", false, "write the tables of settings anew")

// setting is one variable of the environment, and which programs read it.
type setting struct {
	name, standard, help string
	by                   map[string]bool
}

var programs = []string{"up", "dispatcher", "fileworker", "codeworker"}

// settings lists what the programs read, in the order of their command lines.
func settings(t *testing.T) []*setting {
	t.Helper()
	var all []*setting
	byName := map[string]*setting{}
	for _, name := range programs {
		for _, f := range flags(t, name) {
			for _, env := range f.Envs {
				s := byName[env]
				if s == nil {
					s = &setting{name: env, standard: f.Default, help: f.Help, by: map[string]bool{}}
					all, byName[env] = append(all, s), s
				}
				s.by[name] = true
				if s.standard != f.Default {
					t.Errorf("%s defaults to %q for one program and to %q for %s", env, s.standard, f.Default, name)
				}
			}
		}
	}
	return all
}

func flags(t *testing.T, program string) []*kong.Flag {
	t.Helper()
	var grammar any
	switch program {
	case "up":
		parser, err := newParser(&cli{})
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range parser.Model.Children {
			if node.Name == "up" {
				return append(parser.Model.Flags, node.Flags...)
			}
		}
	case "dispatcher":
		grammar = &role.DispatcherProgram{}
	case "fileworker":
		grammar = &role.FileWorkerProgram{}
	case "codeworker":
		grammar = &role.CodeWorkerProgram{}
	}
	parser, err := kong.New(grammar)
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model.Flags
}

func table(all []*setting) string {
	var b strings.Builder
	b.WriteString("| variable | default | what it sets | " + strings.Join(programs, " | ") + " |\n|---|---|---|" +
		strings.Repeat(":-:|", len(programs)) + "\n")
	for _, s := range all {
		standard := ""
		if s.standard != "" {
			standard = "`" + s.standard + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |", s.name, standard, strings.ReplaceAll(s.help, "|", `\|`))
		for _, name := range programs {
			mark := " "
			if s.by[name] {
				mark = " x "
			}
			b.WriteString(mark + "|")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// The table of every setting is what the programs read. To write it anew: go test ./cmd/treeline -run Settings -update
func TestSettingsAreDocumented(t *testing.T) {
	const path, begin, end = "../../docs/configuration.md", "<!-- table: begin -->\n", "<!-- table: end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", path)
	}
	want := head + begin + table(settings(t)) + end + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s is not what the programs read: go test ./cmd/treeline -run Settings -update", path)
	}
}

// The README has the settings that one needs first.
func TestSettingsOfTheReadmeAreTrue(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, s := range settings(t) {
		known[s.name] = s.standard
	}
	rows := regexp.MustCompile("(?m)^\\| `(TREELINE_[A-Z_]+)` \\| (?:`([^`]*)`)? *\\|").FindAllStringSubmatch(string(text), -1)
	if len(rows) < 8 {
		t.Errorf("the README has a table of %d settings", len(rows))
	}
	for _, row := range rows {
		standard, ok := known[row[1]]
		if !ok || standard != row[2] {
			t.Errorf("the README says that %s defaults to %q; known %v, it defaults to %q", row[1], row[2], ok, standard)
		}
	}
}
