package catalogue

import (
	"encoding/json"
	"fmt"

	"treeline/internal/workspace"
)

// ListFiles is what list_files was asked. An empty Path is the root, an empty Glob every file.
type ListFiles struct {
	Path string `json:"path"`
	Glob string `json:"glob"`
}

// SearchFiles is what search_files was asked: 1 to 5 literal strings.
type SearchFiles struct {
	Queries      []string `json:"queries"`
	Path         string   `json:"path"`
	Glob         string   `json:"glob"`
	ContextLines int      `json:"contextLines"`
	IgnoreCase   bool     `json:"ignoreCase"`
}

// ReadTarget is one stretch of a file to read. Lines and columns count from 1; 0 is one that was not given.
type ReadTarget struct {
	Path        string `json:"path"`
	StartLine   int    `json:"startLine"`
	EndLine     int    `json:"endLine"`
	StartColumn int    `json:"startColumn"`
}

// ReadFile is what read_file was asked: 1 to 10 targets. Single says that the call named its one file by path.
type ReadFile struct {
	Files  []ReadTarget
	Single bool
}

// Source names a stored result whose text is to be written. A nil Pointer is the whole output.
type Source struct {
	ToolResult string  `json:"toolResult"`
	Pointer    *string `json:"pointer"`
}

// WriteTarget is one file to write; of Content and Source exactly one is there.
type WriteTarget struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
	Source  *Source `json:"source"`
}

// WriteFile is what write_file was asked: 1 to 3 files. Single says that the call named its one file by path.
type WriteFile struct {
	Files  []WriteTarget
	Single bool
}

// EditFile is what edit_file was asked: at least one edit, all of one kind.
type EditFile struct {
	Path  string           `json:"path"`
	Edits []workspace.Edit `json:"edits"`
}

// DeleteFile is what delete_file was asked: 1 to 20 paths, each once.
type DeleteFile struct {
	Paths []string
}

// MoveFile is what move_file was asked.
type MoveFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// The shapes in which an upload is mounted.
const (
	ShapeFile     = "file"
	ShapePassages = "passages"
)

// RunFile names an upload to mount and its shape, ShapeFile where none was given.
type RunFile struct {
	ID    string `json:"id"`
	Shape string `json:"shape"`
}

// RunArtifact names an artifact to mount; a nil Version is the newest.
type RunArtifact struct {
	ID      string `json:"id"`
	Version *int   `json:"version"`
}

// RunCode is what run_code was asked. A TimeoutSeconds of 0 is one that was not given.
type RunCode struct {
	Code           string        `json:"code"`
	Files          []RunFile     `json:"files"`
	Artifacts      []RunArtifact `json:"artifacts"`
	ToolResults    []string      `json:"toolResults"`
	Skills         []string      `json:"skills"`
	TimeoutSeconds int           `json:"timeoutSeconds"`
}

// Calculate is what calculate was asked: 1 to 20 expressions.
type Calculate struct {
	Expressions []string `json:"expressions"`
}

// SaveArtifact is what save_artifact was asked. An empty ArtifactID makes a new artifact.
type SaveArtifact struct {
	Path       string   `json:"path"`
	Title      string   `json:"title"`
	ArtifactID string   `json:"artifactId"`
	Sources    []string `json:"sources"`
}

// EditArtifact is what edit_artifact was asked; Find is not empty.
type EditArtifact struct {
	ArtifactID string `json:"artifactId"`
	Find       string `json:"find"`
	Replace    string `json:"replace"`
}

// LoadSkill is what load_skill was asked.
type LoadSkill struct {
	Name string `json:"name"`
}

// ReadResult is what read_result was asked. Lines and columns count from 1; 0 is one that was not given.
type ReadResult struct {
	ResultRef   string `json:"resultRef"`
	StartLine   int    `json:"startLine"`
	EndLine     int    `json:"endLine"`
	StartColumn int    `json:"startColumn"`
}

// PortalPut is a person's upload; Staged is the id under which its bytes wait.
type PortalPut struct {
	Path   string `json:"path"`
	Staged string `json:"staged"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // lower-case hex
}

// PortalDelete is a person's removal of one file.
type PortalDelete struct {
	Path string `json:"path"`
}

// PortalRevert puts one file, or with an empty Path the whole tree, back to what it was before the call BeforeSeq.
type PortalRevert struct {
	BeforeSeq int64  `json:"beforeSeq"`
	Path      string `json:"path,omitempty"`
}

// Decode gives the typed arguments of a call (ListFiles for list_files and so on, by value) from the arguments that Check
// gave for storing. Others may be an error or lose what they hold too much.
func Decode(tool string, arguments []byte) (any, error) {
	decode, ok := decoders[tool]
	if !ok {
		return nil, fmt.Errorf("decoding arguments: there is no tool %q", tool)
	}
	typed, err := decode(arguments)
	if err != nil {
		return nil, fmt.Errorf("decoding the arguments of %s: %w", tool, err)
	}
	return typed, nil
}

var decoders = map[string]func([]byte) (any, error){
	ListFilesTool:    plain[ListFiles],
	SearchFilesTool:  plain[SearchFiles],
	ReadFileTool:     decodeRead,
	WriteFileTool:    decodeWrite,
	EditFileTool:     plain[EditFile],
	DeleteFileTool:   decodeDelete,
	MoveFileTool:     plain[MoveFile],
	RunCodeTool:      decodeRun,
	CalculateTool:    plain[Calculate],
	SaveArtifactTool: plain[SaveArtifact],
	EditArtifactTool: plain[EditArtifact],
	LoadSkillTool:    plain[LoadSkill],
	ReadResultTool:   plain[ReadResult],
	PortalPutTool:    plain[PortalPut],
	PortalDeleteTool: plain[PortalDelete],
	PortalRevertTool: plain[PortalRevert],
}

func plain[T any](raw []byte) (any, error) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err
}

func decodeRead(raw []byte) (any, error) {
	var v struct {
		ReadTarget
		Files []ReadTarget `json:"files"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	if v.Files != nil {
		return ReadFile{Files: v.Files}, nil
	}
	return ReadFile{Files: []ReadTarget{v.ReadTarget}, Single: true}, nil
}

func decodeWrite(raw []byte) (any, error) {
	var v struct {
		WriteTarget
		Files []WriteTarget `json:"files"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	if v.Files != nil {
		return WriteFile{Files: v.Files}, nil
	}
	return WriteFile{Files: []WriteTarget{v.WriteTarget}, Single: true}, nil
}

func decodeDelete(raw []byte) (any, error) {
	var v struct {
		Path  string   `json:"path"`
		Paths []string `json:"paths"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	if v.Paths != nil {
		return DeleteFile{Paths: v.Paths}, nil
	}
	return DeleteFile{Paths: []string{v.Path}}, nil
}

func decodeRun(raw []byte) (any, error) {
	var v RunCode
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	for i := range v.Files {
		if v.Files[i].Shape == "" {
			v.Files[i].Shape = ShapeFile
		}
	}
	return v, nil
}
