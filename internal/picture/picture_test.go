package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestSniff(t *testing.T) {
	img := quarters(4, 4, red, green)
	tests := []struct {
		name string
		b    []byte
		want string
	}{
		{"png", encoded(t, mimePNG, img), mimePNG}, {"jpeg", encoded(t, mimeJPEG, img), mimeJPEG}, {"gif", encoded(t, mimeGIF, img), mimeGIF},
		{"bmp", encoded(t, mimeBMP, img), mimeBMP}, {"tiff", encoded(t, mimeTIFF, img), mimeTIFF}, {"big-endian tiff", []byte("MM\x00*\x00\x00\x00\x08"), mimeTIFF},
		{"lossless webp", webpFile(vp8l(4, 4, red)), mimeWEBP}, {"lossy webp", webpFile(vp8(4, 4)), mimeWEBP},
		{"nothing", nil, ""}, {"text", []byte("hello"), ""}, {"svg", []byte("<svg/>"), ""}, {"a text about gifs", []byte("GIF89a is a format of 1989."), ""},
		{"a text about bitmaps", []byte("BM is how a bitmap begins, in two letters"), ""}, {"sound", []byte("RIFF\x10\x00\x00\x00WAVEfmt "), ""}, {"half a signature", []byte("\x89PNG"), ""},
	}
	for _, tt := range tests {
		if got, ok := Sniff(tt.b); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, ok, tt.want)
		}
	}
}

