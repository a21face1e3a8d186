package picture

import (
	"image"
	"image/draw"
)

// resample gives img in so many pixels, no more than it has, each the average of the area that it covers. It goes over the
// source row by row, so that it takes little memory beside the two pictures and keeps thin lines and small print, which
// sampling would lose.
func resample(img image.Image, width, height int) *image.RGBA {
	size := img.Bounds()
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	if size.Dx() == width && size.Dy() == height {
		draw.Draw(out, out.Rect, img, size.Min, draw.Src)
		return out
	}
	row := image.NewRGBA(image.Rect(0, 0, size.Dx(), 1))
	shares := spread(size.Dx(), width)
	across := make([]float32, 4*width) // one source row, in the target's width
	sum := make([]float32, 4*width)    // the target row that is being gathered
	down := spread(size.Dy(), height)
	for y := range size.Dy() {
		draw.Draw(row, row.Rect, img, image.Pt(size.Min.X, size.Min.Y+y), draw.Src)
		clear(across)
		gather(across, row.Pix, shares)
		s := down[y]
		add(sum, across, s.first)
		if s.ends {
			store(out.Pix[s.target*out.Stride:], sum)
			clear(sum)
			add(sum, across, s.second)
		}
	}
	return out
}

// share says how a source pixel's area is divided: the first part of it goes to the target pixel, the second to the next.
// ends marks the last source pixel that the target has a part in. The parts of one target add up to 1.
type share struct {
	target        int
	first, second float32
	ends          bool
}

// spread divides the pixels of a source among a target of at most as many, along one side, in whole numbers.
func spread(source, target int) []share {
	shares := make([]share, source)
	for i := range shares {
		// In units of 1/(source*target): a source pixel is target long, a target pixel source.
		start, end := i*target, (i+1)*target
		t := start / source
		boundary := (t + 1) * source
		s := share{target: t, ends: end >= boundary}
		s.first = float32(min(end, boundary)-start) / float32(source)
		if end > boundary {
			s.second = float32(end-boundary) / float32(source)
		}
		shares[i] = s
	}
	return shares
}

// gather adds a row of pixels to the row of sums that it is spread over.
func gather(sums []float32, pixels []byte, shares []share) {
	for x, s := range shares {
		p := pixels[4*x : 4*x+4 : 4*x+4]
		q := sums[4*s.target : 4*s.target+4 : 4*s.target+4]
		for c := range 4 {
			q[c] += float32(p[c]) * s.first
		}
		if s.second > 0 {
			q := sums[4*s.target+4 : 4*s.target+8]
			for c := range 4 {
				q[c] += float32(p[c]) * s.second
			}
		}
	}
}

func add(sums, row []float32, part float32) {
	if part == 0 {
		return
	}
	for i, v := range row {
		sums[i] += v * part
	}
}

func store(pixels []byte, sums []float32) {
	for i, v := range sums {
		pixels[i] = byte(min(v+0.5, 255))
	}
}

// turn gives img the way up that an EXIF orientation from 1 to 8 asks for.
func turn(img *image.RGBA, orientation int) *image.RGBA {
	if orientation <= 1 {
		return img
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	size := image.Rect(0, 0, w, h)
	if orientation > 4 {
		size = image.Rect(0, 0, h, w)
	}
	out := image.NewRGBA(size)
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch orientation {
			case 2: // mirrored
				tx = w - 1 - x
			case 3: // upside down
				tx, ty = w-1-x, h-1-y
			case 4: // mirrored and upside down
				ty = h - 1 - y
			case 5: // mirrored along the diagonal
				tx, ty = y, x
			case 6: // to be turned clockwise
				tx, ty = h-1-y, x
			case 7: // mirrored along the other diagonal
				tx, ty = h-1-y, w-1-x
			case 8: // to be turned anticlockwise
				tx, ty = y, w-1-x
			}
			copy(out.Pix[out.PixOffset(tx, ty):][:4], img.Pix[img.PixOffset(x, y):][:4])
		}
	}
	return out
}
