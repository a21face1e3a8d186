// Package immediate answers the tools that touch no workspace and so never wait: calculate, load_skill and read_result.
package immediate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"treeline/internal/calculator"
	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/dispatch"
	"treeline/internal/ledger"
	"treeline/internal/skill"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

// Answers gives the answer of each such tool, by its name.
func Answers(pool *pgxpool.Pool, limits workspace.Limits) map[string]dispatch.Immediate {
	a := &answers{q: db.New(pool), skills: skill.New(pool, limits.SkillBytes), limits: limits}
	return map[string]dispatch.Immediate{
		catalogue.CalculateTool:  a.calculate,
		catalogue.LoadSkillTool:  a.loadSkill,
		catalogue.ReadResultTool: a.readResult,
	}
}

type answers struct {
	q      *db.Queries
	skills *skill.Store
	limits workspace.Limits
}

func answer(text string, data any) ledger.Outcome {
	return ledger.Outcome{Status: call.OK, Content: []call.Content{call.Text(text)}, Data: data}
}

type calculated struct {
	Results []calculator.Entry `json:"results"`
}

func (a *answers) calculate(_ context.Context, _ turn.Turn, arguments any) (ledger.Outcome, error) {
	results := calculator.EvaluateAll(arguments.(catalogue.Calculate).Expressions)
	lines := make([]string, len(results))
	for i, r := range results {
		lines[i] = r.Expression + " = " + r.Value
		if r.Error != "" {
			lines[i] = r.Expression + ": no value. " + r.Error
		}
	}
	return answer(strings.Join(lines, "\n"), calculated{results}), nil
}

type skillFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

type loadedSkill struct {
	Name       string      `json:"name"`
	Files      []skillFile `json:"files"`
	TotalBytes int64       `json:"totalBytes"`
}

func (a *answers) loadSkill(ctx context.Context, t turn.Turn, arguments any) (ledger.Outcome, error) {
	name := arguments.(catalogue.LoadSkill).Name
	if !slices.Contains(t.Skills, name) {
		return ledger.Outcome{}, skill.Refuse(name)
	}
	found, err := a.skills.Find(ctx, []string{name})
	if err != nil {
		return ledger.Outcome{}, err
	}
	if len(found) == 0 {
		return ledger.Outcome{}, skill.Refuse(name)
	}
	text, err := a.skills.Text(ctx, found[0])
	if err != nil {
		return ledger.Outcome{}, err
	}
	data := loadedSkill{Name: name, TotalBytes: found[0].Bytes()}
	for _, f := range found[0].Files {
		data.Files = append(data.Files, skillFile{f.Path, f.Bytes})
	}
	o := answer(strings.TrimPrefix(text, workspace.BOM)+skillFiles(data), data)
	o.Exact = true
	return o, nil
}

// skillFiles lists a skill's files below its text.
func skillFiles(s loadedSkill) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\nThe files of this skill (run_code with skills: [%q] puts them at skills/%s/):\n", s.Name, s.Name)
	for _, f := range s.Files {
		fmt.Fprintf(&b, "%s  %d bytes\n", f.Path, f.Bytes)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

type readResult struct {
	ResultRef string `json:"resultRef"`
	ToolName  string `json:"toolName"`
	IsError   bool   `json:"isError"`
	workspace.ReadLines
}

func (a *answers) readResult(ctx context.Context, t turn.Turn, arguments any) (ledger.Outcome, error) {
	args := arguments.(catalogue.ReadResult)
	r, there, err := store.Result(ctx, a.q, t.Conversation, args.ResultRef)
	if err != nil {
		return ledger.Outcome{}, err
	}
	if !there {
		return ledger.Outcome{}, call.Refuse(call.InputNotFound, "There is no stored result %q in this conversation. Use the resultRef of an "+
			"earlier result.", args.ResultRef)
	}
	text, isText := r.Text()
	if !isText {
		var indented bytes.Buffer
		if err := json.Indent(&indented, r.Output, "", "  "); err != nil {
			return ledger.Outcome{}, fmt.Errorf("read the stored result %s: %w", r.Ref, err)
		}
		text = indented.String()
	}
	shown, lines, refusal := a.limits.ReadText(text, workspace.Span{StartLine: args.StartLine, EndLine: args.EndLine, StartColumn: args.StartColumn})
	if refusal != nil {
		return ledger.Outcome{}, refusal
	}
	o := answer(shown, readResult{ResultRef: r.Ref, ToolName: r.ToolName, IsError: r.IsError, ReadLines: lines})
	o.Exact = true
	return o, nil
}
