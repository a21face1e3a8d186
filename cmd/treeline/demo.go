package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"treeline/internal/catalogue"
	"treeline/internal/fleet"
	"treeline/internal/workspace"
)

const (
	// demoWait bounds the whole conversation.
	demoWait = 2 * time.Minute
	// shownLines and shownWidth are how much of a result the transcript shows.
	shownLines, shownWidth = 14, 132
)

// demo starts a fleet, plays a conversation through it, prints the transcript, and stops the fleet.
func demo(ctx context.Context, cfg fleet.Config, out io.Writer) error {
	if cfg.Log.GetLevel() == zerolog.InfoLevel {
		cfg.Log = cfg.Log.Level(zerolog.ErrorLevel) // the transcript is to be read
	}
	if cfg.PortalKey == "" && cfg.PortalKeyFile == "" {
		cfg.PortalKey = uuid.NewString()
	}
	cfg.Role.Ledger.Limits.ReplacementChars = workspace.DefaultLimits().ReplacementChars // what the deck is longer than
	if cfg.CodeWorkers != 0 && cfg.CodeOptional {
		if _, err := probe(ctx, cfg.Sandbox); err != nil {
			fmt.Fprintf(out, "without run_code: %v\n", err)
			cfg.CodeWorkers = 0
		}
	}
	key, err := portalKey{Key: cfg.PortalKey, KeyFile: cfg.PortalKeyFile}.get()
	if err != nil {
		return err
	}
	return beside(ctx, cfg, func(ctx context.Context, addr string) error {
		ctx, cancel := context.WithTimeout(ctx, demoWait)
		defer cancel()
		d := &demonstration{out: out, portal: fleetURL{url: "http://" + addr, bearer: key}, conversation: "demo-" + uuid.NewString()[:8]}
		return d.play(ctx, demoScript(cfg.CodeWorkers != 0))
	})
}

// beside runs fn beside a fleet, which ends with it.
func beside(ctx context.Context, cfg fleet.Config, fn func(ctx context.Context, addr string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, ended := make(chan string, 1), make(chan error, 1)
	cfg.Ready = func(addr string) { ready <- addr }
	go func() { ended <- fleet.Run(ctx, cfg) }()
	select {
	case err := <-ended:
		return errors.Join(errors.New("the fleet did not start"), err)
	case addr := <-ready:
		err := fn(ctx, addr)
		cancel()
		return errors.Join(err, <-ended)
	}
}

type demonstration struct {
	out          io.Writer
	portal       fleetURL
	conversation string
}

// scene is one call of the conversation.
type scene struct {
	says      string
	tool      string
	arguments any
	// code is what the call is refused with; empty where it is to work.
	code string
}

func (d *demonstration) play(ctx context.Context, scenes []scene) error {
	order := turnOrder{}
	order.Caller.User, order.Caller.Department = "ada", "demonstrations"
	for _, s := range scenes {
		order.Tools = append(order.Tools, s.tool)
	}
	turnID, token, err := d.portal.openTurn(ctx, d.conversation, order)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "conversation %s, turn %s\n", d.conversation, turnID)
	caller := fleetURL{url: d.portal.url, bearer: token}
	for i, s := range scenes {
		if err := d.act(ctx, caller, fmt.Sprintf("c%d", i+1), s); err != nil {
			return err
		}
	}
	if err := d.portal.closeTurn(ctx, turnID); err != nil {
		return fmt.Errorf("close the turn: %w", err)
	}
	return d.steps(ctx)
}

func (d *demonstration) act(ctx context.Context, caller fleetURL, callID string, s scene) error {
	arguments, err := plainJSON(s.arguments)
	if err != nil {
		return fmt.Errorf("write the arguments of %s: %w", s.tool, err)
	}
	fmt.Fprintf(d.out, "\n# %s\n> %s %s\n", s.says, s.tool, cut(string(arguments), shownWidth))
	result, err := caller.call(ctx, callID, s.tool, arguments)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "< %s, seq %d, %.1f ms\n", strings.TrimSpace(string(result.Status)+" "+string(result.Code)), result.Seq,
		float64(result.FinishedAt.Sub(result.StartedAt).Microseconds())/1000)
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(shown(result), "\n"), "\n") {
		lines = append(lines, wrap(line, shownWidth)...)
	}
	for _, line := range lines[:min(len(lines), shownLines)] {
		fmt.Fprintln(d.out, "  | "+line)
	}
	if more := len(lines) - shownLines; more > 0 {
		fmt.Fprintf(d.out, "  | ... %d more lines\n", more)
	}
	if string(result.Code) != s.code {
		return fmt.Errorf("%s came back with the code %q and was to have %q", s.tool, result.Code, s.code)
	}
	return nil
}

// steps prints what the trace has kept.
func (d *demonstration) steps(ctx context.Context) error {
	var page struct {
		Steps []struct {
			CallID, Kind, Tool, Status, Code string
			Seq                              int64
			Paths                            []string
		}
	}
	if _, err := d.portal.do(ctx, http.MethodGet, "/v1/conversations/"+d.conversation+"/steps", nil, nil, &page); err != nil {
		return fmt.Errorf("read the steps: %w", err)
	}
	fmt.Fprintf(d.out, "\n# What the trace has kept of it\n")
	for _, s := range page.Steps {
		fmt.Fprintf(d.out, "  %3d  %-4s %-13s %s\n", s.Seq, s.CallID, s.Tool,
			strings.Join(append([]string{strings.TrimSpace(s.Status + " " + s.Code)}, s.Paths...), " "))
	}
	return nil
}

