package guest

import (
	"regexp"
	"strings"
)

// warning matches what a healthy kernel over a healthy drive never prints, whether or not its connection breaks.
var warning = regexp.MustCompile(`WARNING: |BUG: |Oops|Kernel panic|kernel BUG|Call Trace:|general protection fault|` +
	`INFO: task .* blocked|unable to handle|UBSAN|KASAN|refcount_t|scheduling while atomic|list_(add|del) corruption|` +
	`EXT4-fs error|JBD2: .*error|I/O error|queue \d+: timeout|I/O (tag )?\d+ .*timeout|keep-alive failed|` +
	`double free|use-after-free|DMA-API`)

// Warnings returns the lines of a console that a healthy kernel does not print. allowed lines are left out: a pattern
// each, for the errors that a test causes on purpose.
func Warnings(console string, allowed ...*regexp.Regexp) []string {
	var found []string
lines:
	for _, line := range strings.Split(console, "\n") {
		if !warning.MatchString(line) {
			continue
		}
		for _, re := range allowed {
			if re.MatchString(line) {
				continue lines
			}
		}
		found = append(found, strings.TrimRight(line, "\r"))
	}
	return found
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
