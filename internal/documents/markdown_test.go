package documents

import (
	"regexp"
	"strings"
)

// Link is a link of a document to something else than the web.
type Link struct {
	Target string // as written: "docs/nvme.md#security", "#the-house"
	Line   int    // from 1
}

var linkPattern = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links returns the links of a Markdown document that stay in the repository. Text in fenced blocks is not a link.
func Links(text string) []Link {
	var links []Link
	eachLine(text, func(line string, number int) {
		for _, m := range linkPattern.FindAllStringSubmatch(line, -1) {
			if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
				links = append(links, Link{m[1], number})
			}
		}
	})
	return links
}

// Section returns the text under a heading, up to the next heading of the same or a higher level. It reports whether
// the heading is there.
func Section(text, heading string) (section string, found bool) {
	level := strings.IndexByte(heading, ' ')
	var b strings.Builder
	inside := false
	fenced := false
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\n")
		if strings.HasPrefix(bare, "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(bare, "#") {
			if depth := len(bare) - len(strings.TrimLeft(bare, "#")); inside && depth <= level {
				return b.String(), true
			}
			if bare == heading {
				inside = true
				continue
			}
		}
		if inside {
			b.WriteString(line)
		}
	}
	return b.String(), inside
}

// Rows returns the cells of the rows of all tables in a text, without the tables' heads.
func Rows(text string) [][]string {
	var rows [][]string
	head := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			head = true
			continue
		}
		if head {
			head = !strings.HasPrefix(line, "|---") && !strings.HasPrefix(line, "| ---")
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

var codePattern = regexp.MustCompile("`([^`]+)`")

// CodeSpans returns the texts between backquotes.
func CodeSpans(text string) []string {
	var spans []string
	for _, m := range codePattern.FindAllStringSubmatch(text, -1) {
		spans = append(spans, m[1])
	}
	return spans
}

// Anchors returns the names by which a link reaches the headings of a document.
func Anchors(text string) map[string]bool {
	anchors := map[string]bool{}
	eachLine(text, func(line string, _ int) {
		if !strings.HasPrefix(line, "#") {
			return
		}
		title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		anchors[anchorRemoves.ReplaceAllString(strings.ReplaceAll(title, " ", "-"), "")] = true
	})
	return anchors
}

var anchorRemoves = regexp.MustCompile(`[^\p{L}\p{N}_-]`)

// eachLine calls f for the lines that lie in no fenced block.
func eachLine(text string, f func(line string, number int)) {
	number, fenced := 0, false
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			f(line, number)
		}
	}
}
