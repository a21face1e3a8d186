package local

// request goes from the worker to the launcher, which answers each with a reply.
type request struct {
	// Find asks for the interpreter, trying Candidates in order.
	Find *findRequest `json:"find,omitempty"`
	// Start asks for an init process.
	Start bool `json:"start,omitempty"`
}

type findRequest struct {
	Candidates []string `json:"candidates"`
}

type reply struct {
	Runtime *runtimeFiles `json:"runtime,omitempty"`
	PID     int           `json:"pid,omitempty"` // with the process's pidfd and the end of its channel
	Err     *stepError    `json:"err,omitempty"`
}

// setup is the first message to init, which answers with a ready. The program's stdout and stderr come with it.
type setup struct {
	Runtime    *runtimeFiles `json:"runtime"`
	Filter     []byte        `json:"filter"` // raw BPF
	Disk       int64         `json:"disk"`
	Inodes     int64         `json:"inodes"`
	Inputs     int64         `json:"inputs"`
	FileSize   int64         `json:"fileSize"`
	OpenFiles  int           `json:"openFiles"`
	Processes  int           `json:"processes"`
	Memory     int64         `json:"memory"`
	WallMillis int64         `json:"wallMillis"`
}

// ready tells that the root is made; two directories come with it: the writable tree and the read-only one.
type ready struct {
	Landlock int        `json:"landlock"` // ABI in use, 0 if none
	Err      *stepError `json:"err,omitempty"`
}

// start tells init to run the program, which by then lies in the read-only tree.
type start struct {
	Run bool `json:"run"`
}

// ended is init's last message.
type ended struct {
	Reason         string     `json:"reason"`
	ExitCode       int        `json:"exitCode"`
	Signal         int        `json:"signal"`
	DurationMicros int64      `json:"durationMicros"`
	Peak           int64      `json:"peak"`
	Err            *stepError `json:"err,omitempty"`
}

// runtimeFiles is what of the host the program may see, and the interpreter.
type runtimeFiles struct {
	Python    string            `json:"python"` // as the program calls it
	Version   string            `json:"version"`
	Libraries map[string]string `json:"libraries"`
	Binds     []string          `json:"binds"` // files and folders, no symbolic link on their way
	Links     map[string]string `json:"links"` // symbolic links to make: path to target
}
