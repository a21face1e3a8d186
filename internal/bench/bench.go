// Package bench measures the fleet beside its floor: the same hops between the same processes, with one-row statements and no
// logic. It prints ratios from one run, so that a loaded or a slow machine shows in both.
package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// Samples are durations of one thing done again and again, by one client.
type Samples []time.Duration

// Quantile gives the duration below which the part q of the samples lies; q is from 0 to 1.
func (s Samples) Quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Clone(s)
	slices.SortFunc(sorted, cmp.Compare[time.Duration])
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Row is one line of a report: a thing measured beside its peer.
type Row struct {
	Name, Peer    string
	Mine, Others  Samples
	Limit         float64 // the ratio of medians that is aimed at; 0 for none
	PeerIsOneOnly bool    // Others holds a mean that another program printed
}

// Ratio is the medians' ratio.
func (r Row) Ratio() float64 {
	if p := r.Others.Quantile(0.5); p > 0 {
		return float64(r.Mine.Quantile(0.5)) / float64(p)
	}
	return 0
}

// Print writes a table in Markdown.
func Print(w io.Writer, rows []Row) {
	fmt.Fprintln(w, "| measured | p50 | p99 | beside | p50 | p99 | ratio of p50 | aim |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		aim := ""
		if r.Limit > 0 {
			aim = fmt.Sprintf("at most %.1f", r.Limit)
		}
		p99 := ms(r.Others.Quantile(0.99))
		if r.PeerIsOneOnly {
			p99 = ""
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %.2f | %s |\n", r.Name, ms(r.Mine.Quantile(0.5)), ms(r.Mine.Quantile(0.99)),
			r.Peer, ms(r.Others.Quantile(0.5)), p99, r.Ratio(), aim)
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond)) }

// timed measures fn.
func timed(s *Samples, fn func() error) error {
	began := time.Now()
	err := fn()
	*s = append(*s, time.Since(began))
	return err
}
