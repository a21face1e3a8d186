// Package skill keeps skills: instructions for a model, and files that it may use beside them. A skill comes as a zip
// archive, from people who may have made it with any tool; nothing of an archive is kept that could reach out of the
// skill's folder or that two systems would read differently.
package skill

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"treeline/internal/call"
	"treeline/internal/workspace"
)

const (
	// MaxBytes is how many bytes the files of a skill may have together. It is more than a run mounts by default: what runs
	// mount is the deployment's to say and may change, and the text of a large skill can be loaded all the same.
	MaxBytes = 32 << 20
	// TextFile is the file with a skill's instructions.
	TextFile = "SKILL.md"
	// MaxEntries is how many files and folders an archive may have.
	MaxEntries = 2000
	// MaxText is how long the instructions may be, in bytes: a model gets them whole.
	MaxText = 1 << 20
	// maxRecords bounds what is looked at of an archive's directory, so that reading it takes little memory.
	maxRecords = 10 * MaxEntries
	// appleFolder is what macOS adds to archives about the files in them.
	appleFolder = "__MACOSX/"
	// inFolder stands for what is in a folder that the archive names; no entry can have that name.
	inFolder = "\x01"
)

// File is one file of a skill.
type File struct {
	Path    string
	Content []byte
}

// Bundle is the files of a skill, sorted by path; TextFile is among them.
type Bundle struct {
	Files []File
	Bytes int64
}

// allowed is how many bytes an archive may unpack to: what runs mount, and MaxBytes only where the archive is large
// itself. A small one that becomes so large is a bomb.
func allowed(archive []byte, mounted int64) int64 {
	const ratio = 4
	return max(mounted, min(MaxBytes, ratio*int64(len(archive))))
}

// Unpack reads an archive whose files have at most most bytes together. SKILL.md stands at its root, or in the one folder
// that holds everything, which is then left out of the paths. The refusal is skill_too_large, or invalid_arguments with
// what is wrong with the archive. No more than most bytes are ever inflated.
func Unpack(archive []byte, most int64) (Bundle, *call.Refusal) {
	if bytes.Count(archive, []byte("PK\x01\x02")) > maxRecords {
		return Bundle{}, refuseEntries()
	}
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return Bundle{}, refuse("it is no zip archive that can be read")
	}
	if len(r.File) > MaxEntries {
		return Bundle{}, refuseEntries()
	}
	entries, refusal := check(r.File, most)
	if refusal != nil {
		return Bundle{}, refusal
	}
	b := Bundle{}
	for _, f := range entries {
		content, refusal := inflate(f.File, most-b.Bytes, most)
		if refusal != nil {
			return Bundle{}, refusal
		}
		b.Bytes += int64(len(content))
		b.Files = append(b.Files, File{Path: f.path, Content: content})
	}
	slices.SortFunc(b.Files, func(x, y File) int { return strings.Compare(x.Path, y.Path) })
	text, _ := b.Find(TextFile)
	if !workspace.IsText(text.Content) {
		return Bundle{}, refuse("its %s is not text in UTF-8", TextFile)
	}
	if len(text.Content) > MaxText {
		return Bundle{}, call.Refuse(call.SkillTooLarge, "The skill's %s has %d bytes, and at most %d are allowed. Nothing was stored.",
			TextFile, len(text.Content), MaxText)
	}
	return b, nil
}

