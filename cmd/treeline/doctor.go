package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"treeline/internal/devenv"
	"treeline/internal/role"
	"treeline/internal/sandbox"
)

// leastDisk is below what a fleet soon has no room for its database and its streams.
const leastDisk = 1 << 30

type doctorCommand struct {
	Listen        string `help:"Address that HTTP is to have." default:"127.0.0.1:8080" env:"TREELINE_LISTEN" placeholder:"HOST:PORT"`
	Data          string `help:"Folder that is to hold everything (default: that of up)." env:"TREELINE_DATA" placeholder:"DIR"`
	Sandbox       string `help:"What code is to be sealed by." default:"local" enum:"local" env:"TREELINE_SANDBOX" placeholder:"NAME"`
	SandboxUser   int    `help:"User and group id that a root worker's sandboxes are to run as." default:"65534" env:"TREELINE_SANDBOX_USER" placeholder:"UID"`
	SandboxCgroup string `help:"Cgroup folders that the sandbox may make groups in." env:"TREELINE_SANDBOX_CGROUP" placeholder:"DIR"`
	Python        string `help:"The interpreter that code is to run under." env:"TREELINE_PYTHON" placeholder:"FILE"`
}

// finding is one line of the report.
type finding struct {
	state  state
	what   string
	detail string
	// remedy says what to do; only of what is lacking.
	remedy string
}

type state string

const (
	has   state = "ok"
	lacks state = "lack" // up does without
	needs state = "NEED" // up does not work without
)

var errUnfit = errors.New("up cannot work here until what is marked NEED is there")

// Run prints what the machine has and lacks. It changes nothing. The error says that up could not work.
func (d *doctorCommand) Run(ctx context.Context, out io.Writer) error {
	findings := slices.Concat(d.postgres(ctx), d.folder(), d.address(), d.code(ctx))
	width := 0
	for _, f := range findings {
		width = max(width, len(f.what))
	}
	unfit := false
	for _, f := range findings {
		unfit = unfit || f.state == needs
		fmt.Fprintf(out, "%-4s  %-*s  %s\n", f.state, width, f.what, f.detail)
		if f.remedy != "" {
			fmt.Fprintf(out, "%-4s  %-*s  -> %s\n", "", width, "", f.remedy)
		}
	}
	if unfit {
		return errUnfit
	}
	return nil
}

func (d *doctorCommand) postgres(ctx context.Context) []finding {
	binaries, err := devenv.FindPostgres(ctx)
	if err != nil {
		return []finding{{needs, "PostgreSQL", err.Error(), "install it as said, or name a server that runs with up --database-url; " +
			"where the network allows it up fetches the programs by itself"}}
	}
	return []finding{{state: has, what: "PostgreSQL", detail: fmt.Sprintf("version %d in %s", binaries.Major, binaries.Folder)}}
}

