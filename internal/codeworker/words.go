package codeworker

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"treeline/internal/ledger"
	"treeline/internal/sandbox"
	"treeline/internal/workspace"
)

// ending says in one sentence what ended the run.
func (r *run) ending() string {
	took := r.outcome.Duration.Round(10 * time.Millisecond).Seconds()
	switch r.outcome.Reason {
	case sandbox.Timeout:
		return fmt.Sprintf("The code was stopped after %.0f s, its time limit. timeoutSeconds may ask for up to %.0f.",
			r.limit.Seconds(), r.limits.RunTimeMax.Seconds())
	case sandbox.OutOfMemory:
		return fmt.Sprintf("The code was stopped after %.2f s because it took more than %d MiB of memory, in which files that it writes count.",
			took, r.limits.RunMemoryBytes>>20)
	case sandbox.Raised:
		if r.outcome.Signal != 0 {
			return fmt.Sprintf("The code was ended by signal %d after %.2f s (exit code %d).", r.outcome.Signal, took, r.outcome.ExitCode)
		}
		return fmt.Sprintf("The code failed after %.2f s (exit code %d).", took, r.outcome.ExitCode)
	}
	return fmt.Sprintf("The code ran to its end in %.2f s (exit code %d).", took, r.outcome.ExitCode)
}

const (
	// namedPaths is how many paths one sentence names, and namedChars how many characters of them.
	namedPaths = 20
	namedChars = 800
)

// facts are the model's text: sentences, then the output.
type facts struct{ lines []string }

func newFacts(first string) *facts { return &facts{lines: []string{first}} }

func (f *facts) say(sentences ...string) {
	for _, s := range sentences {
		if s != "" {
			f.lines = append(f.lines, s)
		}
	}
}

func (f *facts) text() string { return strings.Join(f.lines, "\n") }

func (f *facts) changes(changes []ledger.Change) {
	byOp := map[string][]string{}
	for _, c := range changes {
		byOp[c.Op()] = append(byOp[c.Op()], c.Path)
	}
	f.list("Created: ", byOp["created"], 0, "")
	f.list("Modified: ", byOp["modified"], 0, "")
	f.list("Deleted: ", byOp["deleted"], 0, "")
}

func (f *facts) notKept(l left) {
	reasons := make([]string, len(l.ignored))
	for i, ig := range l.ignored {
		reasons[i] = shown(ig.Path) + " (" + ig.Reason + ")"
	}
	f.list("Not kept: ", reasons, l.ignoredMore, "")
	outside := make([]string, len(l.outside))
	for i, path := range l.outside {
		outside[i] = shown(path)
	}
	f.list("Left outside workspace/ and gone: ", outside, l.outsideMore, " Only what is written below workspace/ is kept.")
}

func (f *facts) inputs(in []Input) {
	words := make([]string, len(in))
	for i, input := range in {
		words[i] = input.Path
		if input.Note != "" {
			words[i] += " (" + input.Note + ")"
		}
	}
	f.list("Mounted: ", words, 0, "")
}

// list names as many of the words as fit, and counts the rest and more.
func (f *facts) list(lead string, words []string, more int, end string) {
	if len(words) == 0 {
		return
	}
	n, size := 0, 0
	for n < min(len(words), namedPaths) && (n == 0 || size+len(words[n]) <= namedChars) {
		size += len(words[n])
		n++
	}
	text := lead + strings.Join(words[:n], ", ")
	if rest := len(words) - n + more; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	f.say(text + "." + end)
}

// shown spells a name that came from the program, so that it cannot pose as text of the result; long ones lose their middle.
func shown(name string) string {
	const most = 200
	if utf8.RuneCountInString(name) > most {
		runes := []rune(name)
		name = string(runes[:most/2]) + "..." + string(runes[len(runes)-most/2:])
	}
	if strings.ContainsFunc(name, func(c rune) bool { return !strconv.IsPrint(c) }) {
		return strconv.Quote(name)
	}
	return name
}

func (f *facts) output(stdout, stderr string) {
	if stdout == "" && stderr == "" {
		f.say("It printed nothing.")
		return
	}
	for _, s := range []struct{ name, text string }{{"stdout", stdout}, {"stderr", stderr}} {
		if s.text != "" {
			f.say("", "\n"+s.name+":\n"+strings.TrimSuffix(s.text, "\n"))
		}
	}
}

// programName is the name by which the model knows its code in a traceback.
var programName = `File "` + path.Base(sandbox.ProgramFile) + `"`

// below matches the working folder at the beginning of a path.
var below = regexp.MustCompile(`(^|[\s"'(=\[<:,])` + regexp.QuoteMeta(sandbox.WorkFolder) + `/(` + sandbox.Workspace + `|` + sandbox.Inputs +
	`|` + sandbox.Skills + `)\b`)

// modelPaths gives what the program wrote to standard error with the paths by which the model knows its files:
// workspace/..., inputs/..., skills/..., and main.py for the code itself.
func modelPaths(stderr string) string {
	stderr = below.ReplaceAllString(stderr, "${1}${2}")
	return strings.ReplaceAll(stderr, `File "`+sandbox.ProgramFile+`"`, programName)
}

// changedText reports whether a change is one of text on both sides.
func changedText(c ledger.Change) bool {
	return c.After != nil && c.After.Kind == workspace.Text && (c.Before == nil || c.Before.Kind == workspace.Text)
}
