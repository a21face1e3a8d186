package torture

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"treeline/internal/call"
)

func TestWhatAThingMayHaveBeenAtATime(t *testing.T) {
	var l timeline[string]
	at := func(seconds int) time.Time { return time.Unix(1_000+int64(seconds), 0) }
	l.marks = []mark[string]{{"a", at(0), at(1)}, {"b", at(10), at(12)}, {"c", at(20), time.Time{}}}
	for _, c := range []struct {
		from, to int
		want     []string
	}{
		{2, 5, []string{"a"}},
		{2, 10, []string{"a", "b"}},
		{11, 11, []string{"a", "b"}},
		{13, 15, []string{"b"}},
		{13, 25, []string{"b", "c"}},
		{30, 40, []string{"b", "c"}}, // nobody knows whether the last one was done
		{0, 40, []string{"a", "b", "c"}},
	} {
		if got := l.during(at(c.from), at(c.to)); !slices.Equal(got, c.want) {
			t.Errorf("from %d to %d: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// at has a model do deeds in order, from place 1, and gives the codes.
func at(m *model, deeds ...deed) (codes []string) {
	for i, x := range deeds {
		v := x.apply(m, occasion{turn: "t", status: call.OK})
		m.did(int64(i) + 1)
		codes = append(codes, string(v.status)+" "+string(v.codes[0]))
	}
	return codes
}

func TestTheModelOfWhatPeopleDo(t *testing.T) {
	for _, c := range []struct {
		name  string
		deeds []deed
		want  []string
		files map[string]string
	}{
		{"a put makes and replaces", []deed{putByPerson("a", "1"), putByPerson("a", "2")}, []string{"ok ", "ok "}, map[string]string{"a": "2"}},
		{"a put where a folder is", []deed{putByPerson("a/b", "1"), putByPerson("a", "2")}, []string{"ok ", "refused path_clash"}, map[string]string{"a/b": "1"}},
		{"a put past the limit", []deed{putByPerson("a", "12345678901")}, []string{"refused workspace_full"}, map[string]string{}},
		{"a removal", []deed{putByPerson("a", "1"), removeByPerson("a"), removeByPerson("a")}, []string{"ok ", "ok ", "refused path_not_found"}, map[string]string{}},
		{"a revert of one file", []deed{putByPerson("a", "1"), putByPerson("b", "1"), putByPerson("a", "2"), revertByPerson(2, "a")},
			[]string{"ok ", "ok ", "ok ", "ok "}, map[string]string{"a": "1", "b": "1"}},
		{"a revert of all", []deed{putByPerson("a", "1"), putByPerson("b", "1"), putByPerson("a", "2"), revertByPerson(2, "")},
			[]string{"ok ", "ok ", "ok ", "ok "}, map[string]string{"a": "1"}},
		{"a revert of a revert", []deed{putByPerson("a", "1"), putByPerson("a", "2"), revertByPerson(2, ""), revertByPerson(3, "")},
			[]string{"ok ", "ok ", "ok ", "ok "}, map[string]string{"a": "2"}},
		{"a revert that changes nothing", []deed{putByPerson("a", "1"), revertByPerson(2, "")}, []string{"ok ", "ok "}, map[string]string{"a": "1"}},
		{"a revert of what never was", []deed{putByPerson("a", "1"), revertByPerson(1, "z")}, []string{"ok ", "refused path_not_found"}, map[string]string{"a": "1"}},
		{"a revert to where a folder is now", []deed{putByPerson("n", "1"), removeByPerson("n"), putByPerson("n/x", "2"), revertByPerson(2, "n")},
			[]string{"ok ", "ok ", "ok ", "refused path_clash"}, map[string]string{"n/x": "2"}},
		{"a revert past the beginning", []deed{revertByPerson(0, "")}, []string{"refused history_gone"}, map[string]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(Settings{WorkspaceFiles: 3, WorkspaceBytes: 10})
			if got := at(m, c.deeds...); !slices.Equal(got, c.want) {
				t.Errorf("came to %q, want %q", got, c.want)
			}
			got := map[string]string{}
			for p, b := range m.files {
				got[p] = string(b)
			}
			if string(mustJSON(got)) != string(mustJSON(c.files)) {
				t.Errorf("the files are %v, want %v", got, c.files)
			}
		})
	}
}

func TestTheModelOfArtifacts(t *testing.T) {
	own := &belongings{name: "k"}
	now := time.Now()
	own.rights.marks = []mark[string]{{mayRead, now, now}, {mayChange, now.Add(10 * time.Second), now.Add(20 * time.Second)}}
	result := func(id string, version, bytes int) *call.Result {
		return &call.Result{Status: call.OK, Data: mustJSON(map[string]any{"artifactId": id, "version": version, "bytes": bytes})}
	}
	during := func(from int, status call.Status, r *call.Result) occasion {
		return occasion{from: now.Add(time.Duration(from) * time.Second), to: now.Add(time.Duration(from+1) * time.Second), status: status, result: r}
	}
	for _, c := range []struct {
		name string
		deed deed
		o    occasion
		want string
		ok   bool // what the result says is right
	}{
		{"the next version of one's own", save(own, "a", own.document()), during(1, call.OK, result(own.document(), 2, 2)), "ok ", true},
		{"a version too far", save(own, "a", own.document()), during(1, call.OK, result(own.document(), 3, 2)), "ok ", false},
		{"another artifact than was asked for", save(own, "a", own.document()), during(1, call.OK, result("other", 2, 2)), "ok ", false},
		{"a new one", save(own, "a", ""), during(1, call.OK, result("new", 1, 2)), "ok ", true},
		{"a new one under an id that is taken", save(own, "a", ""), during(1, call.OK, result(own.private(), 1, 2)), "ok ", false},
		{"no file", save(own, "z", own.document()), during(1, call.Refused, nil), "refused path_not_found", true},
		{"somebody else's", save(own, "a", own.private()), during(1, call.OK, result(own.private(), 2, 2)), "refused input_not_found", true},
		{"one lent to read", save(own, "a", own.lent()), during(1, call.OK, result(own.lent(), 2, 2)), "refused artifact_read_only", true},
		{"one lent to change meanwhile, and refused", save(own, "a", own.lent()), during(15, call.Refused, nil), "refused artifact_read_only", true},
		{"one lent to change meanwhile, and done", save(own, "a", own.lent()), during(15, call.OK, result(own.lent(), 2, 2)), "ok ", true},
		{"one lent to change", editArtifact(own, own.lent(), "x"), during(30, call.OK, result(own.lent(), 2, len(own.begin())+1)), "ok ", true},
		{"an edit of one's own", editArtifact(own, own.document(), "x"), during(1, call.OK, nil), "ok ", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(Settings{})
			m.files["a"] = []byte("aa")
			for _, id := range []string{own.document(), own.lent(), own.private()} {
				m.artifacts[id] = [][]byte{[]byte(own.begin())}
			}
			v := c.deed.apply(m, c.o)
			if got := string(v.status) + " " + string(v.codes[0]); got != c.want {
				t.Fatalf("comes to %s, want %s", got, c.want)
			}
			if v.check == nil || c.o.result == nil {
				return
			}
			if err := v.check(*c.o.result); (err == nil) != c.ok {
				t.Errorf("what the result says is judged: %v", err)
			}
		})
	}
}

func TestWhatIsLoadedAndReadIsHeldAgainstWhatIsThere(t *testing.T) {
	own := &belongings{name: "k"}
	now := time.Now()
	own.skill.marks = []mark[string]{{"old", now, now}, {"new text", now.Add(10 * time.Second), now.Add(11 * time.Second)}}
	skill := func(text string, bytes int) call.Result {
		return call.Result{Content: []call.Content{call.Text(text + "\n\nfiles")}, Data: mustJSON(map[string]any{
			"files": []any{map[string]any{"path": "SKILL.md", "bytes": bytes}, map[string]any{"path": "fixed.txt", "bytes": len(own.skillFile())}}})}
	}
	text := func(s string) call.Result {
		return call.Result{Content: []call.Content{call.Text(s)}, Data: json.RawMessage("{}")}
	}
	early := occasion{from: now.Add(time.Second), to: now.Add(2 * time.Second)}
	for _, c := range []struct {
		name string
		deed deed
		res  call.Result
		ok   bool
	}{
		{"the text that the skill had", loadSkill(own, own.skillName()), skill("old", 3), true},
		{"a text that it had later", loadSkill(own, own.skillName()), skill("new text", 8), false},
		{"another size", loadSkill(own, own.skillName()), skill("old", 4), false},
		{"the result", readResult("r", "a\nb\n"), text("1\ta\n2\tb\n"), true},
		{"half of it", readResult("r", "a\nb\n"), text("1\ta\n"), false},
		{"another's", readResult("r", "a\n"), text("1\tx\n"), false},
	} {
		v := c.deed.apply(newModel(Settings{}), early)
		if err := v.check(c.res); (err == nil) != c.ok {
			t.Errorf("%s: judged %v", c.name, err)
		}
	}
}

func TestAPersonSeesWhatWasDoneBefore(t *testing.T) {
	states := map[int64]map[string][]byte{0: {}, 1: {"a": []byte("1")}, 2: {"a": []byte("2")}, 3: {}}
	for _, c := range []struct {
		name string
		look look
		want bool
	}{
		{"what is there", look{path: "a", since: 1, there: true, content: []byte("1")}, true},
		{"what came meanwhile", look{path: "a", since: 1, there: true, content: []byte("2")}, true},
		{"that it is gone by now", look{path: "a", since: 1}, true},
		{"what had been replaced before", look{path: "a", since: 2, there: true, content: []byte("1")}, false},
		{"what never was", look{path: "a", since: 0, there: true, content: []byte("3")}, false},
		{"an empty file where there is none", look{path: "a", since: 3, there: true, content: nil}, false},
	} {
		if got := seenIn(states, c.look); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestAPersonsChangeThatIsStoredTwiceIsFound(t *testing.T) {
	tr := &torture{shown: map[string]bool{}}
	a := &act{Request: Request{CallID: "k0.p1"}, conversation: "k0", turn: "(portal)", actor: "k0.p1"}
	d := &driver{history: &history{acts: []*act{a}}, run: tr, name: "k0"}
	c := inspection{torture: tr, driver: d, acts: map[call.Key]*act{a.key(): a}, rows: []row{
		{Turn: "p", Call: "x", Conversation: "k0", Seq: 1, Actor: "k0.p1"}, {Turn: "p", Call: "y", Conversation: "k0", Seq: 2, Actor: "k0.p1"}}}
	c.recognise()
	if c.acts[call.Key{Conversation: "k0", Turn: "p", Call: "x"}] != a || len(c.acts) != 1 {
		t.Errorf("recognised %v", c.acts)
	}
	if len(tr.report.Breaches) != 1 || tr.report.Breaches[0].Invariant != "once" {
		t.Errorf("found %+v", tr.report.Breaches)
	}
}

func TestACallThatWasCancelledSaysNothingOfThoseBeforeIt(t *testing.T) {
	h := &history{acts: []*act{
		{seq: 3, results: []call.Result{{Seq: 3, Status: call.OK}}},
		{seq: 9, results: []call.Result{{Seq: 9, Status: call.Failed, Code: call.Cancelled}}},
		{seq: 5, actor: "p", status: 200},
		{seq: 7, actor: "p", status: 202},
		{seq: 8, generation: 1, results: []call.Result{{Seq: 8, Status: call.OK}}},
	}}
	if got := h.done(0); got != 5 {
		t.Errorf("all up to %d are said to be done, want 5", got)
	}
}

func TestWhatACallerWasToldOfACallInTheLedger(t *testing.T) {
	ok := call.Result{CallID: "c", TurnID: "t", ConversationID: "k0", Status: call.OK}
	for _, c := range []struct {
		name     string
		act      *act
		dropped  bool // by a deletion
		breached bool
	}{
		{"that it is accepted", &act{accepted: true}, false, false},
		{"that its turn is closed", &act{refusals: []call.Code{call.TurnClosed}}, false, true},
		{"that its turn is closed, when it was sent again", &act{lost: true, refusals: []call.Code{call.TurnClosed}}, false, true},
		{"that its turn is closed, when it was sent again after a deletion", &act{lost: true, refusals: []call.Code{call.TurnClosed}}, true, false},
		{"that its turn is closed, when it was sent once, and a deletion came later", &act{refusals: []call.Code{call.TurnClosed}}, true, true},
		{"that its conversation is deleted", &act{refusals: []call.Code{call.ConversationDeleted}}, true, false},
		{"that its conversation is deleted, and it is not", &act{lost: true, refusals: []call.Code{call.ConversationDeleted}}, false, true},
		{"nothing", &act{unsure: true}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := &torture{shown: map[string]bool{}, monitor: &Monitor{told: map[call.Key]*Told{}}}
			tr.report.Results = map[string]int{}
			r := row{Turn: "t", Call: "c", Conversation: "k0", State: "done", Status: new(string), Result: mustJSON(ok)}
			*r.Status = string(call.OK)
			tr.monitor.told[r.key()] = &Told{Result: ok, Times: 1}
			if c.dropped {
				r.Result = nil
			}
			i := inspection{torture: tr, driver: &driver{history: &history{}, run: tr, name: "k0"}, acts: map[call.Key]*act{r.key(): c.act}}
			i.row(r)
			if got := len(tr.report.Breaches) > 0; got != c.breached {
				t.Errorf("breaches %+v", tr.report.Breaches)
			}
		})
	}
}
