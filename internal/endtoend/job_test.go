package endtoend_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"treeline/internal/call"
)

// job is one job from upload to the deletion of its conversation, by people and things of its own.
type job struct {
	portal side
	fleet  *fleet
	name   string // part of each of its ids
	orders orders

	turn, second side   // those of the first two users
	report       []byte // the workbook
	artifact     string
}

func newJob(t *testing.T, f *fleet, name string, seed uint64) *job {
	t.Helper()
	return &job{portal: side{t: t, name: name, url: f.url, key: portalKey}, fleet: f, name: name, orders: makeOrders(seed)}
}

// id is the job's own id for a thing.
func (j *job) id(of string) string { return of + "-" + j.name }

// conversation is the path of one of the job's conversations, with more behind it.
func (j *job) conversation(of string, more ...string) string {
	return "/v1/conversations/" + j.id(of) + strings.Join(more, "")
}

func (j *job) do() {
	j.bring()
	j.makeReport()
	j.writeDeck()
	j.editSlide()
	j.lookAtPicture()
	j.saveReport()
	j.putBackAndForth()
	j.readArchive()
	j.readShared()
	j.refuseStranger()
	j.deleteFirst()
}

// open makes a conversation and opens a turn of a user in it.
func (j *job) open(conversation, user string, more map[string]any) side {
	j.portal.want(201, "PUT", j.conversation(conversation), nil)
	turn := map[string]any{
		"turnId": j.id("t-" + conversation), "caller": map[string]any{"user": j.id(user), "department": j.id("sales"), "collections": []string{j.id("col-" + user)}},
		"tools": []string{"run_code", "write_file", "edit_file", "read_file", "list_files", "load_skill", "save_artifact"},
		"model": map[string]any{"vision": true},
	}
	for name, value := range more {
		turn[name] = value
	}
	var opened struct{ TurnID, Token string }
	j.portal.decode(j.portal.want(201, "POST", j.conversation(conversation, "/turns"), turn).body, &opened)
	j.portal.equal("the turn's id", opened.TurnID, j.id("t-"+conversation))
	return side{t: j.portal.t, name: j.name + " " + user, url: j.portal.url, key: opened.Token}
}

// bring puts everything that the first turn is given: the table in the user's collection, a skill, and the result of a tool
// that ran elsewhere.
func (j *job) bring() {
	got := j.portal.want(201, "PUT", "/v1/uploads/"+j.id("up")+"?collection="+j.id("col-u1")+"&name=orders%202025.csv", j.orders.csv)
	j.portal.equal("the upload", string(got.body), fmt.Sprintf(`{"id":%q,"collection":%q,"name":"orders 2025.csv","bytes":%d,"sha256":%q}`,
		j.id("up"), j.id("col-u1"), len(j.orders.csv), hexSum(j.orders.csv)))

	skill := zipOf(j.portal, "SKILL.md", skillText, "style.py", skillStyle)
	j.portal.send("PUT", "/v1/skills/house-style", skill) // 201 for the first job, 200 for those after it
	got = j.portal.want(200, "PUT", "/v1/skills/house-style", skill)
	j.portal.equal("the skill", string(got.body), fmt.Sprintf(`{"name":"house-style","files":[{"path":"SKILL.md","bytes":%d},{"path":"style.py","bytes":%d}],"bytes":%d,"mountable":true}`,
		len(skillText), len(skillStyle), len(skillText)+len(skillStyle)))

	j.turn = j.open("k1", "u1", map[string]any{"skills": []string{"house-style"}})
	output := map[string]any{"toolName": "crm_notes", "isError": false, "output": map[string]any{"title": j.sheet(), "notes": j.notes()}}
	j.portal.want(201, "PUT", j.conversation("k1", "/results/crm"), output)
	got = j.portal.want(200, "PUT", j.conversation("k1", "/results/crm"), output)
	j.portal.equal("the stored result", string(got.body), `{"ref":"crm"}`)
}

// sheet is what the summary's sheet is to be called, and notes the text that a tool elsewhere has found.
func (j *job) sheet() string { return "Summary " + j.name }
func (j *job) notes() string {
	return "# Notes of " + j.name + "\r\n\nGrüße — no newline at the end"
}

