package input

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"treeline/internal/artifact"
	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/codeworker"
	"treeline/internal/skill"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/workspace"
)

// The folders of mounts, relative to where code starts.
const (
	filesFolder     = "inputs/files"
	passagesFolder  = "inputs/passages"
	artifactsFolder = "inputs/artifacts"
	resultsFolder   = "inputs/tool-results"
	skillsFolder    = "skills"
)

func (f *finding) uploads(ctx context.Context, a catalogue.RunCode) error {
	files := once(a.Files)
	if len(files) == 0 {
		return nil
	}
	ids := make([]string, len(files))
	for i, file := range files {
		ids[i] = file.ID
	}
	rows, err := f.resolver.q.OpenUploads(ctx, db.OpenUploadsParams{Ids: ids, Knowledge: list(f.turn.Knowledge),
		Collections: list(f.turn.Caller.Collections)})
	if err != nil {
		return fmt.Errorf("look for uploads: %w", err)
	}
	open := make(map[string]db.OpenUploadsRow, len(rows))
	for _, r := range rows {
		open[r.ID] = r
	}
	wanted := map[string]int{} // how many want each name of a file
	for _, file := range files {
		if r, ok := open[file.ID]; ok && file.Shape != catalogue.ShapePassages {
			wanted[safe(r.Name)]++
		}
	}
	for _, file := range files {
		if r, ok := open[file.ID]; ok {
			f.upload(r, file.Shape, wanted)
		} else {
			f.miss(kindOf(file.Shape), file.ID)
		}
	}
	return nil
}

func kindOf(shape string) codeworker.InputKind {
	if shape == catalogue.ShapePassages {
		return codeworker.InputPassages
	}
	return codeworker.InputFile
}

func (f *finding) upload(r db.OpenUploadsRow, shape string, wanted map[string]int) {
	own := safe(r.Name)
	in, content := codeworker.Input{Kind: kindOf(shape), ID: r.ID}, store.Content{ID: r.ContentID, Bytes: r.Bytes}
	if in.Kind == codeworker.InputPassages {
		if r.PassagesID == nil || r.PassagesBytes == nil {
			f.refuse(call.Refuse(call.InputNotFound, "The upload %q has no passages. Nothing was run. Name it with the shape %q to read its bytes.",
				r.ID, catalogue.ShapeFile))
			return
		}
		content = store.Content{ID: *r.PassagesID, Bytes: *r.PassagesBytes}
		in.Path = f.names.unique(passagesFolder, own, ".json", nil)
		own += ".json"
	} else {
		base, ending := split(own)
		in.Path = f.names.unique(filesFolder, base, ending, wanted)
	}
	in.Bytes, in.Note = content.Bytes, nameNote(r.Name, own, path.Base(in.Path))
	f.add(in, f.contentMount(in.Path, content))
}

// nameNote tells why what is mounted has not the name that its upload has; own is that name made safe.
func nameNote(name, own, mounted string) string {
	switch {
	case mounted != own && len(own) > workspace.PartBytes:
		return fmt.Sprintf("the upload's name, %q, was shortened", name)
	case mounted != own:
		return fmt.Sprintf("the upload's name, %q, was numbered because another input has it", name)
	case strings.TrimSuffix(own, ".json") != name && own != name:
		return fmt.Sprintf("the upload's name, %q, cannot be a file's as it is", name)
	}
	return ""
}

func (f *finding) artifacts(ctx context.Context, a catalogue.RunCode) error {
	seen := map[string]bool{}
	for _, named := range a.Artifacts {
		version := 0
		if named.Version != nil {
			version = *named.Version
		}
		found, err := artifact.Open(ctx, f.resolver.q, f.turn.Caller, named.ID, version)
		if errors.Is(err, store.ErrAbsent) {
			f.miss(codeworker.InputArtifact, named.ID)
			continue
		}
		if err != nil {
			return err
		}
		if seen[found.Content.ID] {
			continue
		}
		seen[found.Content.ID] = true
		f.artifact(found)
	}
	return nil
}

func (f *finding) artifact(a artifact.Artifact) {
	ending := a.Kind.Ending(a.Name)
	in := codeworker.Input{Kind: codeworker.InputArtifact, ID: a.ID, Version: a.Version, Bytes: a.Bytes,
		Path: f.names.unique(artifactsFolder, a.ID, ending, nil)}
	if path.Base(in.Path) != a.Path() {
		in.Note = "numbered because another version of the artifact is there too"
	}
	f.add(in, f.contentMount(in.Path, a.Content))
}

