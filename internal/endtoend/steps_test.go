package endtoend_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"
	"strings"

	"treeline/internal/call"
)

// checkChart decodes the chart and measures its bars.
func (j *job) checkChart(encoded []byte) {
	chart, err := png.Decode(bytes.NewReader(encoded))
	if err != nil {
		j.turn.fatalf("the chart is no PNG: %v", err)
	}
	size := chart.Bounds().Size()
	j.turn.equal("the chart's size", size, image.Pt(600, 400))
	highest := float64(j.orders.byRegion[j.orders.best()])
	for i, region := range regions {
		x, high := (2*i+1)*size.X/(2*len(regions)), 0
		for y := range size.Y {
			if color.RGBAModel.Convert(chart.At(x, y)) == (color.RGBA{0x2a, 0x6f, 0x97, 0xff}) {
				high++
			}
		}
		if want := float64(j.orders.byRegion[i]) / highest * float64(size.Y); math.Abs(float64(high)-want) > 1 {
			j.turn.fatalf("the bar of %s is %d pixels high, want %.1f", region, high, want)
		}
	}
}

func deckText() string { return strings.Join(deck, "\n") + "\n" }

// filledLine is the slide with the figure.
func (j *job) filledLine() string {
	return fmt.Sprintf(`<section id="s2"><p>The total is %d cents.</p></section>`, j.orders.total())
}

func (j *job) filledDeck() string {
	lines := slices.Clone(deck)
	lines[slide-1] = j.filledLine()
	return strings.Join(lines, "\n") + "\n"
}

// writeDeck has the presentation written, and the stored result's text exported beside it.
func (j *job) writeDeck() {
	r := j.turn.did(2, "c2", "write_file", map[string]any{"path": "deck.html", "content": deckText()})
	j.turn.equal("what the write changed", r.Changes, call.Changes{Created: []string{"deck.html"}, Modified: []string{}, Deleted: []string{}})
	var again replayed
	j.turn.decode(r.ReplayArguments, &again)
	chars := []rune(deckText())
	j.turn.equal("what the model is sent again", again, replayed{Path: "deck.html", Content: string(chars[:200]), Trimmed: true, FullLength: len(chars)})

	r = j.turn.did(3, "c3", "write_file", map[string]any{"path": "notes.md", "source": map[string]any{"toolResult": "crm", "pointer": "/notes"}})
	j.turn.equal("the revisions of the export", revisions(j.turn, r), map[string]int64{"notes.md": 3})
	j.turn.equal("the deck's bytes", string(j.file("deck.html")), deckText())
	j.turn.equal("the notes' bytes", string(j.file("notes.md")), j.notes())
}

// replayed are the arguments of a write as they go to the model again.
type replayed struct {
	Path, Content string
	Trimmed       bool
	FullLength    int
}

func revisions(s side, r call.Result) map[string]int64 {
	var data struct{ Revisions map[string]int64 }
	s.decode(r.Data, &data)
	return data.Revisions
}

// editSlide has one line of the deck changed. The same call sent again answers the same and does nothing.
func (j *job) editSlide() {
	edit := map[string]any{"path": "deck.html", "edits": []any{map[string]any{"startLine": slide, "endLine": slide, "anchor": deck[slide-1], "text": j.filledLine()}}}
	r := j.turn.did(4, "c4", "edit_file", edit)
	j.turn.equal("what the edit changed", r.Changes, call.Changes{Created: []string{}, Modified: []string{"deck.html"}, Deleted: []string{}})
	j.turn.equal("the revisions of the edit", revisions(j.turn, r), map[string]int64{"deck.html": 4})
	var data struct{ Diff string }
	j.turn.decode(r.Data, &data)
	j.turn.equal("the diff", data.Diff, "--- a/deck.html\n+++ b/deck.html\n@@ -3,7 +3,7 @@\n "+strings.Join(deck[2:5], "\n ")+
		"\n-"+deck[slide-1]+"\n+"+j.filledLine()+"\n "+strings.Join(deck[6:9], "\n ")+"\n")
	again := j.turn.did(4, "c4", "edit_file", edit)
	j.turn.equal("the call sent again", jsonOf(again), jsonOf(r))
	j.turn.equal("the edited deck's bytes", string(j.file("deck.html")), j.filledDeck())
}