// folder looks at the data folder without making it.
func (d *doctorCommand) folder() []finding {
	path := d.Data
	if path == "" {
		var err error
		if path, err = devenv.DefaultFolder(); err != nil {
			return []finding{{needs, "data folder", err.Error(), "name one with --data"}}
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return []finding{{needs, "data folder", err.Error(), "name one with --data"}}
	}
	there, err := nearest(path)
	if err != nil {
		return []finding{{needs, "data folder", err.Error(), "name another with --data"}}
	}
	return []finding{usable(path, there), room(there)}
}

// nearest is the folder itself, or the first above it that there is.
func nearest(path string) (string, error) {
	for {
		info, err := os.Stat(path)
		switch {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is not a folder", path)
		case err == nil:
			return path, nil
		case !errors.Is(err, os.ErrNotExist):
			return "", err
		}
		path = filepath.Dir(path)
	}
}

func usable(path, there string) finding {
	if err := unix.Access(there, unix.W_OK|unix.X_OK); err != nil {
		return finding{needs, "data folder", fmt.Sprintf("%s may not be written to", there), "name another with --data"}
	}
	if there != path {
		return finding{state: has, what: "data folder", detail: path + " will be made"}
	}
	if _, err := os.Stat(filepath.Join(path, "lock")); err == nil { // one of ours: opening it changes nothing
		folder, err := devenv.OpenFolder(path)
		if err == nil {
			err = folder.Close()
		}
		if err != nil {
			return finding{needs, "data folder", err.Error(), "stop what uses it, or name another with --data"}
		}
	}
	return finding{state: has, what: "data folder", detail: path}
}

func room(there string) finding {
	var stat unix.Statfs_t
	if err := unix.Statfs(there, &stat); err != nil {
		return finding{lacks, "disk", fmt.Sprintf("how much is free below %s cannot be told: %v", there, err), ""}
	}
	free := int64(stat.Bavail) * stat.Bsize
	detail := fmt.Sprintf("%.1f GiB free below %s for the database and JetStream", float64(free)/(1<<30), there)
	if free < leastDisk {
		return finding{needs, "disk", detail, "make 1 GiB free, or name a folder on another disk with --data"}
	}
	return finding{state: has, what: "disk", detail: detail}
}

func (d *doctorCommand) address() []finding {
	listener, err := net.Listen("tcp", d.Listen)
	if err != nil {
		return []finding{{needs, "address", err.Error(), "choose another with --listen; port 0 has the system choose"}}
	}
	detail := d.Listen + " is free"
	if err := listener.Close(); err != nil {
		detail += ": " + err.Error()
	}
	return []finding{{state: has, what: "address", detail: detail}}
}

// code says whether and how code is sealed here, by running a first program.
func (d *doctorCommand) code(ctx context.Context) []finding {
	findings := []finding{userNamespaces(), cgroups()}
	name := "sandbox " + d.Sandbox
	report, err := probe(ctx, role.SandboxConfig{Driver: d.Sandbox, Python: d.Python, User: d.SandboxUser, Cgroup: d.SandboxCgroup})
	if err != nil {
		f := finding{lacks, name, err.Error(), "until then up runs without code workers"}
		var unavailable *sandbox.Unavailable
		if errors.As(err, &unavailable) && unavailable.Remedy != "" {
			f.detail, f.remedy = unavailable.Reason, unavailable.Remedy+"; "+f.remedy
		}
		return append(findings, f)
	}
	findings = append(findings, finding{state: has, what: name, detail: "runs code sealed by:"})
	for _, protection := range report.Enforced {
		findings = append(findings, finding{state: has, what: "  sealed", detail: protection})
	}
	for _, gap := range report.Missing {
		findings = append(findings, finding{lacks, "  sealed", gap.What + ": " + gap.Reason, gap.Remedy})
	}
	return append(findings, finding{state: has, what: "Python", detail: report.Python.Version + ", " + report.Python.Path}, libraries(report.Python))
}

func probe(ctx context.Context, cfg role.SandboxConfig) (report sandbox.Report, err error) {
	driver, err := role.OpenSandbox(cfg)
	if err != nil {
		return sandbox.Report{}, err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	return driver.Probe(ctx)
}

// expected are the libraries that models ask for first, by distribution name.
var expected = []string{"numpy", "pandas", "openpyxl", "matplotlib"}

func libraries(python sandbox.Python) finding {
	missing := slices.DeleteFunc(slices.Clone(expected), func(name string) bool { _, ok := python.Libraries[name]; return ok })
	if len(missing) > 0 {
		return finding{lacks, "libraries", "without " + strings.Join(missing, ", "),
			"install them for this Python: on Debian or Ubuntu python3-" + strings.Join(missing, " python3-")}
	}
	var words []string
	for _, name := range expected {
		words = append(words, name+" "+python.Libraries[name])
	}
	return finding{state: has, what: "libraries", detail: fmt.Sprintf("%s and %d more", strings.Join(words, ", "), len(python.Libraries)-len(expected))}
}

func userNamespaces() finding {
	for _, setting := range []struct{ file, off string }{
		{"user/max_user_namespaces", "0"}, {"kernel/unprivileged_userns_clone", "0"}, {"kernel/apparmor_restrict_unprivileged_userns", "1"},
	} {
		text, err := os.ReadFile("/proc/sys/" + setting.file)
		if err == nil && strings.TrimSpace(string(text)) == setting.off {
			name := strings.ReplaceAll(setting.file, "/", ".")
			return finding{lacks, "user namespaces", name + " is " + setting.off, "see what the sandbox says below"}
		}
	}
	return finding{state: has, what: "user namespaces", detail: "no setting of the kernel forbids them"}
}

func cgroups() finding {
	const root = "/sys/fs/cgroup"
	version := ""
	if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
		version = "2"
	} else if _, err := os.Stat(root + "/memory"); err == nil {
		version = "1"
	}
	if version == "" {
		return finding{lacks, "cgroups", "none at " + root, "nothing to do: the memory of a run is added up instead"}
	}
	return finding{state: has, what: "cgroups", detail: "version " + version + " at " + root}
}