func (f *finding) results(ctx context.Context, a catalogue.RunCode) error {
	if len(a.ToolResults) == 0 {
		return nil
	}
	if most := f.resolver.limits.RunResults; len(a.ToolResults) > most {
		return call.Refuse(call.InvalidArguments, "toolResults names %d results, and at most %d can be mounted. Nothing was run.", len(a.ToolResults), most)
	}
	rows, err := f.resolver.q.ResultSizes(ctx, db.ResultSizesParams{ConversationID: f.turn.Conversation, Refs: a.ToolResults})
	if err != nil {
		return fmt.Errorf("look for stored results: %w", err)
	}
	sizes := make(map[string]int64, len(rows))
	for _, r := range rows {
		sizes[r.Ref] = r.Bytes
	}
	for i, ref := range a.ToolResults {
		size, ok := sizes[ref]
		if !ok {
			f.miss(codeworker.InputToolResult, ref)
			continue
		}
		in := codeworker.Input{Kind: codeworker.InputToolResult, ID: ref, Path: fmt.Sprintf("%s/%d.json", resultsFolder, i+1), Bytes: size}
		f.add(in, f.resultMount(in.Path, ref, size))
	}
	return nil
}

// resultEnvelope is how many bytes what is mounted of a stored result has beyond its output, at most.
const resultEnvelope = 16 << 10

// resultMount mounts a stored result as one JSON object; size is its output's. The output keeps its bytes as they are.
func (f *finding) resultMount(path, ref string, size int64) codeworker.Mount {
	q, conversation := f.resolver.q, f.turn.Conversation
	return codeworker.Mount{Path: path, Size: size + resultEnvelope, Open: func(ctx context.Context) (io.ReadCloser, error) {
		r, there, err := store.Result(ctx, q, conversation, ref)
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, fmt.Errorf("read the stored result %s: %w", ref, store.ErrAbsent)
		}
		tool, err := json.Marshal(r.ToolName)
		if err != nil {
			return nil, fmt.Errorf("encode the stored result %s: %w", ref, err)
		}
		head := fmt.Sprintf(`{"ref":"%s","toolName":%s,"isError":%t,"output":`, r.Ref, tool, r.IsError)
		return io.NopCloser(io.MultiReader(strings.NewReader(head), bytes.NewReader(r.Output), strings.NewReader("}\n"))), nil
	}}
}

func (f *finding) skills(ctx context.Context, a catalogue.RunCode) error {
	var names []string
	asked := once(a.Skills)
	for _, name := range asked {
		if slices.Contains(f.turn.Skills, name) {
			names = append(names, name)
		}
	}
	found, err := f.resolver.skills.Find(ctx, names)
	if err != nil {
		return err
	}
	for _, name := range asked {
		i := slices.IndexFunc(found, func(s skill.Skill) bool { return s.Name == name })
		if i < 0 {
			f.miss(codeworker.InputSkill, name)
			continue
		}
		f.skill(found[i])
	}
	return nil
}

func (f *finding) skill(s skill.Skill) {
	if most := f.resolver.limits.SkillBytes; s.Bytes() > most {
		f.refuse(call.Refuse(call.SkillTooLarge, "The skill %s has %d bytes of files, and at most %d can be mounted. Nothing was run. Leave "+
			"it out of skills; load_skill still gives its text.", s.Name, s.Bytes(), most))
		return
	}
	folder := skillsFolder + "/" + s.Name
	f.plan.Inputs = append(f.plan.Inputs, codeworker.Input{Kind: codeworker.InputSkill, ID: s.Name, Path: folder, Bytes: s.Bytes()})
	// Its files share a reader, which fetches the small ones of them together.
	var reader *skill.Reader
	var of context.Context
	for _, file := range s.Files {
		f.plan.Mounts = append(f.plan.Mounts, codeworker.Mount{Path: folder + "/" + file.Path, Size: file.Bytes,
			Open: func(ctx context.Context) (io.ReadCloser, error) {
				if reader == nil || of != ctx {
					reader, of = f.resolver.skills.Reader(ctx, s), ctx
				}
				return io.NopCloser(reader.Open(file)), nil
			}})
	}
}

// list gives a list that is never nil: a nil one would be SQL's null.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
