package role

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"treeline/internal/workspace"
)

// Size is a number of bytes, written as 64MiB, 512KiB, 1GiB or plain bytes.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}}

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(string(text), unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/unit.bytes {
			break
		}
		*s = Size(n * unit.bytes)
		return nil
	}
	return fmt.Errorf("%q is no size: write a whole number with KiB, MiB or GiB behind it, such as 64MiB", text)
}

// String writes a size in the largest unit of which it is a multiple.
func (s Size) String() string {
	for _, unit := range sizeUnits {
		if s > 0 && int64(s)%unit.bytes == 0 {
			return strconv.FormatInt(int64(s)/unit.bytes, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// LimitSettings are the limits of the product that an operator may set.
type LimitSettings struct {
	WorkspaceBytes Size `help:"Most that the files of one workspace take together." default:"64MiB" env:"TREELINE_WORKSPACE_BYTES" placeholder:"SIZE"`
	WorkspaceFiles int  `help:"Most files of one workspace." default:"2000" env:"TREELINE_WORKSPACE_FILES" placeholder:"N"`
	HistoryBytes   Size `help:"Most that the former versions of one conversation's files take; the oldest go first." default:"256MiB" env:"TREELINE_HISTORY_BYTES" placeholder:"SIZE"`
	WaitingCalls   int  `help:"Most calls of one conversation that wait; one more is refused as busy." default:"64" env:"TREELINE_WAITING_CALLS" placeholder:"N"`

	PreviewChars     int  `help:"Characters of a long result that a model is shown." default:"8000" env:"TREELINE_PREVIEW_CHARS" placeholder:"N"`
	ReadChars        int  `help:"Characters that one read shows." default:"40000" env:"TREELINE_READ_CHARS" placeholder:"N"`
	ReadLines        int  `help:"Lines of one file that a read shows." default:"2000" env:"TREELINE_READ_LINES" placeholder:"N"`
	SearchChars      int  `help:"Characters that one search shows." default:"20000" env:"TREELINE_SEARCH_CHARS" placeholder:"N"`
	ListEntries      int  `help:"Files that one listing names." default:"1000" env:"TREELINE_LIST_ENTRIES" placeholder:"N"`
	DiffLines        int  `help:"Lines of a change's diff that are shown." default:"200" env:"TREELINE_DIFF_LINES" placeholder:"N"`
	ReplacementChars int  `help:"Characters past which a file is edited and not replaced whole." default:"4000" env:"TREELINE_REPLACEMENT_CHARS" placeholder:"N"`
	ImageEdge        int  `help:"Longer side, in pixels, of a picture as a model is shown it." default:"1568" env:"TREELINE_IMAGE_EDGE" placeholder:"N"`
	ImageBytes       Size `help:"Size of a picture as a model is shown it." default:"1MiB" env:"TREELINE_IMAGE_BYTES" placeholder:"SIZE"`

	InputBytes     Size          `help:"Most that the inputs of one run take together." default:"128MiB" env:"TREELINE_INPUT_BYTES" placeholder:"SIZE"`
	SkillBytes     Size          `help:"Most that one skill takes." default:"16MiB" env:"TREELINE_SKILL_BYTES" placeholder:"SIZE"`
	RunTime        time.Duration `help:"How long code runs unless the call says otherwise." default:"2m" env:"TREELINE_RUN_TIME" placeholder:"TIME"`
	RunTimeMax     time.Duration `help:"Longest that a call may let code run." default:"10m" env:"TREELINE_RUN_TIME_MAX" placeholder:"TIME"`
	RunMemoryBytes Size          `help:"Memory of one run." default:"1GiB" env:"TREELINE_RUN_MEMORY_BYTES" placeholder:"SIZE"`
	RunProcesses   int           `help:"Processes and threads of one run." default:"64" env:"TREELINE_RUN_PROCESSES" placeholder:"N"`
	RunDiskBytes   Size          `help:"What one run may write." default:"512MiB" env:"TREELINE_RUN_DISK_BYTES" placeholder:"SIZE"`
	RunOutputBytes Size          `help:"What is kept of each output of one run, head and tail." default:"1MiB" env:"TREELINE_RUN_OUTPUT_BYTES" placeholder:"SIZE"`
}

// limits gives the limits with these in place of the defaults. The error names the setting that cannot be.
func (s LimitSettings) limits() (workspace.Limits, error) {
	err := errors.Join(
		atLeast("TREELINE_WORKSPACE_BYTES", int64(s.WorkspaceBytes), 1),
		atLeast("TREELINE_WORKSPACE_FILES", s.WorkspaceFiles, 1),
		atLeast("TREELINE_HISTORY_BYTES", int64(s.HistoryBytes), 0),
		atLeast("TREELINE_WAITING_CALLS", s.WaitingCalls, 1),
		atLeast("TREELINE_PREVIEW_CHARS", s.PreviewChars, 500),
		atLeast("TREELINE_READ_CHARS", s.ReadChars, 500),
		atLeast("TREELINE_READ_LINES", s.ReadLines, 1),
		atLeast("TREELINE_SEARCH_CHARS", s.SearchChars, 500),
		atLeast("TREELINE_LIST_ENTRIES", s.ListEntries, 1),
		atLeast("TREELINE_DIFF_LINES", s.DiffLines, 1),
		atLeast("TREELINE_REPLACEMENT_CHARS", s.ReplacementChars, 1),
		atLeast("TREELINE_IMAGE_EDGE", s.ImageEdge, 16),
		atLeast("TREELINE_IMAGE_BYTES", int64(s.ImageBytes), 4<<10),
		atLeast("TREELINE_INPUT_BYTES", int64(s.InputBytes), 1),
		atLeast("TREELINE_SKILL_BYTES", int64(s.SkillBytes), 1),
		atLeast("TREELINE_RUN_TIME", s.RunTime, time.Second),
		atLeast("TREELINE_RUN_TIME_MAX", s.RunTimeMax, s.RunTime),
		atLeast("TREELINE_RUN_MEMORY_BYTES", int64(s.RunMemoryBytes), 64<<20),
		atLeast("TREELINE_RUN_PROCESSES", s.RunProcesses, 1),
		atLeast("TREELINE_RUN_DISK_BYTES", int64(s.RunDiskBytes), 1<<20),
		atLeast("TREELINE_RUN_OUTPUT_BYTES", int64(s.RunOutputBytes), 1<<10),
	)
	if err != nil {
		return workspace.Limits{}, err
	}
	l := workspace.DefaultLimits()
	l.WorkspaceBytes, l.WorkspaceFiles, l.HistoryBytes = int64(s.WorkspaceBytes), s.WorkspaceFiles, int64(s.HistoryBytes)
	l.WaitingCalls, l.PreviewChars, l.ReadChars, l.ReadLines = s.WaitingCalls, s.PreviewChars, s.ReadChars, s.ReadLines
	l.SearchChars, l.ListEntries, l.DiffLines = s.SearchChars, s.ListEntries, s.DiffLines
	l.ReplacementChars, l.ImageEdge, l.ImageBytes = s.ReplacementChars, s.ImageEdge, int(s.ImageBytes)
	l.InputBytes, l.SkillBytes, l.RunTime, l.RunTimeMax = int64(s.InputBytes), int64(s.SkillBytes), s.RunTime, s.RunTimeMax
	l.RunMemoryBytes, l.RunProcesses = int64(s.RunMemoryBytes), s.RunProcesses
	l.RunDiskBytes, l.RunOutputBytes = int64(s.RunDiskBytes), int(s.RunOutputBytes)
	return l, nil
}
