package workspace

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"treeline/internal/call"
)

// SearchRequest asks where literal strings are. Path and Glob select files as in ListRequest. ContextLines is 0 to
// Limits.ContextLines.
type SearchRequest struct {
	Queries      []string `json:"queries"`
	Path         string   `json:"path,omitempty"`
	Glob         string   `json:"glob,omitempty"`
	ContextLines int      `json:"contextLines,omitempty"`
	IgnoreCase   bool     `json:"ignoreCase,omitempty"`
}

// Match is one line that one query is in. Column is that of the first hit, in characters from 1.
type Match struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Query  string `json:"query"`
}

// QueryTotal is how many lines, in how many files, one query is in: shown or not.
type QueryTotal struct {
	Query   string `json:"query"`
	Matches int    `json:"matches"`
	Files   int    `json:"files"`
}

// Skipped is a file that was not searched.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// SearchData is what search_files answers to programs. Matches are those that the text shows, in order of path, line and
// query; Totals are in the order of the queries.
type SearchData struct {
	Matches  []Match      `json:"matches"`
	Totals   []QueryTotal `json:"totals"`
	Searched int          `json:"searched"`
	Skipped  []Skipped    `json:"skipped"`
	// Cut is "characters" where not every match is shown.
	Cut Cut `json:"cut,omitempty"`
}

// Check refuses what no tree could answer (invalid_arguments).
func (r SearchRequest) Check(l Limits) *call.Refusal {
	const example = `like {"queries": ["total revenue", "Q3"], "contextLines": 2}`
	if len(r.Queries) == 0 || len(r.Queries) > l.SearchQueries {
		return call.Refuse(call.InvalidArguments, `"queries" has %d strings: it takes 1 to %d, %s.`, len(r.Queries), l.SearchQueries, example)
	}
	for i, q := range r.Queries {
		if q == "" {
			return call.Refuse(call.InvalidArguments, `"queries" entry %d is empty: each is the text to look for, %s.`, i+1, example)
		}
	}
	if r.ContextLines < 0 || r.ContextLines > l.ContextLines {
		return call.Refuse(call.InvalidArguments, `"contextLines" is %d: it is 0 to %d, %s.`, r.ContextLines, l.ContextLines, example)
	}
	return nil
}

// Search answers search_files. The error is a *call.Refusal (the codes of List, and invalid_arguments) or the storage's.
func (t *Tree) Search(req SearchRequest, l Limits, content ContentFunc) (string, SearchData, error) {
	s := search{req: req, limits: l, data: SearchData{Matches: []Match{}, Skipped: []Skipped{}}}
	if refusal := req.Check(l); refusal != nil {
		return "", s.data, refusal
	}
	asked, g, refusal := t.asked(req.Path, req.Glob)
	if refusal != nil {
		return "", s.data, refusal
	}
	s.asked = asked
	if err := s.load(g.filter(asked), content); err != nil {
		return "", s.data, err
	}
	s.prepare()
	s.count()
	s.render()
	return s.text(), s.data, nil
}

// search is one call of Search under way.
type search struct {
	req    SearchRequest
	limits Limits
	asked  []Entry

	paths   []string
	bodies  [][]byte
	needles []needle
	sieve   *sieve // nil if no needle needs one
	// hits has, for each file, the number of lines that any query is in, as the sum over queries.
	hits  []int
	shown strings.Builder
	data  SearchData
}

// load fetches the texts among entries and names the others.
func (s *search) load(entries []Entry, content ContentFunc) error {
	s.paths, s.bodies = make([]string, 0, len(entries)), make([][]byte, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		if e.Kind != Text {
			s.data.Skipped = append(s.data.Skipped, Skipped{e.Path, "not text"})
			continue
		}
		b, err := content(e.Path)
		if err != nil {
			return fmt.Errorf("reading %s to search it: %w", e.Path, err)
		}
		s.paths, s.bodies = append(s.paths, e.Path), append(s.bodies, textBody(b))
	}
	s.data.Searched = len(s.bodies)
	return nil
}

func (s *search) prepare() {
	h := sample(s.bodies)
	for _, q := range s.req.Queries {
		s.needles = append(s.needles, newNeedle(q, s.req.IgnoreCase, &h))
	}
	s.sieve = newSieve(s.needles, &h)
}

// searchersOver is the size of what is searched, in bytes, past which more than one goroutine shares it.
const searchersOver = 256 * kib

// count makes the totals: each file is gone through once, for all queries while it is at hand.
func (s *search) count() {
	n := len(s.needles)
	lines := make([]int, n*len(s.bodies))
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(s.bodies) {
				return
			}
			s.countFile(s.bodies[i], lines[i*n:(i+1)*n])
		}
	}
	var others sync.WaitGroup
	for range s.searchers() - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	s.total(lines)
}

// countFile counts the lines of one file that each query is in.
func (s *search) countFile(body []byte, lines []int) {
	sieved := s.sieve != nil && s.sieve.count(body, lines)
	for q := range s.needles {
		if !sieved || !slices.Contains(s.sieve.index, q) {
			lines[q] = s.needles[q].countHits(body)
		}
	}
}

func (s *search) searchers() int {
	size := 0
	for _, b := range s.bodies {
		if size += len(b); size > searchersOver {
			return min(runtime.GOMAXPROCS(0), 4, len(s.bodies))
		}
	}
	return 1
}

func (s *search) total(lines []int) {
	n := len(s.needles)
	s.hits = make([]int, len(s.bodies))
	s.data.Totals = make([]QueryTotal, n)
	for q, query := range s.req.Queries {
		s.data.Totals[q].Query = query
	}
	for at, count := range lines {
		if count > 0 {
			s.hits[at/n] += count
			s.data.Totals[at%n].Matches += count
			s.data.Totals[at%n].Files++
		}
	}
}

// matches is the sum of the totals.
func (s *search) matches() (n int) {
	for _, total := range s.data.Totals {
		n += total.Matches
	}
	return n
}
