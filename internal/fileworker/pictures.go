package fileworker

import (
	"errors"
	"fmt"

	"treeline/internal/call"
	"treeline/internal/picture"
	"treeline/internal/workspace"
)

// pictures shows pictures to turns that can see, and describes them to others. Decoding takes memory, so that one picture
// is worked on at a time.
func (w *Worker) pictures(vision bool) workspace.PictureFunc {
	return func(content []byte) (workspace.Picture, bool) {
		if _, is := picture.Sniff(content); !is {
			return workspace.Picture{}, false
		}
		if !vision {
			return described(content), true
		}
		w.decoding.Lock()
		defer w.decoding.Unlock()
		p, err := picture.Reduce(content, w.pictureBounds())
		if err != nil {
			return notShown(content, err), true
		}
		out := workspace.Picture{
			Block:    &call.Content{Type: "image", Data: p.Data, MIMEType: p.MIMEType},
			MIMEType: p.Original.MIMEType, Width: p.Original.Width, Height: p.Original.Height,
			Words: fmt.Sprintf("a picture, %s, %d x %d pixels", p.Original.MIMEType, p.Original.Width, p.Original.Height),
		}
		if p.Width != p.Original.Width || p.Height != p.Original.Height {
			out.Words += fmt.Sprintf(", shown reduced to %d x %d", p.Width, p.Height)
		}
		return out, true
	}
}

func (w *Worker) pictureBounds() picture.Bounds {
	b := picture.DefaultBounds()
	b.Edge, b.Bytes, b.Memory = w.limits.ImageEdge, w.limits.ImageBytes, pictureMemory
	return b
}

// pictureMemory is what decoding one picture may take, in bytes.
const pictureMemory = 160 << 20

func described(content []byte) workspace.Picture {
	info, err := picture.Inspect(content)
	if err != nil {
		return notShown(content, err)
	}
	return workspace.Picture{MIMEType: info.MIMEType, Width: info.Width, Height: info.Height,
		Words: fmt.Sprintf("a picture, %s, %d x %d pixels; it was left out because the model of this turn cannot see pictures",
			info.MIMEType, info.Width, info.Height)}
}

func notShown(content []byte, err error) workspace.Picture {
	mime, _ := picture.Sniff(content)
	p := workspace.Picture{MIMEType: mime, Words: fmt.Sprintf("a picture (%s) that cannot be shown: %s", mime, err)}
	var bad *picture.Error
	if errors.As(err, &bad) {
		p.Width, p.Height = bad.Info.Width, bad.Info.Height
	}
	return p
}
