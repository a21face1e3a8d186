package workspace

import (
	"bytes"

	"treeline/internal/call"
)

// Edit is one edit of an edit_file call. It is by text (Find, Replace and, as wanted, All and ExpectedMatches) or by line
// (StartLine, EndLine, Anchor, Text); a nil field was not given. Lines count from 1 and ranges include both ends;
// EndLine = StartLine-1 inserts before StartLine.
type Edit struct {
	Find            *string `json:"find,omitempty"`
	Replace         *string `json:"replace,omitempty"`
	All             *bool   `json:"all,omitempty"`
	ExpectedMatches *int    `json:"expectedMatches,omitempty"`

	StartLine *int    `json:"startLine,omitempty"`
	EndLine   *int    `json:"endLine,omitempty"`
	Anchor    *string `json:"anchor,omitempty"`
	Text      *string `json:"text,omitempty"`
}

func (e Edit) byText() bool {
	return e.Find != nil || e.Replace != nil || e.All != nil || e.ExpectedMatches != nil
}

func (e Edit) byLine() bool {
	return e.StartLine != nil || e.EndLine != nil || e.Anchor != nil || e.Text != nil
}

func (e Edit) all() bool { return e.All != nil && *e.All }

// PlanEdits gives the file that edits make of before. All edits name the file as it was, and are applied together or
// not at all; before is not changed. The guards of a workspace are PlanEdit's.
func PlanEdits(before []byte, edits []Edit) ([]byte, *call.Refusal) {
	limits := DefaultLimits()
	return planEdits(before, edits, editGuard{fits: func(size int64) *call.Refusal {
		return limits.CheckRoom(Room{Bytes: int64(len(before)), Files: 1}, Room{Bytes: size, Files: 1})
	}})
}

// PlanEdit plans the edits of the file at path as a call of edit_file does: with the guard against replacing a long file
// unread, and within the room that the workspace has left. The path is checked and there; before is its present content.
func PlanEdit(tree *Tree, limits Limits, path string, before []byte, edits []Edit) ([]byte, *call.Refusal) {
	entry, r := tree.Find(path)
	if r != nil {
		return nil, r
	}
	guard := editGuard{fits: func(size int64) *call.Refusal {
		return limits.CheckRoom(tree.Room(), tree.With(map[string]int64{path: size}))
	}}
	if entry.long(limits) && !entry.ReadSinceChange() {
		guard.whole = func() *call.Refusal { return refuseReadFirst(entry) }
	}
	return planEdits(before, edits, guard)
}

// editGuard is what stands round an edit besides the edit's own rules.
type editGuard struct {
	// fits refuses a result of so many bytes where there is no room for it.
	fits func(size int64) *call.Refusal
	// whole refuses one edit that spans the whole of the file; nil lets it be.
	whole func() *call.Refusal
}

func planEdits(before []byte, edits []Edit, guard editGuard) ([]byte, *call.Refusal) {
	if r := CheckEdits(edits); r != nil {
		return nil, r
	}
	if at := FirstBadByte(before); at >= 0 {
		return nil, refuseNotText(before[at], at)
	}
	var after []byte
	var r *call.Refusal
	if edits[0].byLine() {
		after, r = planLineEdits(Split(before), edits, guard)
	} else {
		after, r = planTextEdits(newExcerpts(before), edits, guard)
	}
	if r != nil {
		return nil, r
	}
	if bytes.Equal(before, after) {
		return nil, refuseEditNoChange(before)
	}
	if r := guard.fits(int64(len(after))); r != nil {
		return nil, r
	}
	return after, nil
}

// CheckEdits checks what needs no file: that every edit is whole and of one kind, that numbers can be a range, and that
// line ranges do not overlap. PlanEdits checks it too.
func CheckEdits(edits []Edit) *call.Refusal {
	if len(edits) == 0 {
		return refuseNoEdits()
	}
	for i, e := range edits {
		if e.byText() && e.byLine() || e.byText() != edits[0].byText() && (e.byText() || e.byLine()) {
			return refuseMixedKinds(edits, i)
		}
	}
	for i, e := range edits {
		if r := checkEdit(i, e); r != nil {
			return r
		}
	}
	if edits[0].byLine() {
		return checkOverlap(lineEdits(edits))
	}
	return nil
}

func checkEdit(i int, e Edit) *call.Refusal {
	switch {
	case !e.byText() && !e.byLine():
		return refuseField(i, "find", "find and replace, or startLine, endLine, anchor and text", "none of them", exampleText)
	case e.byText():
		return checkTextEdit(i, e)
	}
	return checkLineEdit(i, e)
}

func checkTextEdit(i int, e Edit) *call.Refusal {
	switch {
	case e.Find == nil:
		return refuseField(i, "find", "the text to replace", "nothing", exampleText)
	case e.Replace == nil:
		return refuseField(i, "replace", `the new text ("" removes)`, "nothing", exampleText)
	case *e.Find == "":
		return refuseEmptyFind(i)
	case e.ExpectedMatches != nil && !e.all():
		return refuseField(i, "expectedMatches", "to stand beside all: true", "all missing or false", exampleAll)
	case e.ExpectedMatches != nil && *e.ExpectedMatches < 1:
		return refuseField(i, "expectedMatches", "a whole number from 1", number(*e.ExpectedMatches), exampleAll)
	}
	return nil
}

func checkLineEdit(i int, e Edit) *call.Refusal {
	switch {
	case e.StartLine == nil:
		return refuseField(i, "startLine", "the first line to replace, from 1", "nothing", exampleLine)
	case e.EndLine == nil:
		return refuseField(i, "endLine", "the last line to replace (startLine - 1 to insert)", "nothing", exampleLine)
	case e.Anchor == nil:
		return refuseField(i, "anchor", "the text of line startLine", "nothing", exampleLine)
	case e.Text == nil:
		return refuseField(i, "text", `the new lines ("" removes)`, "nothing", exampleLine)
	case *e.StartLine < 1:
		return refuseField(i, "startLine", "a line number from 1", number(*e.StartLine), exampleLine)
	case *e.EndLine < *e.StartLine-1:
		return refuseField(i, "endLine", "startLine ("+number(*e.StartLine)+") or more, or "+number(*e.StartLine-1)+
			" to insert before it", number(*e.EndLine), exampleLine)
	}
	return nil
}

// span is one stretch of a file, from start up to but not including end, and the edit that replaces it.
type span struct {
	start, end, edit int
}
