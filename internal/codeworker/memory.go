package codeworker

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/rs/zerolog"
)

// slots is how many runs go on at a time: as many as are configured and as fit in memory, and one at least.
func slots(cfg Config, run int64, log zerolog.Logger) int {
	memory := cfg.MemoryBytes
	if memory <= 0 {
		memory = availableMemory("/")
	}
	fit := memory / max(run, 1)
	if fit < 1 {
		log.Warn().Int64("available", memory).Int64("run", run).Msg("there is less memory than one run may take; runs go on one at a time")
	}
	return int(max(1, min(int64(cfg.Slots), fit)))
}

// availableMemory is what the machine and the control group leave, in bytes, as files below root tell; a great deal where
// neither does.
func availableMemory(root string) int64 {
	most := int64(math.MaxInt64)
	if b, err := os.ReadFile(root + "proc/meminfo"); err == nil {
		for line := range bytes.Lines(b) {
			fields := strings.Fields(string(line))
			if len(fields) >= 2 && fields[0] == "MemAvailable:" {
				if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
					most = min(most, kib<<10)
				}
			}
		}
	}
	for _, pair := range [][2]string{
		{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"},
		{"sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, ok := number(root + pair[0])
		used, known := number(root + pair[1])
		if ok && known {
			most = min(most, max(limit-used, 0))
		}
	}
	return most
}

// number reads a file that holds one number.
func number(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}
