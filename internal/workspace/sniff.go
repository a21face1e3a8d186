package workspace

import (
	"bytes"
	"fmt"
	"strconv"
)

// binaryKind is what a file that is not text most likely is.
type binaryKind struct {
	mime, name string
	// encoding is Python's name of the encoding of a text that is not UTF-8.
	encoding string
}

// signature is the bytes that a format has at an offset.
type signature struct {
	at    int
	magic string
	kind  binaryKind
}

// signatures are tried in order. Formats inside zip and OLE containers are told apart afterwards.
func signatures() []signature {
	return []signature{
		{0, "%PDF-", binaryKind{"application/pdf", "a PDF document", ""}},
		{0, "\x1f\x8b", binaryKind{"application/gzip", "gzip-compressed data", ""}},
		{0, "BZh", binaryKind{"application/x-bzip2", "bzip2-compressed data", ""}},
		{0, "\xfd7zXZ\x00", binaryKind{"application/x-xz", "xz-compressed data", ""}},
		{0, "\x28\xb5\x2f\xfd", binaryKind{"application/zstd", "zstd-compressed data", ""}},
		{0, "7z\xbc\xaf\x27\x1c", binaryKind{"application/x-7z-compressed", "a 7z archive", ""}},
		{0, "Rar!\x1a\x07", binaryKind{"application/vnd.rar", "a RAR archive", ""}},
		{257, "ustar", binaryKind{"application/x-tar", "a tar archive", ""}},
		{0, "SQLite format 3\x00", binaryKind{"application/vnd.sqlite3", "an SQLite database", ""}},
		{0, "\x7fELF", binaryKind{"application/x-executable", "an ELF program or library", ""}},
		{0, "MZ", binaryKind{"application/vnd.microsoft.portable-executable", "a Windows program or library", ""}},
		{0, "\x00asm", binaryKind{"application/wasm", "a WebAssembly module", ""}},
		{0, "\xca\xfe\xba\xbe", binaryKind{"application/java-vm", "a Java class or a macOS program", ""}},
		{0, "\xcf\xfa\xed\xfe", binaryKind{"application/x-mach-binary", "a macOS program or library", ""}},
		{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", binaryKind{"application/x-ole-storage", "an old Office file (doc, xls or ppt)", ""}},
		{0, "PAR1", binaryKind{"application/vnd.apache.parquet", "a Parquet table", ""}},
		{0, "ARROW1", binaryKind{"application/vnd.apache.arrow.file", "an Arrow table", ""}},
		{0, "\x89HDF\r\n\x1a\n", binaryKind{"application/x-hdf5", "an HDF5 file", ""}},
		{0, "\x93NUMPY", binaryKind{"application/x-npy", "a NumPy array", ""}},
		{0, "wOFF", binaryKind{"font/woff", "a web font", ""}},
		{0, "wOF2", binaryKind{"font/woff2", "a web font", ""}},
		{0, "OTTO", binaryKind{"font/otf", "an OpenType font", ""}},
		{0, "\x00\x01\x00\x00\x00", binaryKind{"font/ttf", "a TrueType font", ""}},
		{0, "ID3", binaryKind{"audio/mpeg", "MP3 audio", ""}},
		{0, "OggS", binaryKind{"application/ogg", "Ogg audio or video", ""}},
		{0, "fLaC", binaryKind{"audio/flac", "FLAC audio", ""}},
		{8, "WAVEfmt", binaryKind{"audio/wav", "WAV audio", ""}},
		{4, "ftypavif", binaryKind{"image/avif", "an AVIF picture, a form that cannot be shown here", ""}},
		{4, "ftyphei", binaryKind{"image/heic", "a HEIC picture, a form that cannot be shown here", ""}},
		{4, "ftypqt", binaryKind{"video/quicktime", "QuickTime video", ""}},
		{4, "ftyp", binaryKind{"video/mp4", "MP4 audio or video", ""}},
		{0, "\xff\xfe\x00\x00", binaryKind{"text/plain; charset=utf-32le", "text in UTF-32 (little-endian)", "utf-32"}},
		{0, "\x00\x00\xfe\xff", binaryKind{"text/plain; charset=utf-32be", "text in UTF-32 (big-endian)", "utf-32"}},
		{0, "\xff\xfe", binaryKind{"text/plain; charset=utf-16le", "text in UTF-16 (little-endian)", "utf-16"}},
		{0, "\xfe\xff", binaryKind{"text/plain; charset=utf-16be", "text in UTF-16 (big-endian)", "utf-16"}},
	}
}

// sniffBytes is how much of either end of a file is looked at.
const sniffBytes = 64 * kib

// sniff says what content, which is not text, most likely is.
func sniff(content []byte) binaryKind {
	if bytes.HasPrefix(content, []byte("PK\x03\x04")) || bytes.HasPrefix(content, []byte("PK\x05\x06")) {
		return sniffZip(content)
	}
	for _, s := range signatures() {
		if len(content) >= s.at && bytes.HasPrefix(content[s.at:], []byte(s.magic)) {
			return s.kind
		}
	}
	head := content[:min(len(content), sniffBytes)]
	if order := utf16Order(head); order != "" {
		return binaryKind{"text/plain; charset=utf-16" + order, "text in UTF-16 (" + order + ", without a byte order mark)", "utf-16-" + order}
	}
	if bytes.IndexByte(content, 0) < 0 && looksLikeText(head) {
		return binaryKind{"text/plain", "text in another encoding than UTF-8, perhaps Windows-1252 or Latin-1", "cp1252"}
	}
	return binaryKind{"application/octet-stream", "binary data of no known type", ""}
}

// sniffZip tells the formats that are zip archives apart by the names of what is in them, which stand at both ends.
func sniffZip(content []byte) binaryKind {
	head, tail := content[:min(len(content), sniffBytes)], content[max(0, len(content)-sniffBytes):]
	for _, f := range []struct {
		member string
		kind   binaryKind
	}{
		{"xl/workbook.", binaryKind{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "an Excel workbook (xlsx)", ""}},
		{"word/document.", binaryKind{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "a Word document (docx)", ""}},
		{"ppt/presentation.", binaryKind{"application/vnd.openxmlformats-officedocument.presentationml.presentation", "a PowerPoint deck (pptx)", ""}},
		{"application/epub+zip", binaryKind{"application/epub+zip", "an EPUB book", ""}},
		{"opendocument.spreadsheet", binaryKind{"application/vnd.oasis.opendocument.spreadsheet", "an OpenDocument spreadsheet", ""}},
		{"opendocument.text", binaryKind{"application/vnd.oasis.opendocument.text", "an OpenDocument text", ""}},
		{"META-INF/MANIFEST.MF", binaryKind{"application/java-archive", "a Java archive", ""}},
	} {
		if bytes.Contains(head, []byte(f.member)) || bytes.Contains(tail, []byte(f.member)) {
			return f.kind
		}
	}
	return binaryKind{"application/zip", "a zip archive", ""}
}

// utf16Order gives "le" or "be" where the bytes look like UTF-16 of mostly western text: zero in nearly every second byte
// and in almost none of the others.
func utf16Order(b []byte) string {
	b = b[:len(b)/2*2]
	var even, odd int
	for i := 0; i < len(b); i += 2 {
		if b[i] == 0 {
			even++
		}
		if b[i+1] == 0 {
			odd++
		}
	}
	units := len(b) / 2
	switch {
	case units < 2:
		return ""
	case odd*10 >= units*6 && even*20 <= units:
		return "le"
	case even*10 >= units*6 && odd*20 <= units:
		return "be"
	}
	return ""
}

// looksLikeText reports whether bytes hold hardly any control characters and are mostly ASCII.
func looksLikeText(b []byte) bool {
	var control, high int
	for _, c := range b {
		switch {
		case c >= 0x80:
			high++
		case c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f':
			control++
		}
	}
	return len(b) > 0 && control*100 <= len(b) && high*2 <= len(b)
}

// describe says in words what a file is and what to do instead of reading it.
func (k binaryKind) describe(path string, content []byte) string {
	bad := FirstBadByte(content)
	why := "the first byte that is not UTF-8 is at offset " + strconv.Itoa(bad)
	if bad >= 0 && content[bad] == 0 {
		why = "the first U+0000 is at offset " + strconv.Itoa(bad)
	}
	open := fmt.Sprintf("open(%q, 'rb')", SandboxTree+"/"+path)
	if k.encoding != "" {
		open = fmt.Sprintf("open(%q, encoding='%s')", SandboxTree+"/"+path, k.encoding)
	}
	return fmt.Sprintf("%s is %s (%s), %d bytes. It is not UTF-8 text (%s), so it cannot be read as lines. To look inside, use run_code: %s.",
		path, k.name, k.mime, len(content), why, open)
}
