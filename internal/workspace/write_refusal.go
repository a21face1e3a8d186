package workspace

import (
	"fmt"

	"treeline/internal/call"
)

// What write_file, delete_file, move_file and the guards tell a model when they change nothing.

func refuseCount(field string, got, most int) *call.Refusal {
	return call.Refuse(call.InvalidArguments, "%s: expected 1 to %d entries, got %d. Use several calls for more.", field, most, got)
}

func refuseTrimmedContent(path string) *call.Refusal {
	return call.Refuse(call.TrimmedContent, "The content for %s ends in the words by which a cut text here says that it is not whole; "+
		"written, the rest would be lost. Nothing was written. If the file is there, read_file it and change it with edit_file; to "+
		"store a tool's result whole, use source instead of content.", quoted(path))
}

// refuseReplacement names the edit that would replace a file whole. Present may be nil.
func refuseReplacement(e Entry, limits Limits, present []byte) *call.Refusal {
	if e.Kind != Text {
		return call.Refuse(call.WholeFileReplacement, "%s has %d bytes, is not text, and is not replaced whole past %d bytes. Nothing was "+
			"written. edit_file cannot change it either: change it with run_code, or write to another path.", quoted(e.Path), e.Bytes,
			limits.ReplacementChars)
	}
	first := "send"
	if !e.ReadSinceChange() {
		first = "read_file it (any part), then send"
	}
	return call.Refuse(call.WholeFileReplacement, "%s has %s and %d characters; past %d a file is not replaced whole, since what nobody "+
		"asked about would be lost. Nothing was written. Change only the lines that should differ, with edit_file. To replace it all "+
		"the same, %s the one edit %s with edit_file.", quoted(e.Path), plural(e.Lines, "line"), e.Characters, limits.ReplacementChars,
		first, wholeEdit(e, present))
}

// wholeEdit spells the one edit from the first line through the last.
func wholeEdit(e Entry, present []byte) string {
	anchor := "the text of line 1"
	if d := Split(present); len(d.Lines) > 0 && len(d.Text(1)) <= tellChars {
		anchor = string(d.Text(1))
	}
	return fmt.Sprintf(`{"startLine": 1, "endLine": %d, "anchor": %s, "text": "the new content"}`, e.Lines, quotedJSON(anchor))
}

func refuseReadFirst(e Entry) *call.Refusal {
	return call.Refuse(call.ReadFirst, "This edit replaces the whole of %s (%s, %d characters), which was not read since its last "+
		"change. Nothing was changed. read_file it first (any part of it), then send the edit again; or edit only the lines that "+
		"should differ.", quoted(e.Path), plural(e.Lines, "line"), e.Characters)
}

func refuseWriteNoChange(paths []string) *call.Refusal {
	verb := "has"
	if len(paths) > 1 {
		verb = "have"
	}
	return call.Refuse(call.NoChange, "%s already %s exactly these bytes, so nothing was written.", quotedList(paths, len(paths)), verb)
}

func refuseTwice(path string) *call.Refusal {
	return call.Refuse(call.PathClash, "The path %s is named twice in this call. Name each path once.", quoted(path))
}

func refuseTaken(e Entry, limits Limits) *call.Refusal {
	way := "Change it with run_code, or leave it and write to another path."
	if e.Kind == Text {
		way = "Change what should differ with edit_file; to replace it all, read_file it and send the one edit " + wholeEdit(e, nil) + "."
	}
	return call.Refuse(call.DeleteAfterRefusedWrite, "A write_file of %s failed earlier in this turn, and at a length of %d (the limit for "+
		"replacing is %d) it is not taken out of the way to be written again: that is the same replacement by another call. Nothing was "+
		"changed. %s", quoted(e.Path), e.Length(), limits.ReplacementChars, way)
}

func refuseSameName(path string) *call.Refusal {
	return call.Refuse(call.NoChange, "%s has this name already, so nothing was moved.", quoted(path))
}

func refuseTargetThere(path string) *call.Refusal {
	return call.Refuse(call.PathClash, "%s is there already and would be lost. Nothing was moved. Choose another name, or delete_file that "+
		"one first if it is not wanted.", quoted(path))
}
