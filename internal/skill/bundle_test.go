package skill

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"
	"testing"

	"treeline/internal/call"
)

// member is one entry of an archive that a test makes.
type member struct {
	name, content string
	// change makes of its header what the archive says of it.
	change func(*zip.FileHeader)
}

func archive(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		h.SetMode(0o644)
		if strings.HasSuffix(m.name, "/") {
			h.SetMode(fs.ModeDir | 0o755)
		}
		if m.change != nil {
			m.change(h)
		}
		var out io.Writer
		var err error
		if h.UncompressedSize64 > 0 { // what the header says is not to be mended
			out, err = w.CreateRaw(h)
			if err == nil {
				f, _ := flate.NewWriter(out, flate.DefaultCompression)
				_, _ = f.Write([]byte(m.content))
				err = f.Close()
			}
		} else if out, err = w.CreateHeader(h); err == nil && !strings.HasSuffix(m.name, "/") {
			_, err = out.Write([]byte(m.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const most = 1 << 20

func text(content string) member { return member{name: "SKILL.md", content: content} }

func TestUnpack(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []member
		want    string // path=content, sorted
	}{
		{"at the root", []member{text("# S"), {name: "scripts/x.py", content: "1"}}, "SKILL.md=# S scripts/x.py=1"},
		{"in a folder that holds everything", []member{{name: "my skill/"}, {name: "my skill/SKILL.md", content: "t"},
			{name: "my skill/a/b.txt", content: "b"}}, "SKILL.md=t a/b.txt=b"},
		{"with what macOS adds", []member{{name: "s/SKILL.md", content: "t"}, {name: "__MACOSX/s/._SKILL.md", content: "x"}}, "SKILL.md=t"},
		{"a folder called workspace", []member{text("t"), {name: "workspace/a", content: "1"}}, "SKILL.md=t workspace/a=1"},
		{"dots within a name", []member{text("t"), {name: "foo..bar", content: "1"}}, "SKILL.md=t foo..bar=1"},
		{"an empty file", []member{text("t"), {name: "empty"}}, "SKILL.md=t empty="},
		{"a name that is composed", []member{text("t"), {name: "cafe\u0301.md", content: "1"}}, "SKILL.md=t caf\u00e9.md=1"},
		{"bytes that are no text", []member{text("t"), {name: "a.bin", content: "\xff\x00"}}, "SKILL.md=t a.bin=\xff\x00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, refusal := Unpack(archive(t, c.members...), most)
			if refusal != nil {
				t.Fatal(refusal)
			}
			var got []string
			var size int64
			for _, f := range b.Files {
				got = append(got, f.Path+"="+string(f.Content))
				size += int64(len(f.Content))
			}
			if s := strings.Join(got, " "); s != c.want || b.Bytes != size {
				t.Errorf("got %q of %d bytes, want %q", s, b.Bytes, c.want)
			}
		})
	}
}

func mode(m fs.FileMode) func(*zip.FileHeader) { return func(h *zip.FileHeader) { h.SetMode(m) } }

func TestArchivesThatAreRefused(t *testing.T) {
	tiny := []member{text("t")}
	for i := range 10_000 {
		tiny = append(tiny, member{name: fmt.Sprintf("f%05d", i)})
	}
	long := strings.Repeat("n", 256)
	for _, c := range []struct {
		name    string
		members []member
		code    call.Code
		says    string
	}{
		{"no SKILL.md", []member{{name: "README.md", content: "x"}}, call.InvalidArguments, "no SKILL.md"},
		{"SKILL.md too deep", []member{{name: "a/b/SKILL.md", content: "x"}}, call.InvalidArguments, "no SKILL.md"},
		{"SKILL.md in one of two folders", []member{{name: "a/SKILL.md", content: "x"}, {name: "b/x", content: "x"}}, call.InvalidArguments, "no SKILL.md"},
		{"nothing", nil, call.InvalidArguments, "no SKILL.md"},
		{"SKILL.md is no text", []member{text("\xff")}, call.InvalidArguments, "not text"},
		{"SKILL.md is too long", []member{text(strings.Repeat("x", MaxText+1))}, call.SkillTooLarge, ""},
		{"climbing", []member{text("t"), {name: "../../etc/cron.d/x", content: "1"}}, call.InvalidArguments, `".."`},
		{"climbing from within", []member{text("t"), {name: "a/../../b", content: "1"}}, call.InvalidArguments, `".."`},
		{"absolute", []member{text("t"), {name: "/etc/passwd", content: "1"}}, call.InvalidArguments, "absolute"},
		{"a drive", []member{text("t"), {name: "C:/x", content: "1"}}, call.InvalidArguments, "drive"},
		{"backslashes", []member{text("t"), {name: `..\x`, content: "1"}}, call.InvalidArguments, "backslash"},
		{"an empty part", []member{text("t"), {name: "a//b", content: "1"}}, call.InvalidArguments, `""`},
		{"a dot", []member{text("t"), {name: "./a", content: "1"}}, call.InvalidArguments, `"."`},
		{"a control character", []member{text("t"), {name: "a\nb", content: "1"}}, call.InvalidArguments, "control"},
		{"U+0000", []member{text("t"), {name: "a\x00b", content: "1"}}, call.InvalidArguments, "control"},
		{"no UTF-8", []member{text("t"), {name: "\xff\xfe", content: "1"}}, call.InvalidArguments, "UTF-8"},
		{"a long part", []member{text("t"), {name: long, content: "1"}}, call.InvalidArguments, "longer"},
		{"a link", []member{text("t"), {name: "l", content: "/etc/passwd", change: mode(fs.ModeSymlink | 0o777)}}, call.InvalidArguments, "link"},
		{"a device", []member{text("t"), {name: "d", change: mode(fs.ModeDevice | 0o666)}}, call.InvalidArguments, "link"},
		{"a FIFO", []member{text("t"), {name: "p", change: mode(fs.ModeNamedPipe | 0o666)}}, call.InvalidArguments, "link"},
		{"a link that says it is from DOS", []member{text("t"), {name: "l", content: "x", change: func(h *zip.FileHeader) {
			h.CreatorVersion, h.ExternalAttrs = 0, 0o120777<<16
		}}}, call.InvalidArguments, "link"},
		{"one name twice", []member{text("t"), {name: "a", content: "1"}, {name: "a", content: "2"}}, call.InvalidArguments, "twice"},
		{"SKILL.md twice", []member{text("t"), text("u")}, call.InvalidArguments, "twice"},
		{"names that differ by case", []member{text("t"), {name: "a/B", content: "1"}, {name: "a/b", content: "2"}}, call.InvalidArguments, "case"},
		{"folders that differ by case", []member{text("t"), {name: "A/x", content: "1"}, {name: "a/y", content: "2"}}, call.InvalidArguments, "case"},
		{"an empty folder that differs by case", []member{text("t"), {name: "A/"}, {name: "a/y", content: "2"}}, call.InvalidArguments, "case"},
		{"names that are one composed", []member{text("t"), {name: "e\u0301", content: "1"}, {name: "\u00e9", content: "2"}}, call.InvalidArguments, "twice"},
		{"a file that is a folder", []member{text("t"), {name: "a", content: "1"}, {name: "a/b", content: "2"}}, call.InvalidArguments, "folder"},
		{"a file that is an empty folder", []member{text("t"), {name: "a", content: "1"}, {name: "a/"}}, call.InvalidArguments, "folder"},
		{"encrypted", []member{text("t"), {name: "a", content: "1", change: func(h *zip.FileHeader) { h.Flags |= 1 }}}, call.InvalidArguments, "encrypted"},
		{"another method", []member{text("t"), {name: "a", content: "1", change: func(h *zip.FileHeader) {
			h.Method, h.UncompressedSize64, h.CompressedSize64 = 14, 1, 3
		}}}, call.InvalidArguments, "method 14"},
		{"ten thousand entries", tiny, call.SkillTooLarge, "entries"},
		{"a bomb that says its size", []member{text("t"), {name: "zeros", content: strings.Repeat("\x00", 8*most)}}, call.SkillTooLarge, ""},
		{"many that are too much together", []member{text("t"), {name: "a", content: strings.Repeat("a", most/2)}, {name: "b", content: strings.Repeat("b", most/2)}},
			call.SkillTooLarge, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, refusal := Unpack(archive(t, c.members...), most)
			if refusal == nil {
				t.Fatalf("was taken: %d files", len(b.Files))
			}
			if refusal.Code != c.code || !strings.Contains(refusal.Text, c.says) {
				t.Errorf("refused as %v, want %s with %q", refusal, c.code, c.says)
			}
			if len(b.Files) > 0 {
				t.Error("files came with the refusal")
			}
		})
	}
}

// A bomb's header may say that it is small: what is inflated is counted, and the inflating stopped.
func TestABombThatLiesAboutItsSize(t *testing.T) {
	content := strings.Repeat("\x00", 64*most)
	lying := archive(t, text("t"), member{name: "zeros", content: content, change: func(h *zip.FileHeader) {
		h.UncompressedSize64, h.CRC32, h.CompressedSize64 = 10, crc32.ChecksumIEEE([]byte(content)), uint64(packed(content))
	}})
	b, refusal := Unpack(lying, most)
	if refusal == nil || len(b.Files) > 0 {
		t.Fatalf("was taken: %d files", len(b.Files))
	}
}

func packed(content string) int {
	var b bytes.Buffer
	f, _ := flate.NewWriter(&b, flate.DefaultCompression)
	_, _ = f.Write([]byte(content))
	_ = f.Close()
	return b.Len()
}

func TestDamagedArchives(t *testing.T) {
	good := archive(t, text("# the text of a skill"), member{name: "a", content: "content"})
	for i := range good {
		damaged := bytes.Clone(good)
		damaged[i] ^= 0x41
		_, _ = Unpack(damaged, most) // some harm does not show; none may panic
		_, _ = Unpack(good[:i], most)
	}
	for _, body := range [][]byte{nil, []byte("no zip"), []byte("PK\x05\x06"), good[:len(good)-1]} {
		if _, refusal := Unpack(body, most); refusal == nil || refusal.Code != call.InvalidArguments {
			t.Errorf("%q: refused as %v", body[:min(len(body), 10)], refusal)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, text("t"), member{name: "scripts/x.py", content: "print(1)"}))
	f.Add(archive(f, member{name: "s/SKILL.md", content: "t"}, member{name: "s/a/"}))
	f.Fuzz(func(t *testing.T, body []byte) {
		b, refusal := Unpack(body, most)
		if refusal != nil {
			return
		}
		if _, ok := b.Find(TextFile); !ok || b.Bytes > most {
			t.Errorf("taken with %d bytes, text there: %t", b.Bytes, ok)
		}
		for _, file := range b.Files {
			if !fs.ValidPath(file.Path) || strings.ContainsAny(file.Path, "\\\x00") {
				t.Errorf("the path %q", file.Path)
			}
		}
	})
}
