package manual

import (
	"fmt"
	"regexp"
	"strings"
)

// Expectation is the output that a command of a console block must print.
type Expectation struct {
	Line    int    // of the block
	Command string // as typed
	File    string // into which the script puts standard output and standard error
	Want    string
}

// Script makes one shell script of the blocks that are run, and lists the outputs that the commands of console blocks
// must print. Outputs go to files in the folder out. The script ends at the first command that fails; the variable
// manual_line then has the line of its block.
func Script(blocks []Block, out string) (script string, expectations []Expectation) {
	var b strings.Builder
	b.WriteString("set -euo pipefail\n")
	b.WriteString("trap 'echo \"failed: the block at line $manual_line\" >&2' ERR\n")
	for _, block := range blocks {
		fmt.Fprintf(&b, "manual_line=%d\n", block.Line)
		b.WriteString(block.Given)
		switch {
		case block.File != "":
			fmt.Fprintf(&b, "cat >%s <<'END OF FILE'\n%sEND OF FILE\n", quote(block.File), block.Text)
		case block.NotRun != "":
		case block.Kind == "sh":
			b.WriteString("set -x\n" + block.Text + "{ set +x; } 2>/dev/null\n")
		case block.Kind == "console":
			for _, e := range session(block) {
				e.File = fmt.Sprintf("%s/%d", out, len(expectations))
				expectations = append(expectations, e)
				fmt.Fprintf(&b, "{ %s\n} >%s 2>&1 || echo \"exit status $?\" >>%s\n", e.Command, quote(e.File),
					quote(e.File))
			}
		}
	}
	b.WriteString("for job in $(jobs -p); do kill $job 2>/dev/null || true; done\nwait\necho 'the document is done'\n")
	return b.String(), expectations
}

// session splits a console block into commands and their outputs. A command goes on in lines that begin with "> ".
func session(block Block) []Expectation {
	var list []Expectation
	for line := range strings.Lines(block.Text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			list = append(list, Expectation{Line: block.Line, Command: strings.TrimSuffix(command, "\n")})
			continue
		}
		if len(list) == 0 {
			continue
		}
		last := &list[len(list)-1]
		if more, ok := strings.CutPrefix(line, "> "); ok && last.Want == "" {
			last.Command += "\n" + strings.TrimSuffix(more, "\n")
			continue
		}
		last.Want += line
	}
	return list
}

// Match reports whether a command printed the output that the document promises.
func (e Expectation) Match(got string) bool {
	return pattern(e.Want).MatchString(trim(got))
}

// pattern makes a regular expression of a promise: "..." is any text within a line, a line of it alone any lines, and
// runs of spaces are alike, since the widths of a table's columns follow from what was measured.
func pattern(want string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	for line := range strings.SplitSeq(strings.TrimSuffix(trim(want), "\n"), "\n") {
		if strings.TrimSpace(line) == "..." {
			b.WriteString(`(?s:.*?)`)
			continue
		}
		parts := strings.Split(line, "...")
		for i, part := range parts {
			parts[i] = regexp.MustCompile(` +`).ReplaceAllString(regexp.QuoteMeta(part), ` +`)
		}
		b.WriteString(strings.Join(parts, `[^\n]*?`) + ` *\n`)
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// trim ends a text with exactly one newline.
func trim(s string) string {
	return strings.TrimRight(s, "\n ") + "\n"
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
