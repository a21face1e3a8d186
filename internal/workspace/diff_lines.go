package workspace

import (
	"bytes"
	"hash/maphash"
	"slices"
)

const (
	// diffSteps bounds the work of one diff over all its parts; diffDistance how many changed lines one part may have
	// before it is cut at lines that are unique, or taken as changed whole.
	diffSteps    = 4 << 20
	diffDistance = 1 << 10
)

// sameRuns finds stretches of equal lines of two files, in order: the least changes where these are few, else what the
// bounds allow.
func sameRuns(a, b Document) []run {
	head, tail := 0, 0
	n := min(len(a.Lines), len(b.Lines))
	for head < n && bytes.Equal(whole(a, head), whole(b, head)) {
		head++
	}
	for tail < n-head && bytes.Equal(whole(a, len(a.Lines)-1-tail), whole(b, len(b.Lines)-1-tail)) {
		tail++
	}
	d := &differ{steps: diffSteps}
	d.a, d.b = sums(a, head, len(a.Lines)-tail), sums(b, head, len(b.Lines)-tail)
	d.compare(0, len(d.a), 0, len(d.b), true)
	runs := make([]run, 0, len(d.same)+2)
	runs = appendRun(runs, run{0, 0, head})
	for _, r := range d.same {
		r.a, r.b = r.a+head, r.b+head
		runs = appendEqual(runs, a, b, r)
	}
	return appendRun(runs, run{len(a.Lines) - tail, len(b.Lines) - tail, tail})
}

// whole gives line i, counted from 0, with its ending.
func whole(d Document, i int) []byte { l := d.Lines[i]; return d.Body[l.Start:l.Next] }

// sums gives a number for each line from one up to another; equal lines have equal numbers.
func sums(d Document, from, to int) []uint64 {
	list := make([]uint64, 0, to-from)
	for i := from; i < to; i++ {
		list = append(list, maphash.Bytes(seed, whole(d, i)))
	}
	return list
}

var seed = maphash.MakeSeed()

// appendEqual appends what is equal of a run whose lines have equal numbers: different lines can share one.
func appendEqual(runs []run, a, b Document, r run) []run {
	for i := range r.lines {
		if bytes.Equal(whole(a, r.a+i), whole(b, r.b+i)) {
			runs = appendRun(runs, run{r.a + i, r.b + i, 1})
		}
	}
	return runs
}

// appendRun appends a run, joined to the last one where it goes on from that.
func appendRun(runs []run, r run) []run {
	if r.lines == 0 {
		return runs
	}
	if n := len(runs) - 1; n >= 0 && runs[n].a+runs[n].lines == r.a && runs[n].b+runs[n].lines == r.b {
		runs[n].lines += r.lines
		return runs
	}
	return append(runs, r)
}

// differ compares two lists of line numbers by the algorithm of Myers in its form that needs linear space: a path of
// least changes is found from both ends at once, and both halves are compared again.
type differ struct {
	a, b      []uint64
	same      []run
	steps     int // left
	fore, aft []int
}

// compare appends the equal runs of a[loA:hiA] and b[loB:hiB]. With anchors, what is too far apart is cut at unique lines.
func (d *differ) compare(loA, hiA, loB, hiB int, anchors bool) {
	for loA < hiA && loB < hiB && d.a[loA] == d.b[loB] {
		d.same = appendRun(d.same, run{loA, loB, 1})
		loA, loB = loA+1, loB+1
	}
	tail := 0
	for loA < hiA && loB < hiB && d.a[hiA-1] == d.b[hiB-1] {
		hiA, hiB, tail = hiA-1, hiB-1, tail+1
	}
	if loA < hiA && loB < hiB {
		if midA, midB, ok := d.middle(loA, hiA, loB, hiB); ok {
			d.compare(loA, midA, loB, midB, anchors)
			d.compare(midA, hiA, midB, hiB, anchors)
		} else if anchors {
			d.compareBetween(loA, hiA, loB, hiB)
		}
	}
	d.same = appendRun(d.same, run{hiA, hiB, tail})
}

// compareBetween compares what lies between lines that both sides have once, in an order that both sides share.
func (d *differ) compareBetween(loA, hiA, loB, hiB int) {
	atA, atB := loA, loB
	for _, p := range d.unique(loA, hiA, loB, hiB) {
		d.compare(atA, p.a, atB, p.b, false)
		d.same = appendRun(d.same, run{p.a, p.b, 1})
		atA, atB = p.a+1, p.b+1
	}
	if atA > loA || atB > loB {
		d.compare(atA, hiA, atB, hiB, false)
	}
}

