package codeworker

import (
	"context"
	"io"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/turn"
)

// Inputs opens what a run names beside the workspace.
type Inputs interface {
	// Resolve judges every id that a run names, before a byte is read: it gives what is to be mounted, or a *call.Refusal
	// (input_not_found, skill_too_large) as the error. Any other error is the system's, and the call is tried again.
	Resolve(ctx context.Context, t turn.Turn, args catalogue.RunCode) (Plan, error)
}

// Plan is what a run is to find below inputs/ and skills/.
type Plan struct {
	Mounts []Mount
	// Inputs tell what was mounted where, one for each thing that the call named, in the order in which it named them.
	Inputs []Input
}

// Size is that of all mounts together, in bytes.
func (p Plan) Size() int64 {
	var n int64
	for _, m := range p.Mounts {
		n += m.Size
	}
	return n
}

// Mount is one file to mount.
type Mount struct {
	// Path below the working folder, such as inputs/files/sales.csv.
	Path string
	Size int64
	// Open gives the bytes, as a stream.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// InputKind says what kind of thing an id names.
type InputKind string

// The kinds of inputs.
const (
	InputFile       InputKind = "file"
	InputPassages   InputKind = "passages"
	InputArtifact   InputKind = "artifact"
	InputToolResult InputKind = "toolResult"
	InputSkill      InputKind = "skill"
)

// Input is one thing that a call named.
type Input struct {
	Kind InputKind `json:"kind"`
	ID   string    `json:"id"`
	// Path is where it was mounted: a file, or the folder of a skill.
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// Version is that of an artifact.
	Version int `json:"version,omitempty"`
	// Note tells what may surprise, such as that the name was numbered because two clashed.
	Note string `json:"note,omitempty"`
}

// InputNotFound refuses an id. Its words are the same whether the id is not there or not the turn's to open.
func InputNotFound(kind InputKind, id string) *call.Refusal {
	const end = " Nothing was run. Use only ids that this conversation was given, or leave it out."
	switch kind {
	case InputFile, InputPassages:
		return call.Refuse(call.InputNotFound, "There is no upload %q that this turn may open."+end, id)
	case InputArtifact:
		return call.Refuse(call.InputNotFound, "There is no artifact %q, in the version asked for, that this turn may open."+end, id)
	case InputToolResult:
		return call.Refuse(call.InputNotFound, "There is no stored result %q in this conversation."+end, id)
	}
	return call.Refuse(call.InputNotFound, "There is no skill %q that this turn may use."+end, id)
}

func inputsTooLarge(size, most int64) *call.Refusal {
	return call.Refuse(call.InputsTooLarge, "The inputs of this run are %d bytes together; at most %d bytes are allowed. Nothing was run. "+
		"Name fewer of them in one run, and keep what the next run needs in workspace/.", size, most)
}

// NoInputs opens nothing: every id is refused.
type NoInputs struct{}

// Resolve refuses the first id that is named.
func (NoInputs) Resolve(_ context.Context, _ turn.Turn, args catalogue.RunCode) (Plan, error) {
	switch {
	case len(args.Files) > 0:
		return Plan{}, InputNotFound(InputFile, args.Files[0].ID)
	case len(args.Artifacts) > 0:
		return Plan{}, InputNotFound(InputArtifact, args.Artifacts[0].ID)
	case len(args.ToolResults) > 0:
		return Plan{}, InputNotFound(InputToolResult, args.ToolResults[0])
	case len(args.Skills) > 0:
		return Plan{}, InputNotFound(InputSkill, args.Skills[0])
	}
	return Plan{}, nil
}
