// Package sandbox says what it means to run a model's Python sealed off from everything: a Driver starts a Session, the
// session is filled, runs one program, and gives back the tree that the program left. It holds no way of sealing itself;
// local, and later others, do.
//
// The program's working folder holds workspace/ (the tree: read, written, kept), inputs/ and skills/ (read-only). Nothing
// else is kept and nothing carries over: one session is one call.
package sandbox

import (
	"context"
	"io"
	"time"
)

// Folders of the working folder, as the program sees them.
const (
	// WorkFolder is where the program starts.
	WorkFolder = "/work"
	// Workspace is the folder, below WorkFolder, of the tree that is kept.
	Workspace = "workspace"
	// Inputs is the read-only folder, below WorkFolder, of what the call named.
	Inputs = "inputs"
	// Skills is the read-only folder, below WorkFolder, of the skills that the call named.
	Skills = "skills"
	// ProgramFile is the path by which tracebacks name the program.
	ProgramFile = "/code/main.py"
)

// Driver makes sessions. It is safe for concurrent use. A driver never runs code unsealed: what the machine cannot do is
// an *Unavailable.
type Driver interface {
	// Name is the word by which the driver is chosen, such as "local".
	Name() string
	// Probe says what the driver enforces here and what it found. The error is *Unavailable where this machine or
	// account cannot run it; its Reason and Remedy are for the person who set it up.
	Probe(ctx context.Context) (Report, error)
	// Start makes an empty session. It must be closed. The context bounds the start alone.
	Start(ctx context.Context, spec Spec) (Session, error)
}

// Session is one sealed run: Put, then Run once, then Take and Open, then Close. Stop may be called from anywhere;
// the other methods are for one goroutine.
type Session interface {
	// Put streams a file to the path below the working folder, which begins with workspace/, inputs/ or skills/, its parts
	// separated by "/". Folders are made as needed. Errors: *PathError for a path that cannot be there, ErrFull past the
	// session's disk or input limit, the reader's own error.
	Put(ctx context.Context, path string, content io.Reader) error
	// Run runs the program and returns when it and all that it started are dead. The context's end and Stop kill at
	// once (Cancelled). It is an error, and nothing ran, only where the program could not be started.
	Run(ctx context.Context, program Program) (Outcome, error)
	// Stop kills the run, if one goes on, whose outcome is then Cancelled.
	Stop()
	// Take gives the whole tree below workspace/ after Run. Errors: *TreeUnreadable (nothing may be concluded from what is
	// missing), *TreeTooLarge (read far enough to count it). Never a part of a tree.
	Take(ctx context.Context) (Tree, error)
	// Open reads one file of the taken tree, by its File.Path. The reader fails with *TreeUnreadable at its end if the
	// bytes are not the ones that Take hashed.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// Close kills what still runs and frees everything. It may be called more than once and at any point.
	Close() error
}

// Spec says what a session may use.
type Spec struct {
	// Label names the run in logs and never reaches the program.
	Label  string
	Limits Limits
}

// Limits bound one session. Zero fields take the value of DefaultLimits.
type Limits struct {
	Wall      time.Duration // from the program's start until all is killed
	Memory    int64         // bytes of the whole group of processes, files written to memory included
	Processes int           // processes and threads at a time, the program's first included; a driver may keep a few for itself
	Disk      int64         // bytes written to workspace/, the working folder, the home and /tmp together
	Inodes    int64         // files, folders and links in the same places
	FileSize  int64         // bytes of one file
	OpenFiles int           // descriptors of one process
	Inputs    int64         // bytes put to inputs/ and skills/ together
	Output    int           // bytes kept of each of stdout and stderr, half of it head and half tail
	TreeBytes int64         // bytes of a tree that Take still gives
	TreeFiles int           // files of a tree that Take still gives
	PathBytes int           // bytes of a path below workspace/; what has a longer one is ignored
}

// DefaultLimits are the limits of the specification, and generous ones where it names none.
func DefaultLimits() Limits {
	const mib = 1 << 20
	return Limits{
		Wall:      120 * time.Second,
		Memory:    1024 * mib,
		Processes: 64,
		Disk:      512 * mib,
		Inodes:    32768,
		FileSize:  512 * mib,
		OpenFiles: 1024,
		Inputs:    512 * mib, // the caller bounds what it puts; this only stops it from going wild
		Output:    mib,
		TreeBytes: 64 * mib,
		TreeFiles: 2000,
		PathBytes: 1536,
	}
}

// WithDefaults gives the limits with every zero field filled in.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	fill(&l.Wall, d.Wall)
	fill(&l.Memory, d.Memory)
	fill(&l.Processes, d.Processes)
	fill(&l.Disk, d.Disk)
	fill(&l.Inodes, d.Inodes)
	fill(&l.FileSize, d.FileSize)
	fill(&l.OpenFiles, d.OpenFiles)
	fill(&l.Inputs, d.Inputs)
	fill(&l.Output, d.Output)
	fill(&l.TreeBytes, d.TreeBytes)
	fill(&l.TreeFiles, d.TreeFiles)
	fill(&l.PathBytes, d.PathBytes)
	return l
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Program is what a session runs.
type Program struct {
	// Code is Python source in UTF-8. Tracebacks name it ProgramFile.
	Code []byte
	// Output, if set, gets each piece of output as it comes, valid UTF-8, from one goroutine a stream. A slow receiver
	// slows the program down; a receiver that blocks for ever holds up Run.
	Output func(stream Stream, text string)
}

// Stream is one of the program's two outputs.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Reason says what ended a run.
type Reason string

// The ways in which a run ends.
const (
	// OK is a program that left with exit code 0.
	OK Reason = "ok"
	// Raised is one that left with another code or died of a signal of its own making.
	Raised Reason = "raised"
	// Timeout is one that was killed at Limits.Wall.
	Timeout Reason = "timeout"
	// OutOfMemory is one that was killed because its group passed Limits.Memory.
	OutOfMemory Reason = "out_of_memory"
	// Cancelled is one that Stop or the context's end killed.
	Cancelled Reason = "cancelled"
	// Lost is one whose sandbox died under it; its tree is not to be taken.
	Lost Reason = "lost"
)

// Outcome is how a run ended.
type Outcome struct {
	Reason Reason
	// ExitCode is the program's own, or 128 + Signal.
	ExitCode int
	// Signal that ended the program, 0 if none.
	Signal   int
	Duration time.Duration
	Stdout   Output
	Stderr   Output
	// PeakMemory is the most that the group was seen to use, in bytes; 0 where the driver cannot tell.
	PeakMemory int64
}

// Report is what a driver found on its machine.
type Report struct {
	Driver string
	// Enforced lists what holds, and Missing what does not, with the reason and what to change.
	Enforced []string
	Missing  []Gap
	Python   Python
}

// Gap is a protection that the machine lacks and that the driver can do without.
type Gap struct {
	What   string
	Reason string
	Remedy string
}

// Python is the interpreter that programs run under.
type Python struct {
	Path    string // real path of the interpreter
	Version string // such as 3.11.2
	// Libraries that programs can import beyond the standard library, by distribution name, lower case, with version.
	Libraries map[string]string
}
