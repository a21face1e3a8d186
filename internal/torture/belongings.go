package torture

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// belongings are what the turns of one conversation may reach beside its workspace, and what is like it and is not to be
// reached. All of it has the conversation's name in its own, so that no other conversation has the same.
type belongings struct {
	name string
	// rights are what the conversation's caller may do with the artifact that is lent to it.
	rights timeline[string]
	// skill is the text of the skill.
	skill  timeline[string]
	skills int
	// known gives the ref and the text of a result that the caller has, or "" for none.
	known func() (ref, text string)
}

// The caller of every turn, and somebody else.
const (
	asker, department = "u1", "d1"
	stranger          = "u2"
)

// The rights that a caller may have to an artifact.
const (
	mayNothing = ""
	mayRead    = "read"
	mayChange  = "change"
)

// common is the artifact that all conversations change, in no order that is known beforehand.
const common = "common"

func (b *belongings) document() string   { return b.name + "-document" } // the caller's own
func (b *belongings) lent() string       { return b.name + "-lent" }     // somebody else's, lent and taken back
func (b *belongings) private() string    { return b.name + "-private" }  // somebody else's
func (b *belongings) person() string     { return b.name + "-person" }   // the caller's own, which only the portal changes
func (b *belongings) skillName() string  { return b.name + "-skill" }
func (b *belongings) otherSkill() string { return b.name + "-other-skill" } // is there, and is not the turn's
func (b *belongings) bound() string      { return b.name + "-bound" }       // an upload that is the turn's knowledge
func (b *belongings) collected() string  { return b.name + "-collected" }   // one in a collection of the caller's
func (b *belongings) foreign() string    { return b.name + "-foreign" }     // one in a collection of somebody else's
func (b *belongings) collection() string { return b.name + "-collection" }

// The refs of the results that the portal puts.
const (
	textRef   = "put-text"
	objectRef = "put-object"
	absentRef = "put-nothing"
)

// What each of them holds.
func (b *belongings) begin() string       { return "first of " + b.name + "\n" + marker + "\n" }
func (b *belongings) resultText() string  { return "result of " + b.name + "\nits second line\n" }
func (b *belongings) resultField() string { return "field of " + b.name + "\n" }
func (b *belongings) version(n int) []byte {
	return fmt.Appendf(nil, "version %d of what a person keeps for %s\n", n, b.name)
}
func (b *belongings) uploaded() string   { return "upload of " + b.name }
func (b *belongings) passages() []string { return []string{"passage of " + b.name, "and one more"} }
func (b *belongings) skillFile() string  { return "file of the skill of " + b.name }

func (b *belongings) turn(id string) newTurn {
	return newTurn{ID: id, Tools: allTools, Collections: []string{b.collection()}, Skills: []string{b.skillName()}, Knowledge: []string{b.bound()}}
}

// put puts everything that lasts beyond a deletion of the conversation.
func (b *belongings) put(ctx context.Context, c *Client) error {
	artifact := func(id, owner string) error {
		_, err := c.PutArtifact(ctx, id, owner, []byte(b.begin()))
		return err
	}
	upload := func(id, collection string) error {
		return c.put(ctx, "/v1/uploads/"+id+"?name=data.txt&collection="+collection, []byte(b.uploaded()))
	}
	for _, do := range []func() error{
		func() error { return artifact(b.document(), asker) },
		func() error { return artifact(b.lent(), stranger) },
		func() error { return artifact(b.private(), stranger) },
		func() error { return b.lend(ctx, c, mayRead) },
		func() error { return b.teach(ctx, c) },
		func() error { return c.put(ctx, "/v1/skills/"+b.otherSkill(), bundle("secret", b.skillFile())) },
		func() error { return upload(b.collected(), b.collection()) },
		func() error { return upload(b.bound(), "") },
		func() error { return upload(b.foreign(), "theirs") },
		func() error {
			var list []map[string]string
			for _, p := range b.passages() {
				list = append(list, map[string]string{"text": p})
			}
			return c.put(ctx, "/v1/uploads/"+b.bound()+"/passages", mustJSON(list))
		},
		func() error { return b.putResults(ctx, c) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// putResults puts the results of tools that run elsewhere, which a deletion of the conversation drops.
func (b *belongings) putResults(ctx context.Context, c *Client) error {
	for ref, output := range map[string]any{textRef: b.resultText(), objectRef: map[string]string{"field": b.resultField()}} {
		body := mustJSON(map[string]any{"toolName": "elsewhere", "isError": false, "output": output})
		if err := c.put(ctx, "/v1/conversations/"+b.name+"/results/"+ref, body); err != nil {
			return err
		}
	}
	return nil
}

// lend gives the caller a right to the artifact that is lent, or none.
func (b *belongings) lend(ctx context.Context, c *Client, right string) error {
	shares := []map[string]string{}
	switch right {
	case mayRead:
		shares = append(shares, map[string]string{"department": department, "right": "read"})
	case mayChange:
		shares = append(shares, map[string]string{"department": department, "right": "read"}, map[string]string{"user": asker, "right": "change"})
	}
	return b.rights.set(right, func() error { return c.put(ctx, "/v1/artifacts/"+b.lent()+"/shares", mustJSON(shares)) })
}

// teach gives the skill another text.
func (b *belongings) teach(ctx context.Context, c *Client) error {
	b.skills++
	text := fmt.Sprintf("# Skill %d of %s\n\nDo it this way.\n", b.skills, b.name)
	return b.skill.set(text, func() error { return c.put(ctx, "/v1/skills/"+b.skillName(), bundle(text, b.skillFile())) })
}

// bundle makes the archive of a skill.
func bundle(text, file string) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, content := range map[string]string{"SKILL.md": text, "fixed.txt": file} {
		w, err := z.Create(name)
		if err == nil {
			_, err = strings.NewReader(content).WriteTo(w)
		}
		if err != nil {
			panic(err) // a buffer takes everything
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// put puts a body, again and again until there is a certain answer.
func (c *Client) put(ctx context.Context, path string, body []byte) error {
	return c.expect(c.portal(ctx, http.MethodPut, path, json.RawMessage(body), nil))(http.StatusOK, http.StatusCreated, http.StatusNoContent)
}

// PutArtifact puts an artifact of text, or a new version of one, and gives the version's number.
func (c *Client) PutArtifact(ctx context.Context, id, owner string, content []byte) (int, error) {
	var out struct{ Version int }
	status, err := c.portal(ctx, http.MethodPut, fmt.Sprintf("/v1/artifacts/%s?kind=text&title=%s&owner=%s&department=%s", id, id, owner, department),
		json.RawMessage(content), &out)
	return out.Version, c.expect(status, err)(http.StatusOK, http.StatusCreated)
}

// Artifact reads a version of an artifact; there says whether there is one.
func (c *Client) Artifact(ctx context.Context, id string, version int) (content []byte, there bool, err error) {
	status, body, err := c.portalBody(ctx, http.MethodGet, fmt.Sprintf("/v1/artifacts/%s?version=%d", id, version), nil, nil)
	switch {
	case err != nil:
		return nil, false, err
	case status == http.StatusNotFound:
		return nil, false, nil
	case status != http.StatusOK:
		return nil, false, fmt.Errorf("read version %d of the artifact %s: status %d: %s", version, id, status, body)
	}
	return body, true, nil
}
