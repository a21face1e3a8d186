package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// The formats that are known, by their MIME types.
const (
	mimePNG  = "image/png"
	mimeJPEG = "image/jpeg"
	mimeGIF  = "image/gif"
	mimeWEBP = "image/webp"
	mimeBMP  = "image/bmp"
	mimeTIFF = "image/tiff"
)

// name is how a format is called in a sentence.
func name(mime string) string { return strings.TrimPrefix(mime, "image/") }

// Sniff recognises a picture by its first bytes and gives its MIME type. It does not say that the picture is whole.
func Sniff(b []byte) (mime string, ok bool) {
	has := func(prefix string) bool { return bytes.HasPrefix(b, []byte(prefix)) }
	switch {
	case has("\x89PNG\r\n\x1a\n"):
		return mimePNG, true
	case has("\xff\xd8\xff"):
		return mimeJPEG, true
	// A gif has zero bytes at the end of its blocks; a text that begins with the word has none.
	case (has("GIF87a") || has("GIF89a")) && bytes.IndexByte(b, 0) >= 0:
		return mimeGIF, true
	case has("RIFF") && len(b) >= 12 && string(b[8:12]) == "WEBP":
		return mimeWEBP, true
	case has("II*\x00"), has("MM\x00*"):
		return mimeTIFF, true
	case has("BM") && len(b) >= 18:
		// Two letters are little to go by: the length of the header that follows has to be one that there is.
		switch binary.LittleEndian.Uint32(b[14:]) {
		case 12, 16, 40, 52, 56, 64, 108, 124:
			return mimeBMP, true
		}
	}
	return "", false
}

// header is what is known of a picture before it is decoded. Width and height are as stored; orientation, from 1 to 8, is
// that of EXIF.
type header struct {
	mime          string
	width, height int
	bytesPerPixel int // of memory while it is decoded
	orientation   int
	animated      bool
	lossless      bool
	cmyk          bool
	scans         int
}

func (h header) info() Info {
	info := Info{MIMEType: h.mime, Width: h.width, Height: h.height, Animated: h.animated}
	if h.orientation > 4 {
		info.Width, info.Height = h.height, h.width
	}
	return info
}

func readHeader(b []byte) (header, error) {
	mime, ok := Sniff(b)
	h := header{mime: mime, orientation: 1, scans: 1, lossless: mime != mimeJPEG}
	if !ok {
		return h, h.fail(NotAPicture, "it is no png, jpeg, gif, webp, bmp or tiff")
	}
	config, err := guard(func() (image.Config, error) { return formats(mime).config(bytes.NewReader(b)) })
	if err != nil {
		return h, h.broken(err)
	}
	if config.Width <= 0 || config.Height <= 0 {
		return h, h.fail(Broken, "the %s file has no pixels", name(mime))
	}
	h.width, h.height = config.Width, config.Height
	h.bytesPerPixel = bytesPerPixel(config.ColorModel)
	h.cmyk = config.ColorModel == color.CMYKModel
	switch mime {
	case mimePNG:
		h.animated, h.orientation = inspectPNG(b)
	case mimeJPEG:
		h.inspectJPEG(b)
	case mimeGIF:
		h.animated = countFrames(b) > 1
		h.bytesPerPixel = 5 // a frame, and the canvas that it may be laid on
	case mimeWEBP:
		h.inspectWebP(b)
		h.bytesPerPixel = 8 // the decoder keeps a second picture
		if h.animated {
			h.bytesPerPixel += 4 // the canvas
		}
	case mimeTIFF:
		h.orientation = orientationOf(b)
	}
	return h, nil
}

func bytesPerPixel(model color.Model) int {
	if _, ok := model.(color.Palette); ok {
		return 1
	}
	switch model {
	case color.GrayModel:
		return 1
	case color.Gray16Model:
		return 2
	case color.YCbCrModel:
		return 3
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	return 4
}

// format reads one kind of file.
type format struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

func formats(mime string) format {
	switch mime {
	case mimePNG:
		return format{png.DecodeConfig, png.Decode}
	case mimeJPEG:
		return format{jpeg.DecodeConfig, jpeg.Decode}
	case mimeGIF:
		return format{gif.DecodeConfig, gif.Decode}
	case mimeWEBP:
		return format{webp.DecodeConfig, webp.Decode}
	case mimeBMP:
		return format{bmp.DecodeConfig, bmp.Decode}
	}
	return format{tiff.DecodeConfig, tiff.Decode}
}
