package picture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

var (
	red   = color.RGBA{255, 0, 0, 255}
	green = color.RGBA{0, 255, 0, 255}
	blue  = color.RGBA{0, 0, 255, 255}
	white = color.RGBA{255, 255, 255, 255}
	none  = color.RGBA{}
)

// quarters paints a picture's four quarters, clockwise from the top left.
func quarters(w, h int, colors ...color.RGBA) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for i, r := range []image.Rectangle{image.Rect(0, 0, w/2, h/2), image.Rect(w/2, 0, w, h/2), image.Rect(w/2, h/2, w, h), image.Rect(0, h/2, w/2, h)} {
		draw.Draw(img, r, image.NewUniform(colors[i%len(colors)]), image.Point{}, draw.Src)
	}
	return img
}

// noise is a picture that does not compress.
func noise(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	x := uint32(2463534242)
	for i := range img.Pix {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		img.Pix[i] = byte(x)
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

func paletted(img image.Image, colors ...color.Color) *image.Paletted {
	out := image.NewPaletted(img.Bounds(), colors)
	draw.Draw(out, out.Rect, img, img.Bounds().Min, draw.Src)
	return out
}

func encoded(tb testing.TB, mime string, img image.Image) []byte {
	tb.Helper()
	var b bytes.Buffer
	var err error
	switch mime {
	case mimePNG:
		err = png.Encode(&b, img)
	case mimeJPEG:
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 95})
	case mimeGIF:
		err = gif.Encode(&b, img, nil)
	case mimeBMP:
		err = bmp.Encode(&b, img)
	case mimeTIFF:
		err = tiff.Encode(&b, img, nil)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// exif is EXIF data that says nothing but an orientation.
func exif(orientation int, order binary.AppendByteOrder) []byte {
	b := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 1)
	b = order.AppendUint16(b, 0x0112)
	b = order.AppendUint16(b, 3)
	b = order.AppendUint32(b, 1)
	b = order.AppendUint16(b, uint16(orientation))
	return append(b, 0, 0, 0, 0, 0, 0)
}

// jpegWith puts an EXIF segment at the beginning of a jpeg file.
func jpegWith(file, exif []byte) []byte {
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+8))
	segment = append(append(segment, exifHeading...), exif...)
	return append(append(append([]byte{}, file[:2]...), segment...), file[2:]...)
}

func pngChunk(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// pngWith puts a chunk behind the header of a png file.
func pngWith(file []byte, kind string, data []byte) []byte {
	const header = 8 + 12 + 13
	return append(append(append([]byte{}, file[:header]...), pngChunk(kind, data)...), file[header:]...)
}

func riffChunk(kind string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(data)))
	b = append(b, data...)
	return append(b, make([]byte, len(data)%2)...)
}

func webpFile(chunks ...[]byte) []byte {
	body := append([]byte("WEBP"), bytes.Join(chunks, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// vp8l is a lossless webp chunk of one colour: each of its codes has one symbol, which takes no bits.
func vp8l(w, h int, c color.RGBA) []byte {
	var bits []byte // one each
	put := func(v, n int) {
		for i := range n {
			bits = append(bits, byte(v>>i&1))
		}
	}
	put(w-1, 14)
	put(h-1, 14)
	put(1, 1) // there may be transparency
	put(0, 3) // version
	put(0, 3) // no transform, no colour cache, no groups of codes
	for _, v := range []uint8{c.G, c.R, c.B, c.A, 0} {
		put(1, 1) // a simple code
		put(0, 1) // of one symbol
		put(1, 1) // of eight bits
		put(int(v), 8)
	}
	b := make([]byte, 1+(len(bits)+7)/8)
	b[0] = 0x2f
	for i, bit := range bits {
		b[1+i/8] |= bit << (i % 8)
	}
	return riffChunk("VP8L", b)
}

// vp8 is a lossy webp chunk: any bits are a picture, and zeros are an even one.
func vp8(w, h int) []byte {
	const partition = 4096
	tag := partition<<5 | 1<<4 // a key frame that is shown
	b := []byte{byte(tag), byte(tag >> 8), byte(tag >> 16), 0x9d, 0x01, 0x2a}
	b = binary.LittleEndian.AppendUint16(b, uint16(w))
	b = binary.LittleEndian.AppendUint16(b, uint16(h))
	return riffChunk("VP8 ", append(b, make([]byte, 2*partition)...))
}

func vp8x(flags byte, w, h int) []byte {
	return riffChunk("VP8X", append([]byte{flags, 0, 0, 0}, canvas(w, h)...))
}

func canvas(w, h int) []byte {
	return []byte{byte(w - 1), byte((w - 1) >> 8), byte((w - 1) >> 16), byte(h - 1), byte((h - 1) >> 8), byte((h - 1) >> 16)}
}

// anmf is a frame of an animated webp; x and y are even.
func anmf(x, y, w, h int, chunks ...[]byte) []byte {
	b := []byte{byte(x / 2), byte(x / 2 >> 8), 0, byte(y / 2), byte(y / 2 >> 8), 0}
	b = append(append(b, canvas(w, h)...), 100, 0, 0, 0)
	return riffChunk("ANMF", append(b, bytes.Join(chunks, nil)...))
}

// animatedGIF has two frames, the first smaller than its canvas.
func animatedGIF(tb testing.TB) []byte {
	tb.Helper()
	frame := func(r image.Rectangle, c color.Color) *image.Paletted {
		p := image.NewPaletted(r, color.Palette{c, color.Transparent})
		return p
	}
	var b bytes.Buffer
	err := gif.EncodeAll(&b, &gif.GIF{
		Image:  []*image.Paletted{frame(image.Rect(2, 2, 8, 8), red), frame(image.Rect(0, 0, 10, 10), blue)},
		Delay:  []int{10, 10},
		Config: image.Config{Width: 10, Height: 10, ColorModel: color.Palette{white, red}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}
