package fileworker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/store"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

const mib = 1 << 20

// large is a text of so many MiB with one line that is there once.
func large(size int) []byte {
	line := "one,two,three,four,five,six,seven,eight,nine,ten,eleven,twelve\n"
	return append(bytes.Repeat([]byte(line), size*mib/len(line)-1), "the last line is another one\n"...)
}

// with makes a conversation with a file, and gives a turn of it.
func (b *bench) with(conversation string, content []byte) turn.Turn {
	b.t.Helper()
	was := b.turn
	defer func() { b.turn = was }()
	b.turn = b.open(conversation, "turn-"+conversation, turn.Caller{User: "u1", Department: "d1"})
	b.run("x", "a", string(content))
	return b.turn
}

// Calls on files of the largest size, many at a time, are all done by a worker that has memory for less than one of them.
func TestLargestFilesAtOnceStayWithinMemory(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MemoryBytes = 100 * mib
	b := newBenchOf(t, cfg)
	content := large(64)
	var works []ledger.Work
	for i := range 2 {
		of := b.with(fmt.Sprintf("large-%d", i), content)
		works = append(works, b.accept(of, "edit_file", args{"path": "a", "edits": []args{{"find": "the last line is another one", "replace": "the end"}}}))
	}
	works = append(works,
		b.accept(b.with("read", content), "read_file", args{"path": "a"}),
		b.accept(b.turn, "write_file", args{"path": "small", "content": "small"}))
	var doing sync.WaitGroup
	for _, w := range works {
		doing.Go(func() {
			o, err := b.do(t.Context(), w)
			if err != nil || o.Status != call.OK {
				t.Errorf("%s in %s: %+v, %v", w.Tool, w.Key.Conversation, o.Content, err)
				return
			}
			if f, err := b.Ledger.Finish(t.Context(), w, o); err != nil || f.Result.Status != call.OK {
				t.Errorf("%s in %s: %+v, %v", w.Tool, w.Key.Conversation, f, err)
			}
		})
	}
	doing.Wait()
	if b.memory.held != 0 || b.memory.most != cfg.MemoryBytes {
		t.Errorf("%d bytes are held, and %d were at most, want 0 and %d", b.memory.held, b.memory.most, cfg.MemoryBytes)
	}
	want := workspace.NewEntry("a", append(content[:len(content)-len("the last line is another one\n")], "the end\n"...), 0).SHA256
	for i := range 2 {
		tree, err := store.Tree(t.Context(), b.Ledger.Queries(), fmt.Sprintf("large-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if e, _ := tree.Get("a"); e.SHA256 != want {
			t.Errorf("large-%d has %d bytes, and not those that the edit makes", i, e.Bytes)
		}
	}
}

// What the record of a file says already is not looked for in its bytes.
func TestALargeFileIsNotFetchedToBeRefused(t *testing.T) {
	b := newBench(t)
	b.turn = b.with("k2", large(8))
	b.ok("move_file", args{"from": "a", "to": "b"})
	r := b.refused(call.WholeFileReplacement, "write_file", args{"path": "b", "content": "short"})
	if text := call.TextOf(r.Content); !strings.Contains(text, `"anchor": "one,two,three,four`) {
		t.Errorf("it does not quote the first line: %s", text)
	}
	if b.memory.most != 0 {
		t.Errorf("%d bytes were held, want none", b.memory.most)
	}
}

func TestShares(t *testing.T) {
	b := newBudget(10 * mib)
	first, second, small := &share{budget: b}, &share{budget: b}, &share{budget: b}
	take := func(s *share, n int64) error {
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		return s.take(ctx, n)
	}
	if err := take(first, 1000*mib); err != nil || first.bytes != 10*mib {
		t.Errorf("more than there is: %v, holds %d, want all of it", err, first.bytes)
	}
	if err := take(second, 2*mib); !errors.Is(err, context.DeadlineExceeded) || second.bytes != 0 {
		t.Errorf("beside it: %v, holds %d, want it to wait", err, second.bytes)
	}
	if err := take(small, mib); err != nil || small.bytes != 0 {
		t.Errorf("a small one: %v, holds %d, want it not counted", err, small.bytes)
	}
	if err := take(first, 8*mib); err != nil || first.bytes != 8*mib {
		t.Errorf("the same call again: %v, holds %d, want what it took last", err, first.bytes)
	}
	if err := take(second, 2*mib); err != nil || b.held != 10*mib {
		t.Errorf("where there is room: %v, %d held, want %d", err, b.held, 10*mib)
	}
	first.giveBack()
	second.giveBack()
	second.giveBack()
	if b.held != 0 || b.most != 10*mib {
		t.Errorf("%d held, %d at most, want 0 and %d", b.held, b.most, 10*mib)
	}
}

func TestHowLargeEditsMakeAFile(t *testing.T) {
	text := func(s string) *string { return &s }
	all := true
	for _, c := range []struct {
		name  string
		edits []workspace.Edit
		want  int64
	}{
		{"one place", []workspace.Edit{{Find: text("a"), Replace: text("12345")}}, 105},
		{"every place", []workspace.Edit{{Find: text("ab"), Replace: text("123"), All: &all}}, 150},
		{"every place, shorter", []workspace.Edit{{Find: text("ab"), Replace: text(""), All: &all}}, 100},
		{"lines", []workspace.Edit{{Text: text("1234567")}, {Text: text("1\n")}}, 110},
		{"past the most", []workspace.Edit{{Find: text("a"), Replace: text("123456789"), All: &all}, {Text: text("1")}}, 500},
		{"nothing to find", []workspace.Edit{{Find: text(""), Replace: text("1"), All: &all}}, 100},
	} {
		if got := grown(100, c.edits, 500); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}

func TestWhatCallsTake(t *testing.T) {
	e := workspace.Entry{Bytes: 10 * mib, Lines: mib}
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"to read", toRead(e), 44 * mib},
		{"to read several, the last alone", toReadAll([]workspace.Entry{{Bytes: mib}, {Bytes: 2 * mib}, e, {Bytes: 14 * mib}}), 26*mib + 44*mib},
		{"to change", toChange(e, 5*mib), 30*mib + 48*mib},
		{"to make twice as long", toChange(e, 20*mib), 60*mib + 72*mib},
		{"to change an empty one", toChange(workspace.Entry{}, 5), 10},
		{"to put back small ones", toPutBack([]past{{size: 3 * mib}, {size: 2 * mib}}), 10 * mib},
		{"to put back many", toPutBack([]past{{size: 9 * mib}, {size: 9 * mib}}), 32 * mib},
		{"to put back a large one", toPutBack([]past{{size: 64 * mib}, {size: 9 * mib}}), 128 * mib},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, c.got, c.want)
		}
	}
}