func reduce(t *testing.T, b []byte) Picture {
	t.Helper()
	p, err := Reduce(b, DefaultBounds())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// show decodes what a model would be given.
func show(t *testing.T, p Picture) image.Image {
	t.Helper()
	img, format, err := image.Decode(bytes.NewReader(p.Data))
	if err != nil || "image/"+format != p.MIMEType {
		t.Fatalf("what was given is %s, %v; want %s", format, err, p.MIMEType)
	}
	if s := img.Bounds().Size(); s != image.Pt(p.Width, p.Height) {
		t.Fatalf("what was given is %v, not %d x %d", s, p.Width, p.Height)
	}
	return img
}

// like reports whether two colours are the same but for what jpeg loses.
func like(a, b color.Color) bool {
	r, g, bl, al := a.RGBA()
	r2, g2, b2, a2 := b.RGBA()
	far := func(x, y uint32) bool { return max(x, y)-min(x, y) > 0x3000 }
	return !far(r, r2) && !far(g, g2) && !far(bl, b2) && !far(al, a2)
}

// corners checks the corners of what was given, clockwise from the top left.
func corners(t *testing.T, p Picture, want ...color.RGBA) {
	t.Helper()
	img := show(t, p)
	for i, at := range []image.Point{{0, 0}, {p.Width - 1, 0}, {p.Width - 1, p.Height - 1}, {0, p.Height - 1}} {
		if got := img.At(at.X, at.Y); !like(got, want[i%len(want)]) {
			t.Errorf("corner %d is %v, want %v", i+1, got, want[i%len(want)])
		}
	}
}

func TestWithinBoundsIsUnchanged(t *testing.T) {
	img := quarters(40, 20, red, green, blue, white)
	for name, b := range map[string][]byte{
		"png": encoded(t, mimePNG, img), "jpeg": encoded(t, mimeJPEG, img), "gif": encoded(t, mimeGIF, img), "paletted png": encoded(t, mimePNG, paletted(img, red, green, blue, white)),
		"webp, lossless": webpFile(vp8l(40, 20, red)), "webp, lossy": webpFile(vp8(40, 20)), "webp, extended": webpFile(vp8x(0x10, 40, 20), vp8l(40, 20, red)),
		"jpeg, turned by nothing": jpegWith(encoded(t, mimeJPEG, img), exif(1, binary.BigEndian)), "jpeg, nonsense for orientation": jpegWith(encoded(t, mimeJPEG, img), exif(9, binary.LittleEndian)),
	} {
		p := reduce(t, b)
		mime, _ := Sniff(b)
		if p.Changed || !bytes.Equal(p.Data, b) || p.MIMEType != mime || p.Width != 40 || p.Height != 20 || p.Original != (Info{mime, 40, 20, false}) {
			t.Errorf("%s: %s %d x %d, changed %v, original %+v", name, p.MIMEType, p.Width, p.Height, p.Changed, p.Original)
		}
	}
	edge := encoded(t, mimePNG, quarters(1568, 10, red))
	if p := reduce(t, edge); p.Changed {
		t.Error("a longer side of 1568 pixels is within the bounds")
	}
}

func TestOtherFormatsAreMadeAnew(t *testing.T) {
	img := quarters(40, 20, red, green, blue, white)
	for _, mime := range []string{mimeBMP, mimeTIFF} {
		p := reduce(t, encoded(t, mime, img))
		if p.MIMEType != mimePNG || !p.Changed || p.Width != 40 || p.Height != 20 || p.Original != (Info{mime, 40, 20, false}) {
			t.Errorf("%s: %+v", mime, p.Original)
		}
		corners(t, p, red, green, blue, white)
	}
}

func TestReduced(t *testing.T) {
	tests := []struct {
		name          string
		b             []byte
		width, height int
		mime          string
		corners       []color.RGBA
	}{
		{"png", encoded(t, mimePNG, quarters(2000, 1000, red, green, blue, white)), 1568, 784, mimePNG, []color.RGBA{red, green, blue, white}},
		{"tall jpeg", encoded(t, mimeJPEG, quarters(1000, 3136, red, green, blue, white)), 500, 1568, mimeJPEG, []color.RGBA{red, green, blue, white}},
		{"gif", encoded(t, mimeGIF, paletted(quarters(1569, 3, red, green), red, green)), 1568, 3, mimePNG, []color.RGBA{red, green, red, green}},
		{"one row", encoded(t, mimePNG, quarters(50_000, 2, red, green)), 1568, 1, mimePNG, []color.RGBA{{128, 128, 0, 255}, {128, 128, 0, 255}}},
		{"transparent png", encoded(t, mimePNG, quarters(2000, 2000, red, none)), 1568, 1568, mimePNG, []color.RGBA{red, none, red, none}},
		{"lossless webp", webpFile(vp8l(1600, 1600, blue)), 1568, 1568, mimePNG, []color.RGBA{blue}},
		{"gray png", encoded(t, mimePNG, image.NewGray(image.Rect(0, 0, 3136, 2))), 1568, 1, mimePNG, []color.RGBA{{0, 0, 0, 255}}},
		{"deep png", encoded(t, mimePNG, image.NewNRGBA64(image.Rect(0, 0, 3136, 2))), 1568, 1, mimePNG, []color.RGBA{none}},
		{"4000 x 40 of one bit", one(t, "iVBORw0KGgoAAAANSUhEUgAAD6AAAAAoAQAAAADCrzjzAAAAKklEQVR42u3BAQ0AAADCoPdPbQ43oAAAAAAAAAAAAAAAAAAAAAAAAAB4Mk5IAAE3kfItAAAAAElFTkSuQmCC"), 1568, 16, mimePNG, []color.RGBA{{0, 0, 0, 255}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := reduce(t, tt.b)
			if p.Width != tt.width || p.Height != tt.height || p.MIMEType != tt.mime || !p.Changed || len(p.Data) > 1<<20 {
				t.Fatalf("%s %d x %d, %d bytes; want %s %d x %d", p.MIMEType, p.Width, p.Height, len(p.Data), tt.mime, tt.width, tt.height)
			}
			corners(t, p, tt.corners...)
		})
	}
}

// one decodes a sample that is written out.
func one(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBytesAreBounded(t *testing.T) {
	b := encoded(t, mimePNG, noise(900, 700))
	if len(b) <= 1<<20 {
		t.Fatal("the sample is too small")
	}
	p := reduce(t, b)
	if p.MIMEType != mimeJPEG || len(p.Data) > 1<<20 || p.Width != 900 || p.Height != 700 {
		t.Errorf("%s %d x %d, %d bytes", p.MIMEType, p.Width, p.Height, len(p.Data))
	}
	show(t, p)
	bounds := DefaultBounds()
	bounds.Bytes = 20_000
	p, err := Reduce(b, bounds)
	if err != nil || len(p.Data) > 20_000 || p.Width >= 900 || p.Width < 100 {
		t.Errorf("%d x %d, %d bytes, %v", p.Width, p.Height, len(p.Data), err)
	}
	show(t, p)
	bounds.Bytes = 10
	_, err = Reduce(b, bounds)
	refused(t, "ten bytes", err, TooLarge, "cannot be written in 10 bytes")
	// Transparency is given up, on white, where it would not fit.
	veil := noise(900, 700)
	for i := range 4 * 900 * 200 {
		veil.Pix[i] = 0
	}
	if img := show(t, reduce(t, encoded(t, mimePNG, veil))); !like(img.At(0, 0), white) {
		t.Errorf("what was transparent is %v", img.At(0, 0))
	}
}

func TestOrientation(t *testing.T) {
	stored := quarters(32, 16, red, green, blue, white)
	shown := map[int][]color.RGBA{
		2: {green, red, white, blue}, 3: {blue, white, red, green}, 4: {white, blue, green, red},
		5: {red, white, blue, green}, 6: {white, red, green, blue}, 7: {blue, green, red, white}, 8: {green, blue, white, red},
	}
	for orientation, want := range shown {
		for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
			data := exif(orientation, order)
			for name, b := range map[string][]byte{
				"jpeg": jpegWith(encoded(t, mimeJPEG, stored), data),
				"png":  pngWith(encoded(t, mimePNG, stored), "eXIf", data),
			} {
				p := reduce(t, b)
				w, h := 32, 16
				if orientation > 4 {
					w, h = 16, 32
				}
				if p.Width != w || p.Height != h || !p.Changed || p.Original.Width != w || p.Original.Height != h {
					t.Fatalf("%s, orientation %d: %d x %d, original %+v", name, orientation, p.Width, p.Height, p.Original)
				}
				corners(t, p, want...)
			}
		}
	}
	turned := webpFile(vp8x(0x18, 32, 16), vp8l(32, 16, red), riffChunk("EXIF", exif(6, binary.BigEndian)))
	if p := reduce(t, turned); p.Width != 16 || p.Height != 32 || p.MIMEType != mimePNG {
		t.Errorf("webp: %s %d x %d", p.MIMEType, p.Width, p.Height)
	}
	if p := reduce(t, jpegWith(encoded(t, mimeJPEG, quarters(2000, 1000, red)), exif(6, binary.BigEndian))); p.Width != 784 || p.Height != 1568 {
		t.Errorf("turned and reduced: %d x %d", p.Width, p.Height)
	}
}

func TestFirstFrameOfAnimations(t *testing.T) {
	p := reduce(t, animatedGIF(t))
	if p.MIMEType != mimePNG || p.Width != 10 || p.Height != 10 || p.Original != (Info{mimeGIF, 10, 10, true}) {
		t.Fatalf("gif: %s %d x %d, %+v", p.MIMEType, p.Width, p.Height, p.Original)
	}
	corners(t, p, none)
	if got := show(t, p).At(5, 5); !like(got, red) {
		t.Errorf("gif: the middle is %v", got)
	}
	p = reduce(t, webpFile(vp8x(0x12, 20, 10), riffChunk("ANIM", make([]byte, 6)),
		anmf(4, 2, 6, 4, vp8l(6, 4, green)), anmf(0, 0, 20, 10, vp8l(20, 10, blue))))
	if p.MIMEType != mimePNG || p.Width != 20 || p.Height != 10 || p.Original != (Info{mimeWEBP, 20, 10, true}) {
		t.Fatalf("webp: %s %d x %d, %+v", p.MIMEType, p.Width, p.Height, p.Original)
	}
	corners(t, p, none)
	if img := show(t, p); !like(img.At(4, 2), green) || !like(img.At(9, 5), green) || !like(img.At(10, 5), none) {
		t.Error("webp: the frame is not in its place")
	}
	p = reduce(t, pngWith(encoded(t, mimePNG, quarters(4, 4, red)), "acTL", make([]byte, 8)))
	if !p.Changed || !p.Original.Animated {
		t.Error("an animated png was given as it is")
	}
}

func refused(t *testing.T, name string, err error, kind Kind, reason string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Reason, reason) {
		t.Errorf("%s: %v; want %s: %s", name, err, kind, reason)
	}
}

