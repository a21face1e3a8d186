package local

import (
	"context"
	"io"
	"strings"

	"treeline/internal/sandbox"
)

// fontsProgram has matplotlib look through the fonts, which takes it a second or more, and keep what it found.
const fontsProgram = `
import os
os.environ["MPLCONFIGDIR"] = "/work/workspace"
import matplotlib.font_manager
`

// maxFonts bounds the list of fonts that sessions are given.
const maxFonts = 4 << 20

// readyFonts finds the fonts once, where there is a use for them.
func (d *Driver) readyFonts(ctx context.Context) {
	d.mu.Lock()
	wanted := d.fonts == nil && d.runtime != nil && d.runtime.Libraries["matplotlib"] != ""
	d.mu.Unlock()
	if !wanted {
		return
	}
	fonts := d.findFonts(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fonts = fonts
}

// findFonts makes, in a sandbox, the list of fonts that matplotlib otherwise makes anew in every session. Without one it is
// slower and nothing else, so that failing is not an error.
func (d *Driver) findFonts(ctx context.Context) map[string][]byte {
	s, err := d.start(ctx, sandbox.Spec{Label: "fonts"})
	if err != nil {
		return nil
	}
	defer s.Close()
	if out, err := s.Run(ctx, sandbox.Program{Code: []byte(fontsProgram)}); err != nil || out.Reason != sandbox.OK {
		return nil
	}
	tree, err := s.Take(ctx)
	if err != nil {
		return nil
	}
	lists := map[string][]byte{}
	for _, f := range tree.Files {
		if !strings.HasPrefix(f.Path, "fontlist-") || strings.Contains(f.Path, "/") || f.Size > maxFonts {
			continue
		}
		r, err := s.Open(ctx, f.Path)
		if err != nil {
			return nil
		}
		body, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return nil
		}
		lists[f.Path] = body
	}
	return lists
}
