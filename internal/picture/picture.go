// Package picture makes the pictures of a workspace small enough to be shown to a model: recognised by their bytes, turned
// the way up that their metadata says, the first frame of an animation, reduced in pixels and in bytes.
//
// The bytes come from outside. What a picture would cost is worked out from its header before anything is decoded.
package picture

import (
	"errors"
	"fmt"
	"image/jpeg"
	"image/png"
	"io"
	"slices"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// Bounds limit what is decoded and what is given. The caller bounds how many pictures are worked on at once: each may take
// up to Memory while it is.
type Bounds struct {
	// Edge is the longer side of what is given, in pixels.
	Edge int
	// Bytes is the size of what is given, as a file; base64 makes a third more of it.
	Bytes int
	// Pixels is the size of what is decoded.
	Pixels int
	// Memory is what decoding may take, in bytes, as estimated from the header.
	Memory int64
}

// DefaultBounds are those of a model's pictures.
func DefaultBounds() Bounds {
	return Bounds{Edge: 1568, Bytes: 1 << 20, Pixels: 50_000_000, Memory: 256 << 20}
}

// Info is what a picture's header says.
type Info struct {
	MIMEType string
	// Width and Height are in pixels, the way up that the picture is meant to be looked at.
	Width, Height int
	// Animated says that there are more frames than the first.
	Animated bool
}

// Picture is what a model is shown.
type Picture struct {
	MIMEType string
	Data     []byte
	// Width and Height are those of Data, in pixels.
	Width, Height int
	// Original describes the picture that was given. Data is that picture's own bytes unless Changed.
	Original Info
	Changed  bool
}

// Kind is why a picture cannot be shown.
type Kind string

// The kinds of errors.
const (
	// NotAPicture is bytes of no format that is known here.
	NotAPicture Kind = "not_a_picture"
	// Broken is a picture that is truncated or damaged.
	Broken Kind = "broken"
	// Unsupported is a variant of a format that is not decoded here.
	Unsupported Kind = "unsupported"
	// TooLarge is a picture of more pixels, or one that takes more memory, than is decoded.
	TooLarge Kind = "too_large"
)

// Error is why a picture cannot be shown, in words that fit after "the picture cannot be shown: ".
type Error struct {
	Kind Kind
	// Info is what is known of the picture; its numbers are 0 where the header could not be read.
	Info   Info
	Reason string
}

func (e *Error) Error() string { return e.Reason }

// Inspect reads a picture's header and decodes nothing. Every error is an *Error.
func Inspect(b []byte) (Info, error) {
	h, err := readHeader(b)
	return h.info(), err
}

// Reduce gives the picture as a model is shown it: its own bytes if it is a png, jpeg, gif or webp that is within the
// bounds and needs no turning, else made anew. It is decoded in any case, so that what is given is whole. Every error is
// an *Error.
func Reduce(b []byte, bounds Bounds) (Picture, error) {
	h, err := readHeader(b)
	if err != nil {
		return Picture{}, err
	}
	if err := h.affordable(bounds); err != nil {
		return Picture{}, err
	}
	img, err := decode(b, h)
	if err != nil {
		return Picture{}, h.broken(err)
	}
	original := h.info()
	if h.presentable() && max(h.width, h.height) <= bounds.Edge && len(b) <= bounds.Bytes {
		return Picture{MIMEType: h.mime, Data: b, Width: h.width, Height: h.height, Original: original}, nil
	}
	for edge := bounds.Edge; ; edge = edge * 3 / 4 {
		width, height := fit(h.width, h.height, edge)
		small := turn(resample(img, width, height), h.orientation)
		mime, data := encode(small, h.lossless, bounds.Bytes)
		if data != nil {
			size := small.Bounds()
			return Picture{MIMEType: mime, Data: data, Width: size.Dx(), Height: size.Dy(), Original: original, Changed: true}, nil
		}
		if max(width, height) <= 1 {
			return Picture{}, h.fail(TooLarge, "it cannot be written in %d bytes", bounds.Bytes)
		}
		edge = min(edge, max(width, height))
	}
}

// fit gives the size of a picture whose longer side is at most edge.
func fit(width, height, edge int) (int, int) {
	longer := max(width, height)
	if longer <= edge {
		return width, height
	}
	edge = max(edge, 1)
	scale := func(n int) int { return max(1, (2*n*edge+longer)/(2*longer)) }
	return scale(width), scale(height)
}

func (h header) fail(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Info: h.info(), Reason: fmt.Sprintf(format, args...)}
}

// broken says in words what a decoder found.
func (h header) broken(err error) *Error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return h.fail(Broken, "the %s file ends too early: it is truncated", name(h.mime))
	}
	var (
		pngVariant  png.UnsupportedError
		jpegVariant jpeg.UnsupportedError
		tiffVariant tiff.UnsupportedError
	)
	if errors.As(err, &pngVariant) || errors.As(err, &jpegVariant) || errors.As(err, &tiffVariant) || errors.Is(err, bmp.ErrUnsupported) {
		return h.fail(Unsupported, "this variant of %s is not decoded here (%v)", name(h.mime), err)
	}
	return h.fail(Broken, "the %s file cannot be decoded (%v)", name(h.mime), err)
}

// maxSide bounds the longer side of what is decoded: a picture of one row is not cheap for having few pixels.
const maxSide = 1 << 17

// affordable refuses what would cost too much to decode.
func (h header) affordable(bounds Bounds) error {
	if max(h.width, h.height) > maxSide {
		return h.fail(TooLarge, "it is %d x %d pixels, and no side longer than %d pixels is decoded", h.width, h.height, maxSide)
	}
	pixels := int64(h.width) * int64(h.height)
	if pixels > int64(bounds.Pixels) {
		return h.fail(TooLarge, "it is %d x %d pixels, and no more than %d pixels are decoded", h.width, h.height, bounds.Pixels)
	}
	if pixels*int64(h.bytesPerPixel) > bounds.Memory {
		return h.fail(TooLarge, "it is %d x %d pixels and decoding it takes more than %d MiB of memory", h.width, h.height, bounds.Memory>>20)
	}
	// Each scan of a progressive jpeg goes over all pixels again, however few bytes it has.
	const maxScannedPixels = 2_000_000_000
	if int64(h.scans)*pixels > maxScannedPixels {
		return h.fail(TooLarge, "its %d scans of %d x %d pixels take too long to decode", h.scans, h.width, h.height)
	}
	return nil
}

// presentable reports whether a model may be given the bytes as they are.
func (h header) presentable() bool {
	return h.orientation == 1 && !h.animated && !h.cmyk && slices.Contains([]string{mimePNG, mimeJPEG, mimeGIF, mimeWEBP}, h.mime)
}