func TestRefusals(t *testing.T) {
	img := quarters(64, 64, red, green, blue, white)
	jpg, pn := encoded(t, mimeJPEG, img), encoded(t, mimePNG, img)
	damaged := bytes.Clone(pn)
	damaged[len(damaged)-20] ^= 0xff
	tests := []struct {
		name   string
		b      []byte
		kind   Kind
		reason string
	}{
		{"nothing", nil, NotAPicture, "no png, jpeg, gif, webp, bmp or tiff"}, {"text", []byte("hello"), NotAPicture, "no png"},
		{"a signature alone", pn[:8], Broken, "truncated"}, {"a header alone", pn[:40], Broken, "truncated"}, {"half a png", pn[:len(pn)/2], Broken, "not enough pixel data"}, {"a damaged png", damaged, Broken, "cannot be decoded (png:"},
		{"a jpeg's first bytes", jpg[:3], Broken, "truncated"}, {"half a jpeg", jpg[:len(jpg)*3/4], Broken, "truncated"},
		{"half a gif", encoded(t, mimeGIF, img)[:900], Broken, "cannot be decoded (gif:"}, {"half a bmp", encoded(t, mimeBMP, img)[:900], Broken, "truncated"}, {"half a tiff", encoded(t, mimeTIFF, img)[:900], Broken, "truncated"},
		{"a webp cut short", webpFile(vp8(64, 64)[:40]), Broken, "webp file"}, {"a webp of nothing", webpFile(), Broken, "cannot be decoded"},
		{"an animated webp without frames", webpFile(vp8x(2, 4, 4)), Broken, "no whole frame"}, {"a frame off its canvas", webpFile(vp8x(2, 4, 4), anmf(2, 2, 4, 4, vp8l(4, 4, red))), Broken, "outside its canvas"},
		{"a frame larger than it says", webpFile(vp8x(2, 4, 4), anmf(0, 0, 4, 4, vp8l(5000, 5000, red))), Broken, "webp file"},
		{"an OS/2 bmp", append([]byte("BM"), append(make([]byte, 12), 12, 0, 0, 0, 0, 0, 0, 0)...), Unsupported, "variant of bmp"},
	}
	for _, tt := range tests {
		_, err := Reduce(tt.b, DefaultBounds())
		refused(t, tt.name, err, tt.kind, tt.reason)
	}
}