// makeReport has the skill loaded and code run on the table: the workbook and the chart are there, the figure that it
// prints is right, and the picture comes back.
func (j *job) makeReport() {
	loaded := j.turn.did(0, "c0", "load_skill", map[string]any{"name": "house-style"})
	if text := call.TextOf(loaded.Content); !strings.HasPrefix(text, skillText) {
		j.turn.fatalf("the skill reads %q", text)
	}
	j.turn.equal("the skill's files", string(loaded.Data), fmt.Sprintf(`{"name":"house-style","files":[{"path":"SKILL.md","bytes":%d},{"path":"style.py","bytes":%d}],"totalBytes":%d}`,
		len(skillText), len(skillStyle), len(skillText)+len(skillStyle)))

	r := j.turn.did(1, "c1", "run_code", map[string]any{"code": makeReport, "files": []any{map[string]any{"id": j.id("up")}},
		"toolResults": []string{"crm"}, "skills": []string{"house-style"}})
	j.turn.equal("what the run changed", r.Changes, call.Changes{Created: []string{"charts/revenue.png", "report.xlsx"}, Modified: []string{}, Deleted: []string{}})
	var data runData
	j.turn.decode(r.Data, &data)
	j.turn.equal("what the run printed", data.Stdout, fmt.Sprintf("%d orders, %d cents, most in the %s\n", rows, j.orders.total(), regions[j.orders.best()]))
	j.turn.equal("its errors", data.Stderr, "")
	j.turn.equal("its exit code", data.ExitCode, 0)
	j.turn.equal("its revisions", data.Revisions, map[string]int64{"charts/revenue.png": 1, "report.xlsx": 1})
	data.Inputs[1].Bytes = 0 // a stored result is as long as its JSON was
	j.turn.equal("its inputs", data.Inputs, []input{
		{Kind: "file", ID: j.id("up"), Path: "inputs/files/orders 2025.csv", Bytes: int64(len(j.orders.csv))},
		{Kind: "toolResult", ID: "crm", Path: "inputs/tool-results/1.json"},
		{Kind: "skill", ID: "house-style", Path: "skills/house-style", Bytes: int64(len(skillText) + len(skillStyle))},
	})
	j.turn.equal("the blocks for the model", blocks(r.Content), []string{"text", "image image/png"})
	j.checkChart(r.Content[1].Data)
	j.turn.equal("the chart's bytes", hexSum(j.file("charts/revenue.png")), hexSum(r.Content[1].Data))
	j.report = j.file("report.xlsx")
	if sheet := unzip(j.turn, j.report)["xl/worksheets/sheet2.xml"]; strings.Count(sheet, "<row") != rows+1 {
		j.turn.fatalf("the workbook's second sheet has %d rows, want %d", strings.Count(sheet, "<row"), rows+1)
	}
}

// runData is what these tests read of the data of a run.
type runData struct {
	ExitCode       int
	Stdout, Stderr string
	Inputs         []input
	Revisions      map[string]int64
}

type input struct {
	Kind, ID, Path string
	Bytes          int64
	Version        int
	Note           string
}

// blocks tells the kinds of a result's blocks.
func blocks(content []call.Content) []string {
	kinds := make([]string, len(content))
	for i, c := range content {
		kinds[i] = strings.TrimSpace(c.Type + " " + c.MIMEType)
	}
	return kinds
}

// file gives a file's bytes as a person gets them.
func (j *job) file(path string) []byte {
	got := j.portal.want(200, "GET", j.conversation("k1", "/files/", path), nil)
	for header, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"} {
		j.portal.equal(header, got.header.Get(header), want)
	}
	if how := got.header.Get("Content-Disposition"); !strings.HasPrefix(how, "attachment;") {
		j.portal.fatalf("%s is served as %q", path, how)
	}
	return got.body
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// zipOf packs files, given as pairs of path and content.
func zipOf(s side, files ...string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i+1 < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err == nil {
			_, err = io.WriteString(f, files[i+1])
		}
		if err != nil {
			s.fatalf("pack %s: %v", files[i], err)
		}
	}
	if err := w.Close(); err != nil {
		s.fatalf("pack: %v", err)
	}
	return out.Bytes()
}

// unzip gives the files of an archive by path.
func unzip(s side, archive []byte) map[string]string {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		s.fatalf("open the archive: %v", err)
	}
	files := map[string]string{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			s.fatalf("open %s: %v", f.Name, err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			s.fatalf("read %s: %v", f.Name, err)
		}
		files[f.Name] = string(content)
	}
	return files
}