// unique gives the longest rising sequence of the lines that both sides have once.
func (d *differ) unique(loA, hiA, loB, hiB int) []run {
	type seen struct{ inA, inB, atB int }
	lines := make(map[uint64]seen, hiA-loA)
	for i := loA; i < hiA; i++ {
		s := lines[d.a[i]]
		s.inA++
		lines[d.a[i]] = s
	}
	for i := loB; i < hiB; i++ {
		if s, ok := lines[d.b[i]]; ok {
			s.inB, s.atB = s.inB+1, i
			lines[d.b[i]] = s
		}
	}
	var pairs []run
	for i := loA; i < hiA; i++ {
		if s := lines[d.a[i]]; s.inA == 1 && s.inB == 1 {
			pairs = append(pairs, run{i, s.atB, 1})
		}
	}
	return rising(pairs)
}

// rising gives a longest part of pairs, which rise in a, that rises in b as well.
func rising(pairs []run) []run {
	var ends []int // ends[n] is the pair with the least b that closes a sequence of n+1
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p.b, func(end, b int) int { return pairs[end].b - b })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	list := make([]run, len(ends))
	if len(ends) == 0 {
		return list
	}
	for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, before[i] {
		list[n] = pairs[i]
	}
	return list
}

// middle finds a point on a path of least changes, about halfway. It gives up where there are too many.
func (d *differ) middle(loA, hiA, loB, hiB int) (midA, midB int, ok bool) {
	n, m := hiA-loA, hiB-loB
	most := min((n+m+1)/2, diffDistance)
	fore, aft := newFront(&d.fore, most, n, m), newFront(&d.aft, most, n, m)
	odd := (n-m)%2 != 0
	forward := func(x, y int) bool { return d.a[loA+x] == d.b[loB+y] }
	backward := func(x, y int) bool { return d.a[hiA-1-x] == d.b[hiB-1-y] }
	for cost := 0; cost <= most; cost++ {
		if d.steps -= 2*cost + 2; d.steps < 0 {
			return 0, 0, false
		}
		if x, y, met := fore.advance(cost, forward, aft, odd); met {
			return inside(loA, hiA, loB, hiB, loA+x, loB+y)
		}
		if x, y, met := aft.advance(cost, backward, fore, !odd); met {
			return inside(loA, hiA, loB, hiB, hiA-x, hiB-y)
		}
	}
	return 0, 0, false
}

// inside accepts a point that leaves both parts smaller than the whole.
func inside(loA, hiA, loB, hiB, midA, midB int) (int, int, bool) {
	return midA, midB, (midA > loA || midB > loB) && (midA < hiA || midB < hiB)
}

// front is how far paths of one search have come: on diagonal k, which is x-y, to x = far[zero+k], or -1 if on none.
type front struct {
	far      []int
	zero     int
	n, m     int // the size of the box
	low, top int // diagonals that have left the box at its sides
}

func newFront(buffer *[]int, most, n, m int) *front {
	size := 2*most + 3
	if len(*buffer) < size {
		*buffer = make([]int, size)
	}
	f := &front{far: (*buffer)[:size], zero: most + 1, n: n, m: m}
	for i := range f.far {
		f.far[i] = -1
	}
	return f
}

// advance takes every path one change further and then along equal lines. With check, it gives the first point at which
// a path meets one of the other search.
func (f *front) advance(cost int, equal func(x, y int) bool, other *front, check bool) (x, y int, met bool) {
	for k := -cost + f.low; k <= cost-f.top; k += 2 {
		switch {
		case cost == 0:
			x = 0
		case k == -cost || k != cost && f.far[f.zero+k-1] < f.far[f.zero+k+1]:
			x = f.far[f.zero+k+1]
		default:
			x = f.far[f.zero+k-1] + 1
		}
		y = x - k
		for x < f.n && y < f.m && equal(x, y) {
			x, y = x+1, y+1
		}
		f.far[f.zero+k] = x
		switch {
		case x > f.n:
			f.top += 2
		case y > f.m:
			f.low += 2
		case check && f.meets(other, k, x):
			return x, y, true
		}
	}
	return 0, 0, false
}

func (f *front) meets(other *front, k, x int) bool {
	at := other.zero + f.n - f.m - k
	return at >= 0 && at < len(other.far) && other.far[at] >= 0 && x+other.far[at] >= f.n
}
