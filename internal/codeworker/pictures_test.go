package codeworker

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"
)

// paints is a program that writes small pictures, one of them broken, and one that is too large for a model.
const paints = `
import zlib,struct
def chunk(kind,data):
    return struct.pack('>I',len(data))+kind+data+struct.pack('>I',zlib.crc32(kind+data))
def png(w,h):
    rows=b''.join(b'\0'+bytes([i%256])*w for i in range(h))
    return b'\x89PNG\r\n\x1a\n'+chunk(b'IHDR',struct.pack('>IIBBBBB',w,h,8,0,0,0,0))+chunk(b'IDAT',zlib.compress(rows))+chunk(b'IEND',b'')
def put(name,data): open('workspace/'+name,'wb').write(data)
`

func TestPicturesThatARunMadeAreReturned(t *testing.T) {
	t.Parallel()
	b := newBench(t, vision)
	b.start(NoInputs{}, testConfig())
	b.seed(map[string]string{"old.png": "not changed"})
	got := b.do(paints+"put('a.png',png(3,2)); put('b.dat',png(2000,1000)); put('c.png',png(4,4)[:60]); put('text.png',b'words')", nil)
	var sizes []image.Point
	for _, c := range got.Content {
		if c.Type != "image" {
			continue
		}
		cfg, err := png.DecodeConfig(bytes.NewReader(c.Data))
		if err != nil || c.MIMEType != "image/png" {
			t.Fatalf("%s: %v", c.MIMEType, err)
		}
		sizes = append(sizes, image.Pt(cfg.Width, cfg.Height))
	}
	if len(sizes) != 2 || sizes[0] != image.Pt(3, 2) || sizes[1] != image.Pt(1568, 784) {
		t.Errorf("pictures of %v", sizes)
	}
	for _, part := range []string{"a.png: a picture, image/png, 3 x 2 pixels.", "b.dat: a picture, image/png, 2000 x 1000 pixels, shown reduced to 1568 x 784.",
		"c.png: a picture that cannot be shown: "} {
		if !strings.Contains(got.text, part) {
			t.Errorf("the text lacks %q:\n%s", part, got.text)
		}
	}
}

func TestAtMostFourPicturesAreReturned(t *testing.T) {
	t.Parallel()
	b := newBench(t, vision)
	b.start(NoInputs{}, testConfig())
	got := b.do(paints+"for i in range(6): put(f'{i}.png',png(1,1))", nil)
	n := 0
	for _, c := range got.Content {
		if c.Type == "image" {
			n++
		}
	}
	if n != 4 || !strings.Contains(got.text, "2 more pictures are not shown here") {
		t.Errorf("%d pictures\n%s", n, got.text)
	}
}

func TestAModelThatCannotSeeIsToldOfPictures(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	got := b.do(paints+"put('a.png',png(3,2))", nil)
	if len(got.Content) != 1 || !strings.Contains(got.text, "a.png: a picture, image/png, 3 x 2 pixels, left out because") {
		t.Errorf("%d blocks\n%s", len(got.Content), got.text)
	}
}

func TestADiffOfTextFilesIsGiven(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	b.seed(map[string]string{"m.txt": "one\ntwo\n", "gone.txt": "x\n"})
	got := b.do("import os\nopen('workspace/m.txt','w').write('one\\n2\\n'); open('workspace/a.txt','w').write('new\\n')\n"+
		"open('workspace/b.bin','wb').write(b'\\0'); os.remove('workspace/gone.txt')", nil)
	want := "--- a/m.txt\n+++ b/m.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+new\n"
	if got.data.Diff != want || got.data.DiffCut {
		t.Errorf("diff %q, cut %v, want %q", got.data.Diff, got.data.DiffCut, want)
	}
}

func TestALongDiffIsCutAndSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	got := b.do("for i in range(3): open(f'workspace/{i}','w').write('x\\n'*150)\nopen('workspace/big','w').write('y\\n'*(1<<20))", nil)
	if lines := strings.Count(got.data.Diff, "\n"); lines > 200 || !got.data.DiffCut {
		t.Errorf("%d lines, cut %v", lines, got.data.DiffCut)
	}
}
