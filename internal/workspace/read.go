package workspace

import (
	"fmt"
	"strings"

	"treeline/internal/call"
)

// ContentFunc gives the bytes of the file at a path of the tree. They are not changed. An error is the storage's, and ends
// the whole call.
type ContentFunc func(path string) ([]byte, error)

// Picture is what a model gets of a file that is a picture.
type Picture struct {
	// Block is the picture itself, or nil where the model has no vision or the picture cannot be decoded.
	Block *call.Content
	// Words say what the picture is, or why it is not shown.
	Words string
	// MIMEType, Width and Height, in pixels, are the file's own; 0 where the picture cannot be decoded.
	MIMEType      string
	Width, Height int
}

// PictureFunc looks at the bytes of a file that is not text and reports whether it is a picture.
type PictureFunc func(content []byte) (Picture, bool)

// ReadRequest asks for lines of one file.
type ReadRequest struct {
	Path string `json:"path"`
	Span
}

// ReadFile is the entry of one path in a read's data. Of the embedded parts one is set: lines of a text, a description of
// another file, or why it could not be read.
type ReadFile struct {
	Path     string `json:"path"`
	Revision int64  `json:"revision,omitempty"`
	*ReadLines
	*ReadBinary
	*ReadFailure
}

// ReadBinary describes a file that is not text. Width and Height are a picture's.
type ReadBinary struct {
	MIMEType string `json:"mimeType"`
	Width    int    `json:"width,omitempty"`
	Height   int    `json:"height,omitempty"`
	Bytes    int64  `json:"bytes"`
}

// ReadFailure says why a path could not be read.
type ReadFailure struct {
	Code    call.Code `json:"code"`
	Message string    `json:"message"`
}

// ReadData is what read_file answers to programs.
type ReadData struct {
	Files []ReadFile `json:"files"`
}

// Read answers read_file for one path or several, in the order asked. A path among several that cannot be read fails alone;
// where none can, the error is a *call.Refusal with the first one's code. Any other error is the storage's.
func (t *Tree) Read(requests []ReadRequest, l Limits, content ContentFunc, picture PictureFunc) ([]call.Content, ReadData, error) {
	r := reader{tree: t, limits: l, content: content, picture: picture, budget: l.ReadChars, several: len(requests) > 1}
	var first *call.Refusal
	failed := 0
	for _, request := range requests {
		refusal, err := r.read(request)
		if err != nil {
			return nil, ReadData{}, err
		}
		if refusal == nil {
			continue
		}
		if failed++; first == nil {
			first = refusal
		}
		r.fail(request.Path, refusal)
	}
	if first != nil && failed == len(requests) {
		return nil, ReadData{}, r.refusal(first)
	}
	return r.blocks(), ReadData{Files: r.files}, nil
}

// reader is one call of Read under way.
type reader struct {
	tree    *Tree
	limits  Limits
	content ContentFunc
	picture PictureFunc
	several bool

	budget int
	done   []call.Content
	text   strings.Builder
	files  []ReadFile
}

func (r *reader) read(request ReadRequest) (*call.Refusal, error) {
	path, refusal := Path(request.Path)
	if refusal == nil {
		refusal = request.Check()
	}
	if refusal != nil {
		return refusal, nil
	}
	e, refusal := r.tree.Find(path)
	if refusal != nil {
		return refusal, nil
	}
	content, err := r.content(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if IsText(content) {
		return r.lines(e, content, request.Span), nil
	}
	r.binary(e, content)
	return nil, nil
}

func (r *reader) lines(e Entry, content []byte, span Span) *call.Refusal {
	shown, lines, refusal := r.limits.readLines(textBody(content), span, &r.budget)
	if refusal != nil {
		return call.Refuse(refusal.Code, "%s: %s", quoted(e.Path), refusal.Text)
	}
	if r.several || !lines.whole(span) || lines.TotalLines == 0 {
		r.header("%s (%s)", e.Path, lines.describe(span))
	}
	r.text.WriteString(shown)
	if lines.Cut != "" {
		r.text.WriteString(r.limits.cutLine(lines))
	}
	r.files = append(r.files, ReadFile{Path: e.Path, Revision: e.Revision, ReadLines: &lines})
	return nil
}

// describe says which lines are shown.
func (r ReadLines) describe(span Span) string {
	switch {
	case r.TotalLines == 0:
		return "empty, 0 lines"
	case r.EndLine < r.StartLine:
		return fmt.Sprintf("none of its %s is shown", counted(r.TotalLines, "line"))
	case r.whole(span):
		return counted(r.TotalLines, "line")
	}
	from := ""
	if span.StartColumn > 1 {
		from = fmt.Sprintf(", from column %d", span.StartColumn)
	}
	if r.EndLine == r.StartLine {
		return fmt.Sprintf("line %d of %d%s", r.StartLine, r.TotalLines, from)
	}
	return fmt.Sprintf("lines %d to %d of %d%s", r.StartLine, r.EndLine, r.TotalLines, from)
}

func (r *reader) binary(e Entry, content []byte) {
	entry := ReadFile{Path: e.Path, Revision: e.Revision, ReadBinary: &ReadBinary{Bytes: int64(len(content))}}
	if p, ok := r.picture(content); ok {
		entry.MIMEType, entry.Width, entry.Height = p.MIMEType, p.Width, p.Height
		r.header("%s: %s", e.Path, p.Words)
		if p.Block != nil {
			r.flush()
			r.done = append(r.done, *p.Block)
		}
	} else {
		kind := sniff(content)
		entry.MIMEType = kind.mime
		r.header("%s", kind.describe(e.Path, content))
	}
	r.files = append(r.files, entry)
}

func (r *reader) fail(path string, refusal *call.Refusal) {
	r.header("%s could not be read (%s). %s", quoted(path), refusal.Code, refusal.Text)
	r.files = append(r.files, ReadFile{Path: path, ReadFailure: &ReadFailure{Code: refusal.Code, Message: refusal.Text}})
}

// header writes a line of its own, apart from what stands before it.
func (r *reader) header(format string, args ...any) {
	if s := r.text.String(); s != "" {
		if !strings.HasSuffix(s, "\n") {
			r.text.WriteByte('\n')
		}
		r.text.WriteByte('\n')
	}
	fmt.Fprintf(&r.text, format+"\n", args...)
}

func (r *reader) flush() {
	if r.text.Len() > 0 {
		r.done = append(r.done, call.Text(strings.TrimSuffix(r.text.String(), "\n")))
		r.text.Reset()
	}
}

func (r *reader) blocks() []call.Content {
	r.flush()
	if len(r.done) == 0 {
		r.done = append(r.done, call.Text(""))
	}
	return r.done
}

// refusal is the first one's where it is the only one, else it tells of all.
func (r *reader) refusal(first *call.Refusal) *call.Refusal {
	if !r.several {
		return first
	}
	r.flush()
	return call.Refuse(first.Code, "None of the files could be read.\n\n%s", r.done[0].Text)
}
