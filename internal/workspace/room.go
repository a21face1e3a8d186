package workspace

import (
	"fmt"

	"treeline/internal/call"
)

// Room is what a workspace holds, or would hold.
type Room struct {
	Bytes int64
	Files int
}

// Room is what the tree holds now.
func (t *Tree) Room() Room { return Room{Bytes: t.bytes, Files: len(t.entries)} }

// With is what the tree would hold once each path had a file of so many bytes, in place of what it has now.
func (t *Tree) With(sizes map[string]int64) Room {
	room := t.Room()
	for path, size := range sizes {
		if e, ok := t.Get(path); ok {
			room.Bytes -= e.Bytes
		} else {
			room.Files++
		}
		room.Bytes += size
	}
	return room
}

// CheckRoom refuses (workspace_full) what would grow a workspace past a limit, counted over the whole call. What shrinks
// one that is over a lowered limit is let through.
func (l Limits) CheckRoom(now, then Room) *call.Refusal {
	bytesOver := then.Bytes > l.WorkspaceBytes && then.Bytes > now.Bytes
	filesOver := then.Files > l.WorkspaceFiles && then.Files > now.Files
	if !bytesOver && !filesOver {
		return nil
	}
	return call.Refuse(call.WorkspaceFull, "This does not fit in the workspace, so none of it was kept. The limit is %d bytes%s in %d files; "+
		"%d bytes in %d files are in use now; this call asks for %+d bytes and %+d files, which would make %d bytes in %d files. Delete what is "+
		"no longer needed, or write less.", l.WorkspaceBytes, inMiB(l.WorkspaceBytes), l.WorkspaceFiles, now.Bytes, now.Files,
		then.Bytes-now.Bytes, then.Files-now.Files, then.Bytes, then.Files)
}

func inMiB(n int64) string {
	if n < mib || n%mib != 0 {
		return ""
	}
	return fmt.Sprintf(" (%d MiB)", n/mib)
}
