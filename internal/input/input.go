// Package input resolves what a run_code call names (uploads, artifacts, stored results, skills) to what is mounted in its
// sandbox. Every name is resolved, and everything is counted, before a byte is read.
package input

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/codeworker"
	"treeline/internal/skill"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

// Resolver resolves what calls name. It is safe for concurrent use.
type Resolver struct {
	q      *db.Queries
	skills *skill.Store
	limits workspace.Limits
}

// New makes a resolver over a migrated database.
func New(pool *pgxpool.Pool, limits workspace.Limits) *Resolver {
	return &Resolver{q: db.New(pool), skills: skill.New(pool, limits.SkillBytes), limits: limits}
}

// Resolve gives what a call names. The error is a *call.Refusal (input_not_found, in the same words whether there is such
// a thing elsewhere or not; skill_too_large), or the storage's. No content has been read.
func (r *Resolver) Resolve(ctx context.Context, t turn.Turn, a catalogue.RunCode) (codeworker.Plan, error) {
	found := &finding{resolver: r, turn: t, names: newNames()}
	for _, look := range []func(context.Context, catalogue.RunCode) error{
		found.uploads, found.artifacts, found.results, found.skills,
	} {
		if err := look(ctx, a); err != nil {
			return codeworker.Plan{}, err
		}
	}
	if len(found.missing) > 0 {
		return codeworker.Plan{}, refuseMissing(found.missing)
	}
	if found.refusal != nil {
		return codeworker.Plan{}, found.refusal
	}
	return found.plan, nil
}

// finding is one call being resolved.
type finding struct {
	resolver *Resolver
	turn     turn.Turn
	names    *names
	plan     codeworker.Plan
	missing  []missing
	// refusal is the first one about something that is there.
	refusal *call.Refusal
}

// missing is something that cannot be opened, and its id.
type missing struct {
	kind codeworker.InputKind
	id   string
}

func (f *finding) miss(kind codeworker.InputKind, id string) {
	f.missing = append(f.missing, missing{kind, id})
}

func (f *finding) refuse(r *call.Refusal) {
	if f.refusal == nil {
		f.refusal = r
	}
}

func (f *finding) add(in codeworker.Input, m codeworker.Mount) {
	f.plan.Inputs, f.plan.Mounts = append(f.plan.Inputs, in), append(f.plan.Mounts, m)
}

// tellMissing is how many of what is missing are named.
const tellMissing = 20

func refuseMissing(all []missing) *call.Refusal {
	if len(all) == 1 {
		return codeworker.InputNotFound(all[0].kind, all[0].id)
	}
	var list []string
	for _, m := range all[:min(len(all), tellMissing)] {
		list = append(list, fmt.Sprintf("%s %q", m.kind, m.id))
	}
	if more := len(all) - tellMissing; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return call.Refuse(call.InputNotFound, "These inputs are not there, or not this turn's to open: %s. Nothing was run. Use only ids that this "+
		"conversation was given, or leave them out.", strings.Join(list, ", "))
}

// once gives the items in their order, each once.
func once[T comparable](items []T) []T {
	seen := make(map[T]bool, len(items))
	var out []T
	for _, v := range items {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// contentMount mounts content as it is.
func (f *finding) contentMount(path string, c store.Content) codeworker.Mount {
	q := f.resolver.q
	return codeworker.Mount{Path: path, Size: c.Bytes, Open: func(ctx context.Context) (io.ReadCloser, error) {
		return store.ReadContent(ctx, q, c), nil
	}}
}
