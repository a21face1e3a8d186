package codeworker

import (
	"fmt"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/picture"
)

// pictureMemory is what decoding one picture may take, in bytes.
const pictureMemory = 160 << 20

// pictures gives the first few pictures that a run made or changed, and a sentence about each.
func (r *run) pictures(changes []ledger.Change) (blocks []call.Content, words []string) {
	found := 0
	for _, c := range changes {
		if c.After == nil {
			continue
		}
		if _, is := picture.Sniff(c.Content); !is {
			continue
		}
		if found++; found > r.limits.RunImages {
			continue
		}
		block, about := r.picture(c)
		words = append(words, shown(c.Path)+": "+about+".")
		if block != nil {
			blocks = append(blocks, *block)
		}
	}
	if more := found - r.limits.RunImages; more > 0 {
		words = append(words, fmt.Sprintf("%d more pictures are not shown here; read_file shows them.", more))
	}
	return blocks, words
}

// picture reduces one picture, one at a time in this worker. A picture that cannot be shown is described.
func (r *run) picture(c ledger.Change) (*call.Content, string) {
	if !r.work.Turn.Vision {
		info, err := picture.Inspect(c.Content)
		if err != nil {
			return nil, "a picture that cannot be shown: " + err.Error()
		}
		return nil, fmt.Sprintf("a picture, %s, %d x %d pixels, left out because the model of this turn cannot see pictures", info.MIMEType,
			info.Width, info.Height)
	}
	r.decoding.Lock()
	defer r.decoding.Unlock()
	bounds := picture.DefaultBounds()
	bounds.Edge, bounds.Bytes, bounds.Memory = r.limits.ImageEdge, r.limits.ImageBytes, pictureMemory
	p, err := picture.Reduce(c.Content, bounds)
	if err != nil {
		return nil, "a picture that cannot be shown: " + err.Error()
	}
	about := fmt.Sprintf("a picture, %s, %d x %d pixels", p.Original.MIMEType, p.Original.Width, p.Original.Height)
	if p.Width != p.Original.Width || p.Height != p.Original.Height {
		about += fmt.Sprintf(", shown reduced to %d x %d", p.Width, p.Height)
	}
	return &call.Content{Type: "image", Data: p.Data, MIMEType: p.MIMEType}, about
}
