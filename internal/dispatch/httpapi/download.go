package httpapi

import (
	"archive/zip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"treeline/internal/store"
)

// content reads a file's bytes out of the database a piece at a time, whenever and wherever they are asked for.
type content struct {
	ctx          context.Context
	library      Library
	conversation string
	file         store.File
	at           int64
	number       int // of the piece at hand; -1 is none
	piece        []byte
}

func newContent(ctx context.Context, library Library, conversation string, f store.File) *content {
	return &content{ctx: ctx, library: library, conversation: conversation, file: f, number: -1}
}

// check reads the first piece, so that bytes that cannot be read are told before an answer has begun.
func (c *content) check() error { return c.load(0) }

func (c *content) load(number int) error {
	if c.number == number {
		return nil
	}
	piece, err := c.library.Piece(c.ctx, c.conversation, c.file.SHA256, number)
	if err != nil {
		return err
	}
	want := min(store.PieceSize, c.file.Bytes-int64(number)*store.PieceSize)
	if int64(len(piece)) != want {
		return fmt.Errorf("piece %d of a file has %d bytes and should have %d", number, len(piece), want)
	}
	c.number, c.piece = number, piece
	return nil
}

func (c *content) Read(p []byte) (int, error) {
	if c.at >= c.file.Bytes {
		return 0, io.EOF
	}
	if err := c.load(int(c.at / store.PieceSize)); err != nil {
		return 0, err
	}
	n := copy(p, c.piece[c.at%store.PieceSize:])
	c.at += int64(n)
	return n, nil
}

func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.file.Bytes
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning of a file")
	}
	c.at = offset
	return offset, nil
}

// attachment sets what keeps a browser from running what a model wrote.
func attachment(h http.Header, name, mimeType string) {
	if _, _, err := mime.ParseMediaType(mimeType); err != nil {
		mimeType = "application/octet-stream"
	}
	h.Set("Content-Type", mimeType)
	h.Set("Content-Disposition", disposition(name))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "private, no-cache")
}

// disposition is an attachment's Content-Disposition (RFC 6266): the name in ASCII for old clients, and as it is (RFC
// 8187) where that differs.
func disposition(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%;/`, r) {
			return '_'
		}
		return r
	}, name)
	out := `attachment; filename="` + plain + `"`
	if plain != name {
		out += "; filename*=UTF-8''" + encodeExtended(name)
	}
	return out
}

// encodeExtended percent-encodes all but the attr-char of RFC 8187.
func encodeExtended(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$&+-.^_`|~"
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(plain, s[i]) >= 0 {
			b.WriteByte(s[i])
			continue
		}
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// serveFile answers with a file: whole, a range of it, or that it is what the client has.
func serveFile(w http.ResponseWriter, r *http.Request, f store.File, body io.ReadSeeker) error {
	attachment(w.Header(), path.Base(f.Path), f.MIMEType)
	w.Header().Set("ETag", `"`+hex.EncodeToString(f.SHA256[:])+`"`)
	// Should a piece be gone midway, the answer is shorter than it says, and the connection is closed on it.
	http.ServeContent(w, r, "", time.Time{}, body)
	return nil
}

// archive streams the workspace as a zip archive. The paths of a workspace are relative, and clean by its own rules.
func (s *Server) archive(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, err := s.readable(r.Context(), id); err != nil {
		return err
	}
	files, err := s.cfg.Library.Files(r.Context(), id)
	if err != nil {
		return err
	}
	attachment(w.Header(), id+".zip", "application/zip")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	z := zip.NewWriter(w)
	for _, f := range files {
		if err := s.pack(r.Context(), z, id, f); err != nil {
			s.cfg.Log.Warn().Err(err).Str("conversation", id).Msg("archive cut off")
			panic(http.ErrAbortHandler) // the one way to tell a client that a chunked answer is not whole
		}
	}
	if err := z.Close(); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *Server) pack(ctx context.Context, z *zip.Writer, id string, f store.File) error {
	header := &zip.FileHeader{Name: f.Path, Method: zip.Store, Modified: f.UpdatedAt}
	if f.Text {
		header.Method = zip.Deflate
	}
	header.SetMode(0o644)
	entry, err := z.CreateHeader(header)
	if err != nil {
		return fmt.Errorf("begin %q in the archive: %w", f.Path, err)
	}
	if _, err := io.Copy(entry, newContent(ctx, s.cfg.Library, id, f)); err != nil {
		return fmt.Errorf("put %q in the archive: %w", f.Path, err)
	}
	return nil
}
