package call

import "fmt"

// Code is the one word that tells a program why a call was refused or failed. It is empty for a call that is ok.
type Code string

// The codes of refusals. Where a code is an answer of the moment it is never stored: see Momentary.
const (
	TurnUnknown             Code = "turn_unknown"
	TurnClosed              Code = "turn_closed"
	ToolNotOffered          Code = "tool_not_offered"
	ConversationDeleted     Code = "conversation_deleted"
	InvalidArguments        Code = "invalid_arguments"
	TooLarge                Code = "too_large"
	Busy                    Code = "busy"
	CallIDReused            Code = "call_id_reused"
	PathInvalid             Code = "path_invalid"
	PathInSandboxForm       Code = "path_in_sandbox_form"
	PathClash               Code = "path_clash"
	PathLookalike           Code = "path_lookalike"
	PathNotFound            Code = "path_not_found"
	PathIsFolder            Code = "path_is_folder"
	NotText                 Code = "not_text"
	ContentAndSource        Code = "content_and_source"
	BatchMalformed          Code = "batch_malformed"
	SourceNotFound          Code = "source_not_found"
	SourceNotText           Code = "source_not_text"
	WholeFileReplacement    Code = "whole_file_replacement"
	TrimmedContent          Code = "trimmed_content"
	MixedEditKinds          Code = "mixed_edit_kinds"
	RangesOverlap           Code = "ranges_overlap"
	TextNotFound            Code = "text_not_found"
	TextNotUnique           Code = "text_not_unique"
	EmptyFind               Code = "empty_find"
	RangeOutOfFile          Code = "range_out_of_file"
	AnchorMoved             Code = "anchor_moved"
	AnchorIsLastLine        Code = "anchor_is_last_line"
	RepeatsNextLine         Code = "repeats_next_line"
	NoChange                Code = "no_change"
	ReadFirst               Code = "read_first"
	DeleteAfterRefusedWrite Code = "delete_after_refused_write"
	WorkspaceFull           Code = "workspace_full"
	InputNotFound           Code = "input_not_found"
	InputsTooLarge          Code = "inputs_too_large"
	SkillTooLarge           Code = "skill_too_large"
	ArtifactReadOnly        Code = "artifact_read_only"
	ArtifactNotText         Code = "artifact_not_text"
	HistoryGone             Code = "history_gone"
)

// The codes of failures.
const (
	Raised         Code = "raised"
	Timeout        Code = "timeout"
	OutOfMemory    Code = "out_of_memory"
	Cancelled      Code = "cancelled"
	TreeUnreadable Code = "tree_unreadable"
	SandboxLost    Code = "sandbox_lost"
	WorkerLost     Code = "worker_lost"
	Internal       Code = "internal"
)

// Momentary reports whether a code is an answer of the moment: it is not stored under the call id, so that sending the
// call again is a fresh try.
func (c Code) Momentary() bool {
	switch c {
	case Busy, TooLarge, TurnUnknown, TurnClosed, ConversationDeleted:
		return true
	}
	return false
}

// Refusal is an error that changed nothing and whose Text tells a model what to do instead.
type Refusal struct {
	Code Code
	Text string
	// CallID is set where a step of several calls was refused for one of them.
	CallID string
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Text }

// Refuse makes a refusal; the text is for the model and is built as by fmt.Sprintf.
func Refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Text: fmt.Sprintf(format, args...)}
}
