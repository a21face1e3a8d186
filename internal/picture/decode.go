package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/draw"
)

// guard turns a decoder's panic into an error. The decoders of rarer formats have had panics on crafted files, and one
// picture must not take down a process that serves many conversations; they hold nothing that a panic could leave locked.
func guard[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its data is damaged: %v", r)
		}
	}()
	return f()
}

// decode gives the picture, or the first frame of an animation on its canvas, as it is stored.
func decode(b []byte, h header) (image.Image, error) {
	return guard(func() (image.Image, error) {
		if h.mime == mimeWEBP && h.animated {
			return decodeAnimatedWebP(b, h)
		}
		img, err := formats(h.mime).decode(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		// A header that said less than the picture has would have passed the bounds.
		size := img.Bounds()
		if size.Dx() > h.width || size.Dy() > h.height {
			return nil, h.fail(Broken, "the %s file has more pixels than its header says", name(h.mime))
		}
		if size == image.Rect(0, 0, h.width, h.height) {
			return img, nil
		}
		return onCanvas(img, size.Min, h), nil
	})
}

// onCanvas lays a frame that is smaller than its picture where it belongs, transparent around it.
func onCanvas(frame image.Image, at image.Point, h header) image.Image {
	canvas := image.NewRGBA(image.Rect(0, 0, h.width, h.height))
	size := frame.Bounds()
	draw.Draw(canvas, size.Sub(size.Min).Add(at), frame, size.Min, draw.Src)
	return canvas
}

// countFrames counts the frames of a gif, two at most, by its blocks alone.
func countFrames(b []byte) int {
	if len(b) < 13 {
		return 0
	}
	table := func(fields byte) int {
		if fields&0x80 == 0 {
			return 0
		}
		return 3 << (1 + fields&7)
	}
	frames, at := 0, 13+table(b[10])
	for at < len(b) && frames < 2 {
		switch b[at] {
		case 0x21: // an extension, with its label
			at += 2
		case 0x2c: // a frame, with its place, its colours and the width of its codes
			if at+10 > len(b) {
				return frames
			}
			frames++
			at += 10 + table(b[at+9]) + 1
		default:
			return frames
		}
		for at < len(b) && b[at] != 0 { // the blocks of its data
			at += int(b[at]) + 1
		}
		at++
	}
	return frames
}

// decodeAnimatedWebP decodes the first frame of an animated webp, which the decoder does not do: the frame's chunks are
// put into a file of their own.
func decodeAnimatedWebP(b []byte, h header) (image.Image, error) {
	for c := range riffChunks(b[12:]) {
		if c.kind != "ANMF" {
			continue
		}
		const place = 16 // where the frame lies, how large it is, how long it is shown
		if len(c.data) < place {
			break
		}
		at := image.Pt(2*uint24(c.data), 2*uint24(c.data[3:]))
		width, height := uint24(c.data[6:])+1, uint24(c.data[9:])+1
		if at.X+width > h.width || at.Y+height > h.height {
			return nil, h.fail(Broken, "the first frame of the webp file lies outside its canvas")
		}
		img, err := formats(mimeWEBP).decode(bytes.NewReader(frameFile(c.data[6:12], c.data[place:])))
		if err != nil {
			return nil, err
		}
		if img.Bounds() != image.Rect(0, 0, width, height) {
			return nil, h.fail(Broken, "the first frame of the webp file is not as large as it says")
		}
		return onCanvas(img, at, h), nil
	}
	return nil, h.fail(Broken, "the webp file is animated but has no whole frame")
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// frameFile makes a webp file of one frame from the six bytes of its size and its chunks.
func frameFile(size, chunks []byte) []byte {
	var flags byte
	for c := range riffChunks(chunks) {
		if c.kind == "ALPH" {
			flags = 1 << 4
		}
	}
	extended := append([]byte{'V', 'P', '8', 'X', 10, 0, 0, 0, flags, 0, 0, 0}, size...)
	file := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(extended)+len(chunks)))
	file = append(append(file, "WEBP"...), extended...)
	return append(file, chunks...)
}
