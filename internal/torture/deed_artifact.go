package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"treeline/internal/call"
)

// version is what one version of an artifact that every conversation changes was made by: the bytes of a saved file, or a
// text that was inserted.
type version struct {
	number        int // 0 where it is not known
	call          string
	saved         []byte
	insertedAbove string
}

// access gives what the caller may do with an artifact, as far as that can be known.
func (b *belongings) access(id string, o occasion) []string {
	switch id {
	case b.lent():
		return b.rights.during(o.from, o.to)
	case b.private():
		return []string{mayNothing}
	}
	return []string{mayChange}
}

// barred gives the codes with which a caller of such rights may be refused.
func barred(rights []string) (codes []call.Code) {
	if slices.Contains(rights, mayNothing) {
		codes = append(codes, call.InputNotFound)
	}
	if slices.Contains(rights, mayRead) {
		codes = append(codes, call.ArtifactReadOnly)
	}
	return codes
}

// save saves a file as an artifact: a new one where id is empty.
func save(own *belongings, path, id string) deed {
	args := map[string]any{"path": path, "title": "saved"}
	if id != "" {
		args["artifactId"] = id
	}
	return deed{tool: "save_artifact", args: args, apply: func(m *model, o occasion) verdict {
		content, is := m.files[path]
		rights := own.access(id, o)
		codes := barred(rights)
		switch {
		case !is:
			return refused(append(codes, m.absent(path).codes...)...)
		case slices.Contains(rights, mayChange) && (len(codes) == 0 || o.status == call.OK):
			return m.saved(id, version{saved: content}, o)
		}
		return refused(codes...)
	}}
}

// editArtifact inserts a text above the marker of an artifact.
func editArtifact(own *belongings, id, text string) deed {
	return deed{tool: "edit_artifact", args: map[string]any{"artifactId": id, "find": marker, "replace": text + marker},
		apply: func(m *model, o occasion) verdict {
			rights := own.access(id, o)
			codes := barred(rights)
			if !slices.Contains(rights, mayChange) {
				return refused(codes...)
			}
			if id == common {
				if o.status == call.OK {
					return m.saved(id, version{insertedAbove: text}, o)
				}
				return refused(call.TextNotFound, call.TextNotUnique) // what it held then is not known
			}
			now := m.artifacts[id][len(m.artifacts[id])-1]
			switch n := bytes.Count(now, []byte(marker)); {
			case n == 0:
				codes = append(codes, call.TextNotFound)
			case n > 1:
				codes = append(codes, call.TextNotUnique)
			case len(codes) == 0 || o.status == call.OK:
				return m.saved(id, version{saved: inserted(now, text)}, o)
			}
			return refused(codes...)
		}}
}

func inserted(content []byte, text string) []byte {
	return bytes.Replace(content, []byte(marker), []byte(text+marker), 1)
}

// saved gives an artifact another version, and the verdict on the call that does so.
func (m *model) saved(id string, v version, o occasion) verdict {
	var data struct {
		ArtifactID string
		Version    int
		Bytes      int
	}
	var wrong error
	if o.result != nil {
		wrong = json.Unmarshal(o.result.Data, &data)
	}
	switch {
	case id == common:
		v.number, v.call = data.Version, m.doing
		m.common = append(m.common, v)
	case id != "":
		m.artifacts[id] = append(m.artifacts[id], v.saved)
	case data.ArtifactID != "":
		if _, taken := m.artifacts[data.ArtifactID]; taken {
			wrong = fmt.Errorf("the new artifact has the id %s of another", data.ArtifactID)
		}
		m.artifacts[data.ArtifactID] = [][]byte{v.saved}
	}
	return verdict{status: call.OK, codes: []call.Code{""}, check: func(call.Result) error {
		switch want := len(m.artifacts[data.ArtifactID]); {
		case wrong != nil:
			return wrong
		case id != "" && data.ArtifactID != id, data.ArtifactID == "":
			return fmt.Errorf("%q was saved, and %q was asked for", data.ArtifactID, id)
		case id == common:
			return nil // looked at when all conversations are known
		case data.Version != want || data.Bytes != len(v.saved):
			return fmt.Errorf("saved version %d with %d bytes, and done in order it is version %d with %d", data.Version, data.Bytes, want, len(v.saved))
		}
		return nil
	}}
}