// cut shortens a line to at most width characters, saying so.
func cut(line string, width int) string {
	r := []rune(line)
	if len(r) <= width {
		return line
	}
	return string(r[:width-4]) + " ..."
}

// wrap breaks a long line between words.
func wrap(line string, width int) []string {
	var lines []string
	for len([]rune(line)) > width {
		at := strings.LastIndexByte(string([]rune(line)[:width]), ' ')
		if at <= 0 {
			break
		}
		lines = append(lines, line[:at])
		line = "    " + line[at+1:]
	}
	return append(lines, line)
}

// plainJSON leaves <, > and & as they are.
func plainJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

var demoFigures = []struct {
	quarter string
	revenue int
}{{"Q1", 412}, {"Q2", 438}, {"Q3", 405}, {"Q4", 511}}

// demoDeck is a page of eight slides, each line of it one that an edit can name.
func demoDeck() string {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>The year in figures</title>\n<style>\n" +
		"section { height: 100vh; padding: 4rem; font: 1.5rem sans-serif; }\nh2 { border-bottom: 4px solid teal; }\n</style>\n</head>\n<body>\n")
	titles := []string{"The year in figures", "Where we began", "Revenue by quarter", "What customers said", "What it cost", "Who joined",
		"What went wrong", "Next year"}
	for i, title := range titles {
		fmt.Fprintf(&b, "<section id=\"slide-%d\">\n<h2>%s</h2>\n", i+1, title)
		for j, f := range demoFigures {
			fmt.Fprintf(&b, "<p>%s: point %d of this slide, with a revenue of %d thousand to talk about.</p>\n", f.quarter, j+1, f.revenue)
		}
		b.WriteString("<footer>Slide of the yearly review, for everybody who was there and for those who were not.</footer>\n</section>\n")
	}
	b.WriteString("</body>\n</html>\n")
	return b.String()
}

// lineOf gives the number, from 1, of the first line that holds text, and the line.
func lineOf(content, text string) (int, string) {
	for i, line := range strings.Split(content, "\n") {
		if strings.Contains(line, text) {
			return i + 1, line
		}
	}
	return 0, ""
}

type fields map[string]any

// demoScript is the conversation; with code where a code worker runs.
func demoScript(code bool) []scene {
	deck := demoDeck()
	at, anchor := lineOf(deck, "Revenue by quarter")
	scenes := []scene{
		{"A deck is written.", catalogue.WriteFileTool, fields{"path": "deck.html", "content": deck}, ""},
		{"What is there?", catalogue.ListFilesTool, fields{}, ""},
		{"Its third slide is read.", catalogue.ReadFileTool, fields{"path": "deck.html", "startLine": at - 1, "endLine": at + 6}, ""},
		{"Writing a long file anew is refused: one slip would cost all of it.", catalogue.WriteFileTool,
			fields{"path": "deck.html", "content": strings.Replace(deck, "Revenue by quarter", "Revenue", 1)}, "whole_file_replacement"},
		{"The one slide is edited instead, by line.", catalogue.EditFileTool, fields{"path": "deck.html", "edits": []fields{
			{"startLine": at, "endLine": at, "anchor": anchor, "text": "<h2>Revenue by quarter, in thousands</h2>"}}}, ""},
		{"Where is the heading now?", catalogue.SearchFilesTool, fields{"queries": []string{"Revenue by quarter"}, "contextLines": 1}, ""},
		{"What is the sum, and how much did the year grow?", catalogue.CalculateTool, fields{"expressions": []string{
			"412 + 438 + 405 + 511", "round((511 / 412 - 1) * 1000) / 10"}}, ""},
	}
	if code {
		scenes = append(scenes, scene{"A table is drawn by a program, sealed off from everything.", catalogue.RunCodeTool, fields{"code": demoCode}, ""})
	} else {
		scenes = append(scenes, scene{"A note is written.", catalogue.WriteFileTool, fields{"path": "figures.txt", "content": "Q1 to Q4: 1766\n"}, ""})
	}
	return append(scenes, scene{"What is not needed any more is deleted.", catalogue.DeleteFileTool, fields{"path": "figures.txt"}, ""})
}

const demoCode = `import re

deck = open("workspace/deck.html").read()
figures = dict(re.findall(r"(Q\d): point \d of this slide, with a revenue of (\d+)", deck))
with open("workspace/figures.txt", "w") as table:
    for quarter, revenue in sorted(figures.items()):
        line = f"{quarter}  {revenue:>4}  {'#' * (int(revenue) // 20)}"
        print(line)
        print(line, file=table)
`

// temporaryFolder makes a data folder whose parents the database's own user can pass through.
func temporaryFolder() (string, error) {
	dir, err := os.MkdirTemp("", "treeline-demo-")
	if err != nil {
		return "", fmt.Errorf("make a temporary data folder: %w", err)
	}
	return dir, os.Chmod(dir, 0o711)
}
