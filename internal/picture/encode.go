package picture

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
)

// errFull stops an encoder whose output has grown past what is wanted.
var errFull = errors.New("the picture does not fit")

// limitedBuffer takes no more than so many bytes.
type limitedBuffer struct {
	bytes.Buffer
	limit int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.limit {
		return 0, errFull
	}
	return b.Buffer.Write(p)
}

// encode writes img in at most limit bytes, or gives nil. What was stored without loss, or has transparency, stays so if it
// fits: drawings and screens are legible and small as png. The rest is jpeg, in the best quality that fits.
func encode(img *image.RGBA, lossless bool, limit int) (mime string, data []byte) {
	opaque := img.Opaque()
	if lossless || !opaque {
		b := &limitedBuffer{limit: limit}
		if png.Encode(b, img) == nil {
			return mimePNG, b.Bytes()
		}
	}
	if !opaque {
		img = onWhite(img)
	}
	for quality := 90; quality >= 40; quality -= 10 {
		b := &limitedBuffer{limit: limit}
		if jpeg.Encode(b, img, &jpeg.Options{Quality: quality}) == nil {
			return mimeJPEG, b.Bytes()
		}
	}
	return "", nil
}

// onWhite puts white behind what is transparent, as jpeg has no transparency and a page is white.
func onWhite(img *image.RGBA) *image.RGBA {
	out := image.NewRGBA(img.Rect)
	draw.Draw(out, out.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(out, out.Rect, img, img.Rect.Min, draw.Over)
	return out
}
