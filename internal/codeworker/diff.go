package codeworker

import (
	"context"
	"strings"

	"treeline/internal/ledger"
	"treeline/internal/workspace"
)

const (
	// diffFile is the size, in bytes, of the largest file that is compared line by line, and diffAll that of all together.
	diffFile = 1 << 20
	diffAll  = 4 << 20
	// leastDiff is how many lines the diff of one file takes at least.
	leastDiff = 4
)

// diff shows what became of text files, modified ones before created ones, within the bound of a result's diff. cut says
// that changes of text files are left out; removed files are only named.
func (r *run) diff(ctx context.Context, changes []ledger.Change) (text string, cut bool) {
	var order []ledger.Change
	for _, created := range []bool{false, true} {
		for _, c := range changes {
			if changedText(c) && (c.Before == nil) == created {
				order = append(order, c)
			}
		}
	}
	var out strings.Builder
	lines, size := r.limits.DiffLines, int64(0)
	for _, c := range order {
		before, ok := r.comparable(ctx, c, &size)
		if !ok || lines < leastDiff {
			cut = true
			continue
		}
		one, short := workspace.Diff(c.Path, before, c.Content, lines)
		if one != "" && !strings.HasSuffix(one, "\n") {
			one += "\n"
		}
		lines -= strings.Count(one, "\n")
		cut = cut || short
		out.WriteString(one)
	}
	return out.String(), cut
}

// comparable gives what a file was before, nil if it was not there; false where comparing it would cost too much, or
// its bytes cannot be had now: a diff is worth less than the run.
func (r *run) comparable(ctx context.Context, c ledger.Change, size *int64) ([]byte, bool) {
	one := c.After.Bytes
	if c.Before != nil {
		one += c.Before.Bytes
	}
	if one > diffFile || *size+one > diffAll {
		return nil, false
	}
	*size += one
	if c.Before == nil {
		return nil, true
	}
	before, err := r.blobs.Get(ctx, r.work.Key.Conversation, c.Before.SHA256)
	if err != nil {
		r.Log.Warn().Err(err).Str("conversation", r.work.Key.Conversation).Msg("no diff of a changed file")
		return nil, false
	}
	return before, true
}
