package codeworker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"treeline/internal/sandbox"
)

const (
	// namedLibraries is how many installed libraries the description of run_code names.
	namedLibraries = 40
)

// wellKnown are the libraries that a model asks for first.
var wellKnown = []string{
	"numpy", "pandas", "scipy", "matplotlib", "pillow", "openpyxl", "xlsxwriter", "python-docx", "python-pptx", "pypdf", "reportlab",
	"lxml", "beautifulsoup4", "pyyaml", "scikit-learn", "statsmodels", "seaborn", "sympy", "polars", "pyarrow", "duckdb", "networkx",
}

// plumbing are libraries that no program asks for.
var plumbing = []string{"pip", "setuptools", "wheel", "distribute", "pkg-resources"}

// Installed says, for the description of run_code, which Python and which libraries a sandbox has.
func Installed(r sandbox.Report) string {
	all := maps.Clone(r.Python.Libraries)
	for _, name := range plumbing {
		delete(all, name)
	}
	text := "Python " + r.Python.Version
	if len(all) == 0 {
		return text + " with its standard library alone"
	}
	var words []string
	take := func(name string) {
		if version, ok := all[name]; ok && len(words) < namedLibraries {
			words = append(words, strings.TrimSpace(name+" "+version))
			delete(all, name)
		}
	}
	for _, name := range wellKnown {
		take(name)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		take(name)
	}
	text += " with its standard library; " + strings.Join(words, ", ")
	if len(all) > 0 {
		text += fmt.Sprintf(" and %d more", len(all))
	}
	return text
}
