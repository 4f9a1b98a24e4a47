package clitest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
)

// roff escapes the text of a page as it stands within a line.
var roff = strings.NewReplacer("\\", "\\e", "-", "\\-")

// CheckManual checks that every command that help lists has a manual page with its flags, which a formatter reads as
// text and known macros.
func (p Program) CheckManual(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	p.Must(t, "manual", dir, "--date", "2026-01-31")
	macro := regexp.MustCompile(`^\.(TH|SH|TP|PP|B|BR|nf|fi|ad|nh)( |$)`)
	pages := 0
	for _, c := range p.Commands() {
		if c.Hidden {
			continue
		}
		pages++
		title := strings.ReplaceAll(c.CommandPath(), " ", "-")
		b, err := os.ReadFile(filepath.Join(dir, title+".1"))
		require.NoError(t, err)
		page := string(b)
		for _, want := range []string{
			".TH " + roff.Replace(strings.ToUpper(title)) + " 1 2026-01-31 ", ".SH NAME\n" + roff.Replace(title) + " \\- ",
			".SH SYNOPSIS", ".SH EXIT STATUS", ".SH EXAMPLES",
		} {
			assert.Contains(t, page, want, title)
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				assert.Contains(t, page, roff.Replace("--"+f.Name), title)
			}
		})
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, ".") {
				assert.Regexp(t, macro, strings.TrimRight(line, "\n"), title)
			}
			assert.False(t, strings.HasPrefix(line, "'"), "%s: %s", title, line)
		}
	}
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, all, pages)
	assert.NoFileExists(t, filepath.Join(dir, "millrace-manual.1"))
	code, _, errs := p.Run("manual", dir, "--date", "today")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, errs, "2026-01-31")
}