// lookAtPicture has the chart and the deck read by the model.
func (j *job) lookAtPicture() {
	r := j.turn.did(5, "c5", "read_file", map[string]any{"files": []any{
		map[string]any{"path": "charts/revenue.png"}, map[string]any{"path": "deck.html", "startLine": slide, "endLine": slide}}})
	if !slices.Contains(blocks(r.Content), "image image/png") {
		j.turn.fatalf("the picture is not shown: %v", blocks(r.Content))
	}
	j.checkChart(r.Content[slices.Index(blocks(r.Content), "image image/png")].Data)
	if text, want := call.TextOf(r.Content), fmt.Sprintf("%d\t%s", slide, j.filledLine()); !strings.Contains(text, want) {
		j.turn.fatalf("reading shows %q, want a line %q", text, want)
	}
}

// saveReport has the workbook saved as an artifact and shares it with the second user.
func (j *job) saveReport() {
	r := j.turn.did(6, "c6", "save_artifact", map[string]any{"path": "report.xlsx", "title": "Orders 2025", "sources": []string{"notes.md"}})
	if !r.Changes.Empty() {
		j.turn.fatalf("saving changed %+v", r.Changes)
	}
	var data struct{ ArtifactID string }
	j.turn.decode(r.Data, &data)
	j.artifact = data.ArtifactID
	j.turn.equal("what was saved", string(r.Data), fmt.Sprintf(`{"artifactId":%q,"version":1,"kind":"file","title":"Orders 2025","bytes":%d}`, j.artifact, len(j.report)))

	source := unzip(j.portal, j.portal.want(200, "GET", "/v1/artifacts/"+j.artifact+"/source", nil).body)
	j.portal.equal("the code in its source", source["code.py"], makeReport)
	j.portal.equal("the notes in its source", source["files/notes.md"], j.notes())
	got := j.portal.want(200, "PUT", "/v1/artifacts/"+j.artifact+"/shares", []any{map[string]any{"user": j.id("u2"), "right": "read"}})
	j.portal.equal("the shares", string(got.body), fmt.Sprintf(`{"artifactId":%q,"shares":[{"user":%q,"right":"read"}]}`, j.artifact, j.id("u2")))
	j.checkArtifact()
}

func (j *job) checkArtifact() {
	got := j.portal.want(200, "GET", "/v1/artifacts/"+j.artifact, nil)
	j.portal.equal("the artifact's bytes", hexSum(got.body), hexSum(j.report))
	j.portal.equal("the artifact's version", got.header.Get("Treeline-Version"), "1")
}

// putBackAndForth has a person take the edit of the deck back, and take that back too.
func (j *job) putBackAndForth() {
	for _, step := range []struct {
		before, seq int64
		want        string
	}{{4, 7, deckText()}, {7, 8, j.filledDeck()}} {
		got := j.portal.want(200, "POST", j.conversation("k1", "/revert"), map[string]any{"beforeSeq": step.before, "path": "deck.html"}, "Treeline-Actor", "Pat")
		j.portal.equal("the place of the revert", string(got.body), fmt.Sprintf(`{"seq":%d}`, step.seq))
		j.portal.equal("the deck that was put back", string(j.file("deck.html")), step.want)
	}
	var list struct {
		Files []struct {
			Path     string
			Bytes    int
			Revision int64
			SHA256   string
			MIMEType string
		}
		TotalFiles, TotalBytes int
	}
	j.portal.decode(j.portal.want(200, "GET", j.conversation("k1", "/files"), nil).body, &list)
	var told []string
	bytes := 0
	for _, f := range list.Files {
		content := j.file(f.Path)
		j.portal.equal("the size and hash of "+f.Path, []any{f.Bytes, f.SHA256}, []any{len(content), hexSum(content)})
		bytes += f.Bytes
		told = append(told, fmt.Sprintf("%s %d %s", f.Path, f.Revision, f.MIMEType))
	}
	j.portal.equal("the total", []int{list.TotalFiles, list.TotalBytes}, []int{4, bytes})
	j.portal.equal("the files", told, []string{"charts/revenue.png 1 image/png", "deck.html 8 text/html", "notes.md 3 text/markdown",
		"report.xlsx 1 application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"})
	j.checkHistory()
}

