package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"treeline/internal/call"
)

// person makes what people do: changes of the workspace, which have their place among the calls, and looks at it.
func (d *driver) person(ctx context.Context) error {
	path := paths[d.random.IntN(len(paths))]
	switch n := d.random.IntN(100); {
	case n < 35:
		content := fresh(d.random, fmt.Sprintf("%s.p%d", d.name, d.n+1), path == longFile && d.random.IntN(2) == 0)
		d.change(ctx, putByPerson(path, content), http.MethodPut, filePath(d.name, path), []byte(content))
	case n < 55:
		d.change(ctx, removeByPerson(path), http.MethodDelete, filePath(d.name, path), nil)
	case n < 70:
		d.revert(ctx, path)
	default:
		return d.lookAt(ctx, path)
	}
	return nil
}

// change has a person change the workspace, and waits for the answer or does not.
func (d *driver) change(ctx context.Context, x deed, method, url string, body []byte) {
	d.n++
	actor := fmt.Sprintf("%s.p%d", d.name, d.n)
	a := &act{Request: Request{CallID: actor, Tool: x.tool, Arguments: mustJSON(x.args)}, deed: x, conversation: d.name, actor: actor, turn: "(portal)",
		generation: d.gen, made: time.Now(), way: "HTTP"}
	d.add(a)
	d.run.count(&d.run.report.Calls.ByPeople)
	wait := time.Duration(d.random.IntN(3)) * time.Second
	if d.random.IntN(2) == 0 {
		d.changeOnce(ctx, a, method, url, body, wait)
		return
	}
	d.wg.Go(func() { d.changeOnce(ctx, a, method, url, body, wait) })
}

// changeOnce sends a person's change. It is not sent again: it has no id by which it would be known.
func (d *driver) changeOnce(ctx context.Context, a *act, method, url string, body []byte, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait+3*time.Second)
	defer cancel()
	c := d.run.client
	headers := map[string]string{"Treeline-Actor": a.actor, "Prefer": fmt.Sprintf("wait=%d", int(wait.Seconds()))}
	status, answer, err := c.do(ctx, method, url, c.key, json.RawMessage(body), headers)
	var out struct {
		Seq  int64
		Code call.Code
	}
	switch {
	case errors.Is(err, errUnsure):
		a.gaveUp()
		return
	case err == nil:
		err = json.Unmarshal(answer, &out)
	}
	switch {
	case err != nil || (status < 300 && out.Seq == 0) || (status >= 300 && out.Code == ""):
		d.run.breach("answers", d.name, fmt.Sprintf("the change %s: status %d, %s, %v", a.actor, status, answer, err))
		a.gaveUp()
	case status < 300:
		a.answered(status, Reply{Accepted: true, Seq: out.Seq})
	default:
		a.answered(status, Reply{Refusal: out.Code})
	}
}

func (a *act) answered(status int, r Reply) {
	a.mu.Lock()
	a.status = status
	a.mu.Unlock()
	a.note(r)
}

// revert puts a file or all of them back to before a call that is known to be done.
func (d *driver) revert(ctx context.Context, path string) {
	last := d.done(d.gen)
	if last == 0 {
		return
	}
	before := max(1, last-int64(d.random.IntN(20)))
	if d.random.IntN(2) == 0 {
		path = ""
	}
	x := revertByPerson(before, path)
	d.change(ctx, x, http.MethodPost, "/v1/conversations/"+d.name+"/revert", mustJSON(x.args))
}

// lookAt reads a file as a person does, who sees all that was known to be done before.
func (d *driver) lookAt(ctx context.Context, path string) error {
	l := look{generation: d.gen, path: path, since: d.done(d.gen)}
	var err error
	if l.content, l.there, err = d.run.client.fileIfThere(ctx, d.name, path); err != nil {
		return err
	}
	d.saw(l)
	d.run.count(&d.run.report.Calls.Looks)
	return nil
}

func putByPerson(path, content string) deed {
	return deed{tool: "portal_put", args: map[string]any{"path": path, "bytes": len(content)}, apply: func(m *model, _ occasion) verdict {
		if m.clash(path) {
			return refused(call.PathClash, call.WorkspaceFull)
		}
		next := maps.Clone(m.files)
		next[path] = []byte(content)
		return m.set(next)
	}}
}

func removeByPerson(path string) deed {
	return deed{tool: "portal_delete", args: map[string]any{"path": path}, apply: func(m *model, _ occasion) verdict {
		if _, is := m.files[path]; !is {
			return m.absent(path)
		}
		next := maps.Clone(m.files)
		delete(next, path)
		return m.set(next)
	}}
}

// revertByPerson puts a file, or with an empty path all of them, back to before a call.
func revertByPerson(before int64, path string) deed {
	args := map[string]any{"beforeSeq": before}
	if path != "" {
		args["path"] = path
	}
	return deed{tool: "portal_revert", args: args, apply: func(m *model, _ occasion) verdict {
		if before <= m.floor {
			return refused(call.HistoryGone)
		}
		was := m.states[before-1]
		if path == "" {
			return m.back(was)
		}
		next := maps.Clone(m.files)
		content, is := was[path]
		if _, now := m.files[path]; !is && !now && !m.everHad(path) {
			return m.absent(path)
		}
		delete(next, path)
		if is {
			if clashes(slices.Collect(maps.Keys(next)), path) {
				return refused(call.PathClash)
			}
			next[path] = content
		}
		return m.back(next)
	}}
}

// back makes the files what they were; where they are so already, all is well.
func (m *model) back(next map[string][]byte) verdict {
	if maps.EqualFunc(next, m.files, bytes.Equal) {
		return verdict{status: call.OK, codes: []call.Code{""}}
	}
	return m.set(maps.Clone(next))
}

// everHad reports whether there was a file of a path since the conversation began or was restored.
func (m *model) everHad(path string) bool {
	for _, files := range m.states {
		if _, had := files[path]; had {
			return true
		}
	}
	return false
}
