package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestManual: every command that help lists has a page with its flags, which a formatter reads as text and known
// macros.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	must(t, "manual", dir, "--date", "2026-01-31")
	macro := regexp.MustCompile(`^\.(TH|SH|TP|PP|B|BR|nf|fi|ad|nh)( |$)`)
	pages := 0
	for _, c := range commands() {
		if c.Hidden {
			continue
		}
		pages++
		title := strings.ReplaceAll(c.CommandPath(), " ", "-")
		b, err := os.ReadFile(filepath.Join(dir, title+".1"))
		require.NoError(t, err)
		page := string(b)
		for _, want := range []string{
			".TH " + escapeRoff(strings.ToUpper(title)) + " 1 2026-01-31 ", ".SH NAME\n" + escapeRoff(title) + " \\- ",
			".SH SYNOPSIS", ".SH EXIT STATUS", ".SH EXAMPLES",
		} {
			assert.Contains(t, page, want, title)
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				assert.Contains(t, page, escapeRoff("--"+f.Name), title)
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
	code, _, errs := millrace(t, "manual", dir, "--date", "today")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "2026-01-31")
}

func TestRoff(t *testing.T) {
	assert.Equal(t, `\&.ext a\-b \en`, escapeRoff(".ext a-b \\n"))
	assert.Equal(t, `\&'quoted'`, escapeRoff("'quoted'"))
	assert.Equal(t, "JSON of it", lowerFirst("JSON of it"))
	assert.Equal(t, "a drive", lowerFirst("A drive"))
}