func (j *job) checkHistory() {
	var history struct {
		Changes []struct {
			Seq                           int64
			Path, Op, CallID, Actor, User string
		}
	}
	j.portal.decode(j.portal.want(200, "GET", j.conversation("k1", "/changes"), nil).body, &history)
	var told []string
	for _, c := range history.Changes {
		told = append(told, fmt.Sprintf("%d %s %s by %s%s", c.Seq, c.Path, c.Op, c.Actor, c.User))
	}
	u1 := j.id("u1")
	j.portal.equal("the history", told, []string{"1 charts/revenue.png created by " + u1, "1 report.xlsx created by " + u1, "2 deck.html created by " + u1,
		"3 notes.md created by " + u1, "4 deck.html modified by " + u1, "7 deck.html modified by Pat", "8 deck.html modified by Pat"})
}

// readArchive compares the workspace as one download with its files.
func (j *job) readArchive() {
	files := unzip(j.portal, j.portal.want(200, "GET", j.conversation("k1", "/archive"), nil).body)
	j.portal.equal("the archive's size", len(files), 4)
	for _, path := range []string{"charts/revenue.png", "deck.html", "notes.md", "report.xlsx"} {
		j.portal.equal(path+" in the archive", hexSum([]byte(files[path])), hexSum(j.file(path)))
	}
}

// mounted is where the artifact is for code.
func (j *job) mounted() string { return "inputs/artifacts/" + j.artifact + ".xlsx" }

func (j *job) withArtifact(code string) map[string]any {
	return map[string]any{"code": code, "artifacts": []any{map[string]any{"id": j.artifact}}}
}

// readShared has the second user's turn, in a conversation of its own, compute with the artifact, which it may not change.
func (j *job) readShared() {
	j.second = j.open("k2", "u2", nil)
	second := j.second
	r := second.did(1, "d1", "run_code", j.withArtifact(fmt.Sprintf(readReport, j.mounted(), j.sheet())))
	var data runData
	second.decode(r.Data, &data)
	second.equal("what was read of the shared workbook", data.Stdout, fmt.Sprintf("%d %d\n", j.orders.byRegion[slices.Index(regions, "north")], j.orders.total()))
	second.equal("its inputs", data.Inputs, []input{{Kind: "artifact", ID: j.artifact, Path: j.mounted(), Bytes: int64(len(j.report)), Version: 1}})
	second.refused(call.ArtifactReadOnly, "d2", "save_artifact", map[string]any{"path": "copy.txt", "artifactId": j.artifact})
	j.turn.refused(call.PathNotFound, "c9", "read_file", map[string]any{"path": "copy.txt"}) // it is in the other workspace
}

// refuseStranger has the third user's turn name the artifact, which is nobody's business of his: the refusal is that of an
// id that does not exist.
func (j *job) refuseStranger() {
	third := j.open("k3", "u3", nil)
	absent := strings.Repeat("x", len(j.artifact))
	run := func(id, artifact string) string {
		return third.refused(call.InputNotFound, id, "run_code", map[string]any{"code": "print(1)", "artifacts": []any{map[string]any{"id": artifact}}})
	}
	there, gone := run("e1", j.artifact), run("e2", absent)
	third.equal("the words", strings.ReplaceAll(there, j.artifact, "ID"), strings.ReplaceAll(gone, absent, "ID"))
	upload := func(id, upload string) string {
		return third.refused(call.InputNotFound, id, "run_code", map[string]any{"code": "print(1)", "files": []any{map[string]any{"id": upload}}})
	}
	third.equal("the words", strings.ReplaceAll(upload("e3", j.id("up")), j.id("up"), "ID"), strings.ReplaceAll(upload("e4", absent), absent, "ID"))
}

