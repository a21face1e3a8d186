package workspace

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// cutWords begin every notice by which a preview, a cut read, a cut search or a cut list says that it is not the whole.
// A notice stands on its own line or at the end of one, in brackets, without a bracket or newline inside.
const cutWords = "[cut here: "

// cutNotice makes a notice; what it says holds no brackets and no newline.
func cutNotice(format string, args ...any) string {
	return cutWords + fmt.Sprintf(format, args...) + "]"
}

// EndsInCutNotice reports whether content ends, blanks aside, in the words by which previews and cuts announce
// themselves: it was copied from one and is not whole.
func EndsInCutNotice(content string) bool {
	content = strings.TrimRight(content, " \t\r\n")
	inside, ok := strings.CutSuffix(content, "]")
	if !ok {
		return false
	}
	i := strings.LastIndex(inside, cutWords)
	return i >= 0 && !strings.ContainsAny(inside[i+len(cutWords):], "[]\n")
}

// Preview gives what a model is shown of a text that is stored whole under ref: all of it if it has at most
// Limits.PreviewChars characters; else its head and tail, the gap between them stated and the ref named, both in the gap
// and at the end.
func (l Limits) Preview(text, ref string) (shown string, cut bool) {
	shown, left := headTail(text, l.PreviewChars, fmt.Sprintf(`; the whole is stored: read_result with resultRef "%s" reads it`, ref))
	if left == 0 {
		return text, false
	}
	return shown + "\n" + cutNotice(`this is the head and tail of a longer result, %d characters between them are left out; the whole is stored: `+
		`read_result with resultRef "%s" reads it`, left, ref), true
}

// HeadTail gives a text of more than most characters as its head and tail with the gap stated, most characters and the
// notice long; a shorter one as it is. Cuts fall between characters.
func HeadTail(text string, most int) string {
	shown, _ := headTail(text, most, "")
	return shown
}

// headTail also gives how many characters were left out.
func headTail(text string, most int, how string) (shown string, left int) {
	if len(text) <= most {
		return text, 0
	}
	chars := utf8.RuneCountInString(text)
	if chars <= most {
		return text, 0
	}
	head := prefixChars(text, most/2)
	tail := suffixChars(text, most-most/2)
	left = chars - most
	return head + "\n" + cutNotice("%d characters are left out%s", left, how) + "\n" + tail, left
}

// suffixChars gives the last n characters of s, or all of it.
func suffixChars(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}
