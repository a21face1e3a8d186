package catalogue

import (
	"treeline/internal/call"
)

// What stands beside a content that was shortened for replay.
const (
	trimmedMark    = "trimmed"
	fullLengthMark = "fullLength"
)

// refuseTrimmed refuses a call that was copied from a shortened replay, whatever else it is. The marks stand where replay
// puts them: at the top, or in an entry of files.
func (a *arguments) refuseTrimmed() *call.Refusal {
	where, mark := "", marked(a.values)
	if entries, ok := a.values["files"].([]any); ok && mark == "" {
		for i, entry := range entries {
			if m, ok := entry.(map[string]any); ok && marked(m) != "" {
				where, mark = item("files", i)+".", marked(m)
				break
			}
		}
	}
	if mark == "" {
		return nil
	}
	return call.Refuse(call.TrimmedContent, "Nothing was done: `%s%s` marks a call of earlier, shown with only the beginning of its content. "+
		"The whole content is in the workspace. Do not send it again: read %s with read_file, then change it with edit_file.",
		where, mark, theFile(namedPaths(a.values)))
}

func marked(m map[string]any) string {
	for _, mark := range []string{trimmedMark, fullLengthMark} {
		if _, ok := m[mark]; ok {
			return mark
		}
	}
	return ""
}

func theFile(paths []string) string {
	if len(paths) == 1 {
		return quoted(paths[0])
	}
	return "the file"
}
