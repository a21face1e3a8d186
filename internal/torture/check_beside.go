package torture

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
)

// recognise finds the acts of people by who acted, since their ids are made where they are stored; each is stored once.
func (c *inspection) recognise() {
	people, seen := map[string]*act{}, map[string]bool{}
	for _, a := range c.driver.all() {
		if a.actor != "" {
			people[a.actor] = a
		}
	}
	for _, r := range c.rows {
		a := people[r.Actor]
		if r.Actor == "" || a == nil { // one that nobody made is found as such
			continue
		}
		if seen[r.Actor] {
			c.breach("once", "the change by %s is in the ledger more than once: at %d too", r.Actor, r.Seq)
			continue
		}
		seen[r.Actor] = true
		delete(c.acts, a.key())
		a.turn, a.CallID = r.Turn, r.Call
		c.acts[a.key()] = a
	}
}

// looks holds what people saw against what was there at the time, or came later.
func (c *inspection) looks(states map[int64]map[int64]map[string][]byte) {
	first := c.counts.Generation - int64(c.driver.gen)
	for _, l := range c.driver.looks {
		of := states[first+int64(l.generation)]
		if of == nil {
			of = map[int64]map[string][]byte{l.since: {}}
		}
		if !seenIn(of, l) {
			c.breach("order", "%s was read after the call at %d was done, and it was never so from then on (there: %t):\n%s", l.path, l.since, l.there, l.content)
		}
	}
}

func seenIn(states map[int64]map[string][]byte, l look) bool {
	for seq, files := range states {
		content, is := files[l.path]
		if seq >= l.since && is == l.there && bytes.Equal(content, l.content) {
			return true
		}
	}
	return false
}

// artifacts compares every version of the conversation's artifacts with the model's.
func (c *inspection) artifacts(ctx context.Context, m *model) error {
	own := c.driver.own
	for n := range c.driver.persons {
		m.artifacts[own.person()] = append(m.artifacts[own.person()], own.version(n+1))
	}
	for _, id := range slices.Sorted(maps.Keys(m.artifacts)) {
		versions := m.artifacts[id]
		for i := range len(versions) + 1 {
			got, there, err := c.client.Artifact(ctx, id, i+1)
			switch {
			case err != nil:
				return err
			case there != (i < len(versions)):
				c.breach("order", "the artifact %s has version %d: %t, and done in order it has %d versions", id, i+1, there, len(versions))
			case there && !bytes.Equal(got, versions[i]):
				c.breach("order", "version %d of the artifact %s is\n%s\nand done in order it is\n%s", i+1, id, got, versions[i])
			}
		}
	}
	return nil
}

// putCommon makes the artifact that all conversations change.
func (t *torture) putCommon(ctx context.Context) error {
	if _, err := t.client.PutArtifact(ctx, common, asker, []byte(marker+"\n")); err != nil {
		return fmt.Errorf("put the artifact that all change: %w", err)
	}
	return nil
}

// checkCommon looks at the artifact that all conversations change: one version for each call that made one, each of them
// made from the one before it.
func (t *torture) checkCommon(ctx context.Context) error {
	made, unknown := map[int]version{}, 0
	for _, v := range t.common {
		switch other, taken := made[v.number]; {
		case v.number == 0: // its result went with its conversation
			unknown++
		case taken:
			t.breach("once", "", fmt.Sprintf("version %d of the artifact %s was made by %s and by %s", v.number, common, other.call, v.call))
		default:
			made[v.number] = v
		}
	}
	var before []byte
	for n := 1; ; n++ {
		now, there, err := t.client.Artifact(ctx, common, n)
		if err != nil {
			return err
		}
		if !there {
			if n-2 != len(made)+unknown {
				t.breach("once", "", fmt.Sprintf("the artifact %s has %d versions after its first, and %d calls made one", common, n-2, len(made)+unknown))
			}
			return nil
		}
		if v, known := made[n]; known {
			want := v.saved
			if v.insertedAbove != "" {
				want = inserted(before, v.insertedAbove)
			}
			if !bytes.Equal(now, want) {
				t.breach("once", "", fmt.Sprintf("version %d of the artifact %s, by %s, is\n%s\nand made from the one before it it is\n%s", n, common, v.call, now, want))
			}
		}
		before = now
	}
}