// Find gives the file at a path.
func (b Bundle) Find(path string) (File, bool) {
	i, ok := slices.BinarySearchFunc(b.Files, path, func(f File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return File{}, false
	}
	return b.Files[i], true
}

// entry is a file of the archive and the path that it gets.
type entry struct {
	*zip.File
	path string
}

// check judges every entry by what the archive says of it, before anything is inflated.
func check(files []*zip.File, most int64) ([]entry, *call.Refusal) {
	var entries []entry
	var paths []string
	folders := map[string]bool{}
	var declared uint64
	for _, f := range files {
		if strings.HasPrefix(f.Name, appleFolder) {
			continue
		}
		p, refusal := checkEntry(f)
		if refusal != nil {
			return nil, refusal
		}
		if strings.HasSuffix(p, "/") {
			folders[p+inFolder] = true
			continue
		}
		if f.UncompressedSize64 > uint64(most) || declared+f.UncompressedSize64 > uint64(most) {
			return nil, refuseSize(most)
		}
		declared += f.UncompressedSize64
		entries, paths = append(entries, entry{f, p}), append(paths, p)
	}
	for p := range folders {
		paths = append(paths, p)
	}
	cut, ok := topFolder(paths)
	if !ok {
		return nil, refuse("it holds no %s, neither at its root nor in a folder that holds everything else", TextFile)
	}
	for i := range paths {
		paths[i] = paths[i][cut:]
	}
	for i := range entries {
		entries[i].path = paths[i]
	}
	// A workspace's own rules tell names that clash, and names that some systems take for one.
	if r := workspace.NewTree(nil).CheckNames(paths); r != nil {
		return nil, refuse("two of its names clash. %s", r.Text)
	}
	return entries, nil
}

// topFolder gives how much to cut from the front of every path so that SKILL.md is at the root.
func topFolder(paths []string) (cut int, ok bool) {
	if slices.Contains(paths, TextFile) {
		return 0, true
	}
	if len(paths) == 0 {
		return 0, false
	}
	top, _, _ := strings.Cut(paths[0], "/")
	top += "/"
	for _, p := range paths {
		if !strings.HasPrefix(p, top) {
			return 0, false
		}
	}
	return len(top), slices.Contains(paths, top+TextFile)
}

// checkEntry gives the path of an entry, composed; a folder's ends in "/".
func checkEntry(f *zip.File) (string, *call.Refusal) {
	p := norm.NFC.String(f.Name)
	if fault := nameFault(p); fault != "" {
		return "", refuse("the name of its entry %s cannot be used: %s", shown(f.Name), fault)
	}
	const encrypted, strongEncryption = 1 << 0, 1 << 6
	folder := strings.HasSuffix(p, "/")
	switch {
	case f.Flags&(encrypted|strongEncryption) != 0:
		return "", refuse("its entry %s is encrypted", shown(p))
	case !plainMode(f) || f.Mode().IsDir() && !folder:
		return "", refuse("its entry %s is neither a file nor a folder but a link, a device or the like", shown(p))
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return "", refuse("its entry %s is packed by the method %d; only store and deflate are taken", shown(p), f.Method)
	case folder && f.UncompressedSize64 != 0:
		return "", refuse("its folder %s has content", shown(p))
	}
	return p, nil
}

// plainMode reports whether an entry is a file or a folder by its mode, whatever system says that it made the archive.
func plainMode(f *zip.File) bool {
	const typeBits, folder, file = 0o170000, 0o040000, 0o100000
	unix := f.ExternalAttrs >> 16 & typeBits
	return f.Mode()&fs.ModeType&^fs.ModeDir == 0 && (unix == 0 || unix == folder || unix == file)
}

// nameFault says why a name cannot be a path within a skill, or "".
func nameFault(p string) string {
	p = strings.TrimSuffix(p, "/")
	switch {
	case p == "":
		return "it is empty"
	case !utf8.ValidString(p):
		return "it is not UTF-8"
	case len(p) > workspace.PathBytes:
		return fmt.Sprintf("it is longer than %d bytes", workspace.PathBytes)
	case strings.ContainsFunc(p, unicode.IsControl):
		return "it has a control character"
	case strings.Contains(p, `\`):
		return "it has a backslash"
	case p[0] == '/':
		return "it is absolute"
	case len(p) > 1 && p[1] == ':':
		return "it begins with a drive"
	}
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return fmt.Sprintf("it has the part %q", part)
		case len(part) > workspace.PartBytes:
			return fmt.Sprintf("one of its parts is longer than %d bytes", workspace.PartBytes)
		}
	}
	return ""
}

// inflate gives the content of an entry, which has at most left of the most bytes that the skill may have.
func inflate(f *zip.File, left, most int64) ([]byte, *call.Refusal) {
	r, err := f.Open()
	if err != nil {
		return nil, refuse("its entry %s cannot be read", shown(f.Name))
	}
	defer func() { _ = r.Close() }() // it reads from memory
	content, err := io.ReadAll(io.LimitReader(r, left+1))
	switch {
	case int64(len(content)) > left:
		return nil, refuseSize(most)
	case err != nil || crc32.ChecksumIEEE(content) != f.CRC32:
		return nil, refuse("its entry %s is damaged", shown(f.Name))
	}
	return content, nil
}

func shown(name string) string {
	if len(name) > 200 {
		name = name[:200] + "..."
	}
	return fmt.Sprintf("%q", path.Clean(name))
}

func refuse(format string, args ...any) *call.Refusal {
	return call.Refuse(call.InvalidArguments, "The body must be a zip archive that holds %s, but %s. Nothing was stored.", TextFile, fmt.Sprintf(format, args...))
}

func refuseEntries() *call.Refusal {
	return call.Refuse(call.SkillTooLarge, "The archive has more than %d entries. Nothing was stored.", MaxEntries)
}

func refuseSize(most int64) *call.Refusal {
	return call.Refuse(call.SkillTooLarge, "The files of the skill have more than %d bytes together. Nothing was stored.", most)
}
