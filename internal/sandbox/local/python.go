package local

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// describe is the program by which an interpreter tells about itself.
//
//go:embed describe.py
var describe string

// description is what describe.py prints.
type description struct {
	Executable string            `json:"executable"`
	Version    string            `json:"version"`
	Major      int               `json:"major"`
	Minor      int               `json:"minor"`
	Prefixes   []string          `json:"prefixes"`
	Path       []string          `json:"path"`
	Objects    []string          `json:"objects"`
	Libraries  map[string]string `json:"libraries"`
}

// findRuntime asks the candidates, in order, and describes the first Python 3 that this user can run. Why each of the
// others was passed over is in the error if none is left.
func findRuntime(candidates []string) (*runtimeFiles, error) {
	var reasons []string
	for _, c := range candidates {
		d, err := ask(c)
		if err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %v", c, err))
			continue
		}
		return d.files()
	}
	return nil, fmt.Errorf("no Python 3.8 or later that uid %d can run: %s", os.Getuid(), strings.Join(reasons, "; "))
}

func ask(candidate string) (description, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, candidate, "-I", "-c", describe)
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "PYTHONUTF8=1"}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		last := bytes.TrimSpace(stderr.Bytes())
		return description{}, fmt.Errorf("%w %s", err, last[max(0, len(last)-200):])
	}
	var d description
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil {
		return description{}, fmt.Errorf("read its description: %w", err)
	}
	if d.Major != 3 || d.Minor < 8 {
		return description{}, fmt.Errorf("it is version %s", d.Version)
	}
	return d, nil
}

// shared are the host's folders of public, installed files that interpreters and their libraries load from.
var shared = []string{
	"/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/lib", "/lib64", "/usr/share/zoneinfo", "/usr/share/fonts",
	"/usr/share/fontconfig", "/usr/share/matplotlib", "/usr/share/mime", "/usr/share/tcltk", "/usr/share/python3",
	"/usr/share/python-wheels", "/etc/ld.so.cache", "/etc/matplotlibrc",
}

// tools are the programs beside the interpreter that the standard library runs.
var tools = []string{"/bin/sh", "/usr/bin/env"}

// files works out what of the host the interpreter needs.
func (d description) files() (*runtimeFiles, error) {
	r := &runtimeFiles{Version: d.Version, Libraries: d.Libraries, Links: map[string]string{}}
	set := &bindSet{links: r.Links}
	r.Python = d.Executable
	for _, prefix := range d.Prefixes {
		if prefix != "/usr" && prefix != "/" && prefix != "/usr/local" {
			set.add(prefix)
		}
	}
	for _, path := range slices.Concat(shared, d.Path, tools, []string{d.Executable}, d.Objects) {
		set.add(path)
	}
	set.alternatives()
	for _, name := range []string{"python3", "python"} {
		if path := "/usr/bin/" + name; !set.has(path) {
			r.Links[path] = d.Executable
		}
	}
	r.Binds = set.paths()
	return r, nil
}

// bindSet gathers real paths to mount and the links that lead to them.
type bindSet struct {
	real  map[string]bool
	links map[string]string
}

// add takes a path if it is there, resolving every link on its way and keeping each as a link.
func (s *bindSet) add(path string) {
	for range 40 { // as many links as the kernel follows
		if !filepath.IsAbs(path) || path == "/" {
			return
		}
		link, rest, target, err := firstLink(path)
		if err != nil {
			return
		}
		if link == "" {
			if s.real == nil {
				s.real = map[string]bool{}
			}
			s.real[filepath.Clean(path)] = true
			return
		}
		s.links[link] = target
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		path = filepath.Join(target, rest)
	}
}

// firstLink finds the first symbolic link on the way to path, what comes after it, and where it points.
func firstLink(path string) (link, rest, target string, err error) {
	parts := strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	for i := range parts {
		at := "/" + filepath.Join(parts[:i+1]...)
		info, err := os.Lstat(at)
		if err != nil {
			return "", "", "", err
		}
		if info.Mode()&os.ModeSymlink != 0 {
			target, err := os.Readlink(at)
			return at, filepath.Join(parts[i+1:]...), target, err
		}
	}
	return "", "", "", nil
}

// alternatives keeps those links of /etc/alternatives that lead to shared objects: on Debian numpy's linear algebra is
// reached through them.
func (s *bindSet) alternatives() {
	const folder = "/etc/alternatives"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(folder, e.Name()))
		if err == nil && strings.Contains(e.Name(), ".so") && below(target, "/usr") {
			s.links[filepath.Join(folder, e.Name())] = target
		}
	}
}

func (s *bindSet) has(path string) bool {
	if s.links[path] != "" {
		return true
	}
	for p := range s.real {
		if below(path, p) {
			return true
		}
	}
	return false
}

// paths gives the real paths, sorted, without what lies in another, and drops links that lie within a mount.
func (s *bindSet) paths() []string {
	all := make([]string, 0, len(s.real))
	for p := range s.real {
		all = append(all, p)
	}
	slices.Sort(all)
	var out []string
	for _, p := range all {
		if !slices.ContainsFunc(out, func(o string) bool { return below(p, o) }) {
			out = append(out, p)
		}
	}
	for link := range s.links {
		for _, p := range out {
			if below(link, p) {
				delete(s.links, link)
				break
			}
		}
	}
	return out
}

// below reports whether path is folder or lies in it.
func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
