package torture

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"treeline/internal/call"
)

// runFile is the file that runs write.
const runFile = "run.txt"

// begun is what a run prints whose time may be up before it begins.
const begun = "begun"

// untouched reports whether a run that may not have begun has not: it printed nothing and changed nothing.
func untouched(res call.Result) bool {
	var data struct{ Stdout string }
	if err := json.Unmarshal(res.Data, &data); err != nil {
		return false
	}
	return res.Changes.Empty() && !strings.Contains(data.Stdout, begun)
}

// appends is the program that adds one line to the runs' file.
func appends(id string) string {
	return fmt.Sprintf("open('workspace/%s', 'a').write('run %s\\n')\n", runFile, id)
}

// run makes a run of code whose effect is known beforehand.
func (d deeds) run(id string) deed {
	appended := func(m *model, status call.Status, code call.Code) verdict {
		return m.appendRun("run "+id+"\n", status, code)
	}
	switch n := d.random.IntN(12); {
	case n < 5:
		return run(appends(id), 20, func(m *model) verdict { return appended(m, call.OK, "") })
	case n < 6:
		return run(appends(id)+"raise ValueError('on purpose')\n", 20, func(m *model) verdict { return appended(m, call.Failed, call.Raised) })
	case n < 7: // ignores its stop, as its child does
		stubborn := run(appends(id)+"print('"+begun+"', flush=True)\nimport signal, subprocess, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"+
			"subprocess.Popen(['/bin/sleep', '600']) if __import__('os').path.exists('/bin/sleep') else None\ntime.sleep(600)\n", 2,
			func(m *model) verdict { return appended(m, call.Failed, call.Timeout) })
		stubborn.mayNotBegin = true
		return stubborn
	case n < 10: // longer than a lease, so that it lives by its heartbeats
		long := run(appends(id)+fmt.Sprintf("import time\ntime.sleep(%d)\n", 1+d.random.IntN(5)), 30,
			func(m *model) verdict { return appended(m, call.OK, "") })
		long.long = true
		return long
	case n < 11: // removes every file: a tree that is truly empty
		return run("import os\nfor folder, _, names in os.walk('workspace'):\n    for name in names:\n        os.remove(os.path.join(folder, name))\n", 20,
			func(m *model) verdict {
				v := m.set(map[string][]byte{})
				v.status, v.codes = call.OK, []call.Code{""}
				return v
			})
	}
	return run("print(sorted(__import__('os').listdir('workspace')))\n", 20, func(*model) verdict {
		return verdict{status: call.OK, codes: []call.Code{""}}
	})
}

// appendRun adds a line to the runs' file, as a run does that ends so.
func (m *model) appendRun(line string, status call.Status, code call.Code) verdict {
	next := maps.Clone(m.files)
	next[runFile] = append(append([]byte{}, m.files[runFile]...), line...)
	if (len(next) > len(m.files) && len(next) > m.limits.WorkspaceFiles) || size(next) > m.limits.WorkspaceBytes {
		return verdict{status: call.Failed, codes: []call.Code{call.WorkspaceFull}}
	}
	v := m.set(next)
	v.status, v.codes = status, []call.Code{code}
	return v
}

func run(code string, seconds int, apply func(m *model) verdict) deed {
	return deed{tool: "run_code", args: map[string]any{"code": code, "timeoutSeconds": seconds},
		apply: func(m *model, _ occasion) verdict { return apply(m) }}
}
