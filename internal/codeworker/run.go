package codeworker

import (
	"context"
	"errors"
	"sync"
	"time"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/sandbox"
	"treeline/internal/workspace"
)

// run is one call's run: a session of its own, from the mounted tree to what is left of it.
type run struct {
	*Worker
	work   ledger.Work
	code   string
	limit  time.Duration
	plan   Plan
	before *workspace.Tree

	session sandbox.Session
	outcome sandbox.Outcome
}

// errStopped says that a run was stopped from outside; the context's end says why.
var errStopped = errors.New("the run was stopped")

func (r *run) do(ctx context.Context) (ledger.Outcome, error) {
	session, err := r.driver.Start(ctx, sandbox.Spec{Label: r.work.Key.String(), Limits: r.sandboxLimits()})
	if err != nil {
		return r.notStarted(ctx, err)
	}
	r.session = session
	defer r.close()
	if err := r.mount(ctx); err != nil {
		var lost *sandboxError
		if errors.As(err, &lost) {
			return r.notStarted(ctx, err)
		}
		return ledger.Outcome{}, err
	}
	if r.outcome, err = r.runProgram(ctx); err != nil {
		return r.notStarted(ctx, err)
	}
	switch r.outcome.Reason {
	case sandbox.Cancelled:
		return ledger.Outcome{}, errors.Join(errStopped, context.Cause(ctx))
	case sandbox.Lost:
		return r.failed(call.SandboxLost, "The sandbox was lost while the code ran, so nothing of the run was kept: the workspace is as it "+
			"was before. Running the code again under a new call may work."), nil
	}
	return r.settle(ctx)
}

// settle takes the tree that the program left, and makes the outcome.
func (r *run) settle(ctx context.Context) (ledger.Outcome, error) {
	left, err := r.take(ctx)
	var large *sandbox.TreeTooLarge
	var full *call.Refusal
	switch {
	case ctx.Err() != nil && err != nil:
		return ledger.Outcome{}, errors.Join(errStopped, context.Cause(ctx))
	case errors.As(err, &large):
		return r.full(r.limits.CheckRoom(r.before.Room(), workspace.Room{Bytes: large.Bytes, Files: large.Files})), nil
	case errors.As(err, &full):
		return r.full(full), nil
	case err != nil:
		r.Log.Warn().Err(err).Str("conversation", r.work.Key.Conversation).Str("call", r.work.Key.Call).Msg("tree unreadable")
		return r.unreadable(err), nil
	}
	return r.kept(ctx, left), nil
}

// sandboxLimits are those of the product. What the tree may hold the worker judges by itself, once it knows which files
// are kept at all; the driver only has to stop somewhere.
func (r *run) sandboxLimits() sandbox.Limits {
	l := r.limits
	return sandbox.Limits{
		Wall: r.limit, Memory: l.RunMemoryBytes, Processes: l.RunProcesses, Disk: l.RunDiskBytes,
		// What is mounted takes whole pages.
		Inputs: l.InputBytes + l.InputBytes/4, Output: l.RunOutputBytes,
		TreeBytes: max(l.RunDiskBytes, r.before.Bytes()), TreeFiles: 2*max(l.WorkspaceFiles, r.before.Len()) + 1000,
	}
}

// runProgram runs the code, telling its output as it comes.
func (r *run) runProgram(ctx context.Context) (sandbox.Outcome, error) {
	t := newTeller(r.work, func(body []byte) {
		if err := r.Queue.PublishProgress(r.work.Key, body); err != nil {
			r.Log.Debug().Err(err).Msg("progress not told")
		}
	})
	telling, end := context.WithCancel(context.WithoutCancel(ctx))
	var told sync.WaitGroup
	told.Go(func() { t.run(telling) })
	defer told.Wait()
	defer end()
	return r.session.Run(ctx, sandbox.Program{Code: []byte(r.code), Output: t.take})
}

// notStarted is a run that never was: the sandbox could not be made or filled.
func (r *run) notStarted(ctx context.Context, err error) (ledger.Outcome, error) {
	if ctx.Err() != nil {
		return ledger.Outcome{}, errors.Join(errStopped, context.Cause(ctx))
	}
	if errors.Is(err, sandbox.ErrFull) && len(r.plan.Mounts) > 0 {
		return ledger.Outcome{}, call.Refuse(call.InputsTooLarge, "The inputs of this run do not fit in its sandbox beside the workspace. "+
			"Nothing was run. Name fewer of them in one run.")
	}
	r.Log.Error().Err(err).Str("conversation", r.work.Key.Conversation).Str("call", r.work.Key.Call).Msg("no sandbox for a run")
	return ledger.FailedOutcome(call.SandboxLost, "The sandbox could not be started, so the code did not run and nothing was changed. "+
		"Sending it again under a new call id may work."), nil
}

func (r *run) close() {
	if err := r.session.Close(); err != nil {
		r.Log.Warn().Err(err).Str("conversation", r.work.Key.Conversation).Str("call", r.work.Key.Call).Msg("sandbox not closed cleanly")
	}
}
