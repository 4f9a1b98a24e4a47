package clitest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
)

// Status is, for a command, a call with a wrong value of a flag or an argument, which ends with exit status 2, and a
// call with right ones that fails, which ends with 1. In both NONE is a path where nothing is and TEXT a file that
// holds a word. A command that has no value to get wrong, or that cannot fail, says so with an empty call.
type Status [2]string

// CheckStatuses calls each command with an unknown flag, with too few and too many arguments, with a wrong value, and
// with arguments that make it fail. Status 2 is for errors in the command line; 1 is for failures.
func (p Program) CheckStatuses(t *testing.T, statuses map[string]Status) {
	t.Helper()
	for _, c := range p.Commands() {
		if c.HasSubCommands() || c.DisableFlagParsing {
			continue
		}
		path := strings.TrimPrefix(c.CommandPath(), "millrace ")
		t.Run(path, func(t *testing.T) {
			// A context, or a control plane of the environment, would decide what fails.
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			t.Setenv("MILLRACE_CONTROL", "")
			dir := t.TempDir()
			text := filepath.Join(t.TempDir(), "text")
			require.NoError(t, os.WriteFile(text, []byte("word\n"), 0o644))
			call := func(want int, args string) {
				t.Helper()
				args = strings.NewReplacer("NONE", dir+"/none", "TEXT", text).Replace(path + " " + args)
				status, _, stderr := p.Run(append(strings.Fields(args), "--progress", "none")...)
				assert.Equal(t, want, status, "millrace %s: %s", args, stderr)
			}
			call(cli.ExitUsage, "--no-such-flag")
			if path != "help" { // millrace help takes the words of any command
				for _, n := range wrongCounts(c) {
					call(cli.ExitUsage, strings.Repeat("NONE ", n))
				}
			}
			s, ok := statuses[path]
			if !assert.True(t, ok, "the statuses do not say what is a wrong value of %s, and what fails", path) {
				return
			}
			if s[0] != "" {
				call(cli.ExitUsage, s[0])
			}
			if s[1] != "" {
				call(cli.ExitFailed, s[1])
			}
		})
	}
}

// wrongCounts returns a number of arguments below what the command's usage says, if there is one, and one above.
func wrongCounts(c *cobra.Command) (counts []int) {
	least, most, repeated := 0, 0, false
	for _, word := range strings.Fields(c.Use)[1:] {
		repeated = repeated || strings.Contains(word, "...")
		if most++; !regexp.MustCompile(`^\[`).MatchString(word) {
			least++
		}
	}
	if least > 0 {
		counts = append(counts, least-1)
	}
	if !repeated {
		counts = append(counts, most+1)
	}
	return counts
}
