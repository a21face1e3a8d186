package workspace

import "time"

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Limits holds every number of the product that an operator may set. Characters are Unicode code points.
type Limits struct {
	// PreviewChars is how many characters of a stored result a model is shown as head and tail.
	PreviewChars int
	// ReadChars is the character budget of one read_file, read_result or load_skill, over all its paths.
	ReadChars int
	// ReadLines is how many lines of one path a read shows.
	ReadLines int
	// ReadFiles is how many paths one read_file may name.
	ReadFiles int
	// SearchChars is the character budget for matches and context of one search_files.
	SearchChars int
	// SearchLineChars is how many characters of one line a search shows; a longer line is centred on its match.
	SearchLineChars int
	// SearchQueries is how many strings one search_files may look for.
	SearchQueries int
	// ContextLines is how many lines either side of a match a search may ask for.
	ContextLines int
	// ListEntries is how many files one list_files names; the rest is counted.
	ListEntries int
	// DiffLines is how many lines of a unified diff a write or edit shows.
	DiffLines int
	// WriteFiles and DeleteFiles are how many files one batch may name.
	WriteFiles, DeleteFiles int
	// ReplacementChars is the length past which a file is not replaced whole: characters, or bytes where it is not text.
	ReplacementChars int
	// ReplayChars is how many characters of a written content are replayed at later steps.
	ReplayChars int

	// WorkspaceBytes and WorkspaceFiles bound one workspace.
	WorkspaceBytes int64
	WorkspaceFiles int
	// HistoryBytes bounds the previous versions kept for one conversation, oldest first out.
	HistoryBytes int64
	// WaitingCalls is how many calls of one conversation may wait.
	WaitingCalls int
	// MessageBytes bounds one NATS message; ToldBytes a result that is told whole.
	MessageBytes, ToldBytes int
	// Attempts is how many workers may die on one call before it fails; Lease how long a claim holds unextended.
	Attempts int
	Lease    time.Duration

	// ImageEdge is the longer side in pixels, and ImageBytes the encoded size, of a picture given to a model.
	ImageEdge, ImageBytes int
	// RunImages is how many pictures of one run are given to a model.
	RunImages int

	// InputBytes bounds all inputs of one run together; SkillBytes one skill.
	InputBytes, SkillBytes int64
	// RunResults is how many stored results one run may name.
	RunResults int
	// RunTime is how long code runs unless the call says otherwise; RunTimeMax the most it may say.
	RunTime, RunTimeMax time.Duration
	// RunMemoryBytes, RunProcesses and RunDiskBytes bound one run; RunOutputBytes is kept of each of its output streams.
	RunMemoryBytes int64
	RunProcesses   int
	RunDiskBytes   int64
	RunOutputBytes int
}

// DefaultLimits gives the limits that hold where nothing else is set.
func DefaultLimits() Limits {
	return Limits{
		PreviewChars:     8_000,
		ReadChars:        40_000,
		ReadLines:        2_000,
		ReadFiles:        10,
		SearchChars:      20_000,
		SearchLineChars:  1_000,
		SearchQueries:    5,
		ContextLines:     3,
		ListEntries:      1_000,
		DiffLines:        200,
		WriteFiles:       3,
		DeleteFiles:      20,
		ReplacementChars: 4_000,
		ReplayChars:      200,

		WorkspaceBytes: 64 * mib,
		WorkspaceFiles: 2_000,
		HistoryBytes:   256 * mib,
		WaitingCalls:   64,
		MessageBytes:   1 * mib,
		ToldBytes:      900 * kib,
		Attempts:       3,
		Lease:          30 * time.Second,

		ImageEdge:  1_568,
		ImageBytes: 1 * mib,
		RunImages:  4,

		InputBytes:     128 * mib,
		SkillBytes:     16 * mib,
		RunResults:     3,
		RunTime:        120 * time.Second,
		RunTimeMax:     600 * time.Second,
		RunMemoryBytes: 1024 * mib,
		RunProcesses:   64,
		RunDiskBytes:   512 * mib,
		RunOutputBytes: 1 * mib,
	}
}
