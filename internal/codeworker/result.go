package codeworker

import (
	"context"
	"errors"
	"fmt"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/sandbox"
	"treeline/internal/workspace"
)

// data is what a run answers to programs.
type data struct {
	ExitCode   int   `json:"exitCode"`
	DurationMs int64 `json:"durationMs"`
	// Stdout and Stderr are the streams; in a result that is told, their head and tail where they are long.
	Stdout  string              `json:"stdout"`
	Stderr  string              `json:"stderr"`
	Ignored []workspace.Ignored `json:"ignored"`
	// IgnoredMore and OutsideMore count what the lists beside them leave out.
	IgnoredMore int              `json:"ignoredMore,omitempty"`
	Outside     []string         `json:"outside"`
	OutsideMore int              `json:"outsideMore,omitempty"`
	Inputs      []Input          `json:"inputs"`
	Revisions   map[string]int64 `json:"revisions"`
	Diff        string           `json:"diff,omitempty"`
	// DiffCut says that the diff leaves out changes of text files.
	DiffCut bool `json:"diffCut,omitempty"`
}

// kept is the outcome of a run whose tree was read whole.
func (r *run) kept(ctx context.Context, l left) ledger.Outcome {
	o := ledger.Outcome{Status: call.OK, Changes: l.changes}
	switch r.outcome.Reason {
	case sandbox.Raised:
		o.Status, o.Code = call.Failed, call.Raised
	case sandbox.Timeout:
		o.Status, o.Code = call.Failed, call.Timeout
	case sandbox.OutOfMemory:
		o.Status, o.Code = call.Failed, call.OutOfMemory
	}
	d := r.data(l)
	for _, c := range l.changes {
		if c.After != nil {
			d.Revisions[c.Path] = r.work.Seq
		}
	}
	d.Diff, d.DiffCut = r.diff(ctx, l.changes)
	facts := newFacts(r.ending())
	if o.Status != call.OK {
		facts.say(keptWords(l.changes))
	}
	facts.changes(l.changes)
	facts.notKept(l)
	blocks, words := r.pictures(l.changes)
	facts.say(words...)
	r.compose(&o, facts, d)
	o.Content = append(o.Content, blocks...)
	return o
}

func keptWords(changes []ledger.Change) string {
	if len(changes) == 0 {
		return "It had changed nothing in the workspace."
	}
	return "What it had changed in the workspace by then is kept."
}

// failed is the outcome of a run of which nothing is kept; its output is returned all the same.
func (r *run) failed(code call.Code, sentence string) ledger.Outcome {
	o := ledger.Outcome{Status: call.Failed, Code: code}
	r.compose(&o, newFacts(sentence), r.data(left{}))
	return o
}

// full is a run that left more than the workspace may hold. A tree that only the driver's own bound stopped has no refusal.
func (r *run) full(refusal *call.Refusal) ledger.Outcome {
	text := "What the run left does not fit in the workspace, so none of it was kept."
	if refusal != nil {
		text = refusal.Text
	}
	return r.failed(call.WorkspaceFull, r.ending()+" "+text)
}

// unreadable is a run whose tree cannot be trusted: what is missing from it need not have been removed.
func (r *run) unreadable(err error) ledger.Outcome {
	where := ""
	var tree *sandbox.TreeUnreadable
	if errors.As(err, &tree) && tree.Path != "" {
		where = fmt.Sprintf(" (at %q)", workspace.Spell(tree.Path))
	}
	return r.failed(call.TreeUnreadable, r.ending()+" The tree that it left could not be read whole"+where+", so nothing of the run was "+
		"kept: the workspace is as it was before.")
}

func (r *run) data(l left) data {
	d := data{ExitCode: r.outcome.ExitCode, DurationMs: r.outcome.Duration.Milliseconds(), Ignored: l.ignored, IgnoredMore: l.ignoredMore,
		Outside: l.outside, OutsideMore: l.outsideMore, Inputs: r.plan.Inputs, Revisions: map[string]int64{}}
	if d.Ignored == nil {
		d.Ignored = []workspace.Ignored{}
	}
	if d.Outside == nil {
		d.Outside = []string{}
	}
	if d.Inputs == nil {
		d.Inputs = []Input{}
	}
	return d
}

// compose puts the whole output into what is stored, and its head and tail into what is told. The text has what happened
// first and standard error last: of a long one the model is shown both ends.
func (r *run) compose(o *ledger.Outcome, f *facts, d data) {
	stdout, stderr := whole(r.outcome.Stdout), modelPaths(whole(r.outcome.Stderr))
	f.inputs(d.Inputs)
	f.output(stdout, stderr)
	o.Content = []call.Content{call.Text(f.text())}
	d.Stdout, d.Stderr = workspace.HeadTail(stdout, r.limits.PreviewChars), workspace.HeadTail(stderr, r.limits.PreviewChars)
	o.Data = d
	if d.Stdout != stdout || d.Stderr != stderr {
		d.Stdout, d.Stderr = stdout, stderr
		o.Output = d
	}
}

// whole is a stream as far as it was kept, with the gap stated.
func whole(o sandbox.Output) string {
	if o.Dropped == 0 {
		return o.Head + o.Tail
	}
	return fmt.Sprintf("%s\n[cut here: %d bytes of output were not kept]\n%s", o.Head, o.Dropped, o.Tail)
}
