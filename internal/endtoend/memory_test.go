package endtoend_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	// mostMemory is what each process of the fleet may hold resident, in bytes, whatever jobs go on.
	mostMemory = 300_000_000
	// sampleEvery is the time between two looks at the processes' memory.
	sampleEvery = 50 * time.Millisecond
)

// memory watches how much the processes themselves hold resident. What runs in the sandbox are other processes.
type memory struct {
	of      []*process
	done    chan struct{}
	running sync.WaitGroup

	peaks   []int64 // by process, in bytes
	samples int
	err     error
}

func watchMemory(t *testing.T, of []*process) *memory {
	t.Helper()
	m := &memory{of: of, done: make(chan struct{}), peaks: make([]int64, len(of))}
	m.running.Go(m.run)
	return m
}

func (m *memory) run() {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		if m.err = m.sample("VmRSS"); m.err != nil {
			return
		}
		m.samples++
		select {
		case <-m.done:
			// The kernel's own mark of the highest knows what fell between two samples.
			m.err = m.sample("VmHWM")
			return
		case <-ticker.C:
		}
	}
}

func (m *memory) sample(field string) error {
	for i, p := range m.of {
		now, err := resident(p.cmd.Process.Pid, field)
		if err != nil {
			return fmt.Errorf("read the memory of the %s: %w", p.name, err)
		}
		m.peaks[i] = max(m.peaks[i], now)
	}
	return nil
}

// end stops watching, prints the peaks, and judges them.
func (m *memory) end(t *testing.T) {
	t.Helper()
	close(m.done)
	m.running.Wait()
	if m.err != nil {
		t.Fatal(m.err)
	}
	for i, p := range m.of {
		t.Logf("%-10s held at most %5.1f MB resident (%d samples)", p.name, float64(m.peaks[i])/1e6, m.samples)
		if m.peaks[i] >= mostMemory {
			t.Errorf("the %s held %d bytes resident, and may hold less than %d", p.name, m.peaks[i], mostMemory)
		}
	}
}

// resident gives a field of a process's status, in bytes.
func resident(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		value, ok := bytes.CutPrefix(line, []byte(field+":"))
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 10, 64)
		return kib << 10, err
	}
	return 0, fmt.Errorf("its status has no %s", field)
}
