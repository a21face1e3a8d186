package picture

import (
	"bytes"
	"encoding/binary"
)

// chunk is one part of a png or a webp file.
type chunk struct {
	kind string
	data []byte
}

// pngChunks gives each chunk of a png file in turn, without its checksum, until the file or the caller ends it.
func pngChunks(b []byte) func(yield func(chunk) bool) {
	return func(yield func(chunk) bool) {
		for rest := b[8:]; len(rest) >= 12; {
			n := int(binary.BigEndian.Uint32(rest))
			if n > len(rest)-12 || !yield(chunk{string(rest[4:8]), rest[8 : 8+n]}) {
				return
			}
			rest = rest[12+n:]
		}
	}
}

// inspectPNG tells an animated png and its orientation.
func inspectPNG(b []byte) (animated bool, orientation int) {
	orientation = 1
	for c := range pngChunks(b) {
		switch c.kind {
		case "acTL":
			animated = true
		case "eXIf":
			orientation = orientationOf(c.data)
		}
	}
	return animated, orientation
}

// riffChunks gives each chunk of the body of a RIFF file, the last one cut where the file is.
func riffChunks(body []byte) func(yield func(chunk) bool) {
	return func(yield func(chunk) bool) {
		for rest := body; len(rest) >= 8; {
			n := int(binary.LittleEndian.Uint32(rest[4:]))
			kind := string(rest[:4])
			rest = rest[8:]
			end := min(n, len(rest))
			if !yield(chunk{kind, rest[:end]}) {
				return
			}
			rest = rest[min(end+n%2, len(rest)):]
		}
	}
}

func (h *header) inspectWebP(b []byte) {
	frames := 0
	h.lossless = false
	for c := range riffChunks(b[12:]) {
		switch c.kind {
		case "ANMF":
			frames++
		case "VP8L":
			h.lossless = true
		case "EXIF":
			h.orientation = orientationOf(c.data)
		case "VP8X":
			if len(c.data) > 0 && c.data[0]&2 != 0 {
				h.animated = true
			}
		}
	}
	h.animated = h.animated || frames > 0
}

// inspectJPEG walks a jpeg's markers: its orientation, what decoding keeps in memory, and its scans.
func (h *header) inspectJPEG(b []byte) {
	h.scans = 0
	for rest := b[2:]; len(rest) >= 4; {
		if rest[0] != 0xff { // within a scan
			next := bytes.IndexByte(rest, 0xff)
			if next < 0 {
				return
			}
			rest = rest[next:]
			continue
		}
		marker := rest[1]
		if marker == 0xff || marker <= 1 || 0xd0 <= marker && marker <= 0xd8 { // padding, or a marker without a length
			rest = rest[1:]
			continue
		}
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if marker == endOfImage || n < 2 || n > len(rest)-2 {
			return
		}
		data := rest[4 : 2+n]
		switch {
		case marker == startOfScan:
			h.scans++
		case marker == application1 && bytes.HasPrefix(data, []byte(exifHeading)):
			h.orientation = orientationOf(data)
		case marker == startOfFrame0+2:
			h.bytesPerPixel = progressiveBytes(data)
		}
		rest = rest[2+n:]
	}
}

// The markers of jpeg that matter here.
const (
	startOfFrame0 = 0xc0
	endOfImage    = 0xd9
	startOfScan   = 0xda
	application1  = 0xe1
)

// progressiveBytes gives what a pixel of a progressive jpeg takes until its last scan is read, by its frame header: each
// sample a byte, and its coefficient four. Colours in less detail than brightness have fewer samples than pixels.
func progressiveBytes(frame []byte) int {
	const sample, mostSamples = 1 + 4, 4
	if len(frame) < 6 || len(frame) < 6+3*int(frame[5]) {
		return sample * mostSamples
	}
	samples, across, down := 0, 1, 1
	for i := range int(frame[5]) {
		h, v := int(frame[7+3*i]>>4), int(frame[7+3*i]&15)
		samples += h * v
		across, down = max(across, h), max(down, v)
	}
	return (sample*samples + across*down - 1) / (across * down)
}

// exifHeading begins EXIF data in a jpeg.
const exifHeading = "Exif\x00\x00"

// orientationOf reads the orientation, from 1 to 8, out of EXIF data, which is a tiff file with or without a heading. What
// cannot be read is 1, the picture as it is stored.
func orientationOf(exif []byte) int {
	exif = bytes.TrimPrefix(exif, []byte(exifHeading))
	if len(exif) < 8 {
		return 1
	}
	var order binary.ByteOrder
	switch string(exif[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 1
	}
	offset := uint64(order.Uint32(exif[4:]))
	if offset+2 > uint64(len(exif)) {
		return 1
	}
	entries := exif[offset+2:]
	for range order.Uint16(exif[offset:]) {
		if len(entries) < 12 {
			break
		}
		const tag, short = 0x0112, 3
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			if v := order.Uint16(entries[8:]); 1 <= v && v <= 8 {
				return int(v)
			}
			break
		}
		entries = entries[12:]
	}
	return 1
}
