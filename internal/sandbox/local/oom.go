package local

import (
	"bytes"
	"os"
)

// oomKills counts the processes that the kernel has killed, machine-wide, because memory ran short; 0 where it does not
// tell. A program that is found killed while the count has risen is taken to be one of them.
func oomKills() int64 {
	body, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(body, []byte("\noom_kill "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return number(line)
}