// bomb is a png of so many pixels, without most of its data.
func bomb(w, h uint32, depth, colors byte) []byte {
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	header = append(header, depth, colors, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", header)...)
	return append(b, pngChunk("IDAT", []byte{0x78, 0x9c, 0x63})...)
}

func TestBombsCostNothing(t *testing.T) {
	progressive := encoded(t, mimeJPEG, quarters(64, 64, red))
	i := bytes.Index(progressive, []byte{0xff, 0xc0})
	progressive[i+1] = 0xc2
	binary.BigEndian.PutUint16(progressive[i+5:], 7000)
	binary.BigEndian.PutUint16(progressive[i+7:], 7000)
	scan := bytes.Index(progressive, []byte{0xff, 0xda})
	segment := progressive[scan : scan+14]
	scans := append(bytes.Clone(progressive[:scan]), bytes.Repeat(segment, 5000)...)
	binary.BigEndian.PutUint16(scans[i+5:], 5000)
	binary.BigEndian.PutUint16(scans[i+7:], 5000)
	full := bytes.Clone(progressive)
	full[bytes.Index(full, []byte{0xff, 0xc2})+11] = 0x11 // colours in full detail
	tests := []struct {
		name   string
		b      []byte
		reason string
	}{
		{"a png of 30,000 x 30,000", bomb(30_000, 30_000, 1, 0), "30000 x 30000 pixels, and no more than 50000000"},
		{"a png of one long row", bomb(40_000_000, 1, 8, 6), "no side longer than 131072"},
		{"a deep png", bomb(7000, 7000, 16, 6), "more than 256 MiB of memory"},
		{"a webp of 16,000 x 16,000", webpFile(vp8l(16_000, 16_000, red)), "16000 x 16000 pixels"},
		{"a jpeg of many scans", scans, "5000 scans"},
		{"a progressive jpeg in full colour", full, "more than 256 MiB of memory"},
		{"a gif of 65,535 x 65,535", append([]byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"), 0x3b), "65535 x 65535 pixels"},
	}
	for _, tt := range tests {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, err := Reduce(tt.b, DefaultBounds())
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		refused(t, tt.name, err, TooLarge, tt.reason)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 2<<20 || took > time.Second {
			t.Errorf("%s: %d bytes, %v", tt.name, spent, took)
		}
	}
}

func TestInspect(t *testing.T) {
	if got, err := Inspect(bomb(30_000, 20_000, 1, 0)); err != nil || got != (Info{mimePNG, 30_000, 20_000, false}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Inspect(jpegWith(encoded(t, mimeJPEG, quarters(40, 20, red)), exif(8, binary.LittleEndian))); err != nil || got != (Info{mimeJPEG, 20, 40, false}) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err := Inspect([]byte("\x89PNG\r\n\x1a\n"))
	if got.MIMEType != mimePNG {
		t.Errorf("%+v", got)
	}
	refused(t, "no header", err, Broken, "truncated")
}

func TestResampleIsAnAverage(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 3, 1))
	img.Pix = []byte{0, 90, 240}
	got := resample(img, 2, 1)
	// The middle pixel is shared by both: (0 + 90/2) / 1.5 and (90/2 + 240) / 1.5.
	if got.Pix[0] != 30 || got.Pix[4] != 190 {
		t.Errorf("%v", got.Pix)
	}
	for _, n := range []int{1, 2, 7, 99, 100} {
		for _, v := range resample(quarters(100, 100, white), n, n).Pix {
			if v != 255 {
				t.Fatalf("white in %d pixels has %d in it", n, v)
			}
		}
	}
}

func samples(tb testing.TB) [][]byte {
	img := quarters(20, 10, red, green, blue, none)
	return [][]byte{
		encoded(tb, mimePNG, img), encoded(tb, mimePNG, paletted(img, red, green, blue, color.Transparent)), encoded(tb, mimeJPEG, img), encoded(tb, mimeGIF, img),
		encoded(tb, mimeBMP, img), encoded(tb, mimeTIFF, img), webpFile(vp8l(20, 10, red)), webpFile(vp8(20, 10)), animatedGIF(tb),
		webpFile(vp8x(2, 20, 10), anmf(4, 2, 6, 4, vp8l(6, 4, green))), jpegWith(encoded(tb, mimeJPEG, img), exif(6, binary.BigEndian)),
		pngWith(encoded(tb, mimePNG, img), "eXIf", exif(3, binary.LittleEndian)), bomb(30_000, 30_000, 1, 0), []byte("BM"), nil,
	}
}

func TestTruncatedAnywhere(t *testing.T) {
	bounds := Bounds{Edge: 8, Bytes: 4096, Pixels: 1_000_000, Memory: 16 << 20}
	for _, b := range samples(t) {
		for n := 0; n < len(b); n += 1 + len(b)/200 {
			check(t, b[:n], bounds)
		}
	}
}

// check reduces whatever b is and looks at what must always hold.
func check(t *testing.T, b []byte, bounds Bounds) {
	t.Helper()
	p, err := Reduce(b, bounds)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) || e.Reason == "" || e.Kind == "" {
			t.Fatalf("%#v", err)
		}
		return
	}
	if len(p.Data) > bounds.Bytes || max(p.Width, p.Height) > bounds.Edge || p.Width < 1 || p.Height < 1 {
		t.Fatalf("%d x %d, %d bytes", p.Width, p.Height, len(p.Data))
	}
	if p.Changed && p.MIMEType != mimePNG && p.MIMEType != mimeJPEG || !p.Changed && !bytes.Equal(p.Data, b) {
		t.Fatalf("%s, changed %v", p.MIMEType, p.Changed)
	}
}

func FuzzReduce(f *testing.F) {
	for _, b := range samples(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, b, Bounds{Edge: 16, Bytes: 4096, Pixels: 10_000, Memory: 1 << 20})
	})
}

func BenchmarkReduce(b *testing.B) {
	for name, file := range map[string][]byte{
		"jpeg of 12 million pixels": encoded(b, mimeJPEG, quarters(4000, 3000, red, green, blue, white)),
		"png screen":                encoded(b, mimePNG, quarters(2560, 1440, red, green, blue, white)),
		"png noise":                 encoded(b, mimePNG, noise(1500, 1200)),
		"gray png at the bound":     encoded(b, mimePNG, image.NewGray(image.Rect(0, 0, 7000, 7000))),
		"png within the bounds":     encoded(b, mimePNG, quarters(1000, 1000, red, green, blue, white)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Reduce(file, DefaultBounds()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