// deleteFirst deletes the first conversation: its workspace is gone, its turn is told so, and the artifact stays.
func (j *job) deleteFirst() {
	j.checkTrace()
	j.portal.want(204, "DELETE", j.conversation("k1"), nil)
	for _, path := range []string{"/files", "/files/deck.html", "/archive", "/changes"} {
		j.portal.problem(404, "conversation_deleted", "GET", j.conversation("k1", path), nil)
	}
	j.turn.refused(call.ConversationDeleted, "c10", "list_files", map[string]any{})
	j.turn.refused(call.ConversationDeleted, "c11", "run_code", map[string]any{"code": "print(1)"})
	var old call.Result
	j.turn.decode(j.turn.want(200, "GET", "/v1/calls/c1", nil).body, &old)
	j.turn.equal("a result from before", []any{old.Status, old.Code}, []any{call.Refused, call.ConversationDeleted})
	var left struct {
		Files, Bytes int
		DeletedAt    *json.RawMessage
	}
	j.portal.decode(j.portal.want(200, "GET", j.conversation("k1"), nil).body, &left)
	j.portal.equal("what is left", []any{left.Files, left.Bytes, left.DeletedAt != nil}, []any{0, 0, true})
	j.checkTrace()
	j.checkArtifact()

	r := j.second.did(3, "d3", "run_code", j.withArtifact(fmt.Sprintf(hashReport, j.mounted())))
	var data runData
	j.second.decode(r.Data, &data)
	j.second.equal("the hash of what is mounted", data.Stdout, hexSum(j.report)+"\n")
}

// checkTrace compares the first turn's trace, which outlives its conversation.
func (j *job) checkTrace() {
	var trace struct {
		Steps []struct {
			Seq                               int64
			CallID, Tool, State, Status, Code string
		}
	}
	j.portal.decode(j.portal.want(200, "GET", j.conversation("k1", "/steps?turn=", j.id("t-k1")), nil).body, &trace)
	var told []string
	for _, s := range trace.Steps {
		told = append(told, strings.TrimSpace(fmt.Sprintf("%d %s %s %s %s %s", s.Seq, s.CallID, s.Tool, s.State, s.Status, s.Code)))
	}
	j.portal.equal("the trace", told, []string{"0 c0 load_skill done ok", "1 c1 run_code done ok", "2 c2 write_file done ok", "3 c3 write_file done ok",
		"4 c4 edit_file done ok", "5 c5 read_file done ok", "6 c6 save_artifact done ok", "9 c9 read_file done refused path_not_found"})
}

// fill has code leave the largest file that there is room for, which is then read and given to code again.
func (j *job) fill() {
	s := j.open("k1", "u1", nil)
	s.did(1, "c1", "run_code", map[string]any{"code": "import os\nopen('workspace/a.bin', 'wb').write(b'\\0' + os.urandom((64 << 20) - 1))"})
	s.did(2, "c2", "read_file", map[string]any{"path": "a.bin"})
	r := s.did(3, "c3", "run_code", map[string]any{"code": "import os\nprint(os.path.getsize('workspace/a.bin'))\nos.remove('workspace/a.bin')"})
	var data runData
	s.decode(r.Data, &data)
	s.equal("the size of the largest file", data.Stdout, "67108864\n")
	s.equal("what the run changed", r.Changes, call.Changes{Created: []string{}, Modified: []string{}, Deleted: []string{"a.bin"}})
}
