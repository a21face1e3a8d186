package workspace

import (
	"fmt"
	"strings"
)

// trailing tells which lines of two texts end in other blanks, the same difference once. What is there begins on line.
func trailing(what, given, there string, line int) []string {
	type difference struct{ has, want string }
	var order []difference
	lines := map[difference][]int{}
	more := map[difference]int{}
	givenLines := strings.Split(given, "\n")
	for i, has := range strings.Split(there, "\n") {
		if i == len(givenLines) {
			break
		}
		d := difference{blanksAtEnd(has), blanksAtEnd(givenLines[i])}
		switch {
		case d.has == d.want:
			continue
		case len(lines[d]) == tellLines:
			more[d]++
			continue
		case len(lines[d]) == 0 && len(order) == tellPairs:
			continue
		case len(lines[d]) == 0:
			order = append(order, d)
		}
		lines[d] = append(lines[d], line+i)
	}
	var told []string
	for _, d := range order {
		n := len(lines[d]) + more[d]
		end := "end"
		if n == 1 {
			end = "ends"
		}
		told = append(told, fmt.Sprintf("%s %s of the file %s in %s where %s has %s", word(n, "line"), andList(lines[d], more[d]), end,
			describeBlanks(d.has), what, describeBlanks(d.want)))
	}
	return told
}

func blanksAtEnd(line string) string { return line[len(strings.TrimRight(line, " \t")):] }

// trimLines takes the blanks off the end of every line.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t")
	}
	return strings.Join(lines, "\n")
}

func describeBlanks(s string) string {
	if s == "" {
		return "none"
	}
	return describe(s)
}

// andList lists numbers as in a sentence and says how many more there are.
func andList(numbers []int, more int) string {
	last := len(numbers) - 1
	if more > 0 || last == 0 {
		return numberList(numbers, more)
	}
	return numberList(numbers[:last], 0) + " and " + number(numbers[last])
}
