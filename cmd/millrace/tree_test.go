package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// commands lists the command tree, the root first.
func commands() []*cobra.Command {
	var all []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		all = append(all, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := newRoot(streams{in: strings.NewReader("")})
	root.InitDefaultHelpCmd()
	walk(root)
	return all
}

// words splits a command line as a shell does, without expansions.
func words(s string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(s, -1) {
		list = append(list, m[1]+m[2]+m[3])
	}
	return list
}

// lines are the calls of millrace in an example, without the pipe, list or substitution around them.
func lines(example string) [][]string {
	var list [][]string
	for _, part := range regexp.MustCompile(`[\n;|()]`).Split(example, -1) {
		part, _, _ = strings.Cut(part, " > ")
		if w := words(part); len(w) > 0 && w[0] == "millrace" {
			list = append(list, w[1:])
		}
	}
	return list
}

func TestEveryCommandHasHelpAndAnExampleThatParses(t *testing.T) {
	for _, c := range commands() {
		t.Run(c.CommandPath(), func(t *testing.T) {
			assert.NotEmpty(t, c.Short)
			calls := lines(c.Example)
			require.NotEmpty(t, calls, "no call of millrace in the example %q", c.Example)
			args := strings.Fields(c.CommandPath())[1:]
			own := c.Name() == "millrace" || c.HasSubCommands()
			for _, call := range calls {
				// Another tree, so that flags of one example are not seen by the next.
				root := newRoot(streams{})
				root.InitDefaultHelpCmd()
				found, rest, err := root.Find(call)
				require.NoError(t, err)
				own = own || found.CommandPath() == c.CommandPath()
				err = found.ParseFlags(rest)
				if errors.Is(err, pflag.ErrHelp) {
					continue
				}
				require.NoError(t, err, "%v", call)
				assert.NoError(t, found.ValidateArgs(found.Flags().Args()), "%v", call)
				assert.NoError(t, found.ValidateRequiredFlags())
			}
			assert.True(t, own, "no example calls the command itself")
			if c.Name() == "help" {
				return
			}
			out := must(t, append(args, "--help")...)
			says := c.Short
			if c.Long != "" {
				says = c.Long
			}
			for _, want := range []string{says, "Examples:\n" + c.Example, "--output", "--progress"} {
				assert.True(t, strings.Contains(out, want), "%q is not in\n%s", want, out)
			}
			if len(args) > 0 {
				assert.True(t, out == must(t, append([]string{"help"}, args...)...),
					"millrace help says something else")
			}
		})
	}
}

func TestEveryFlagSaysWhatItIs(t *testing.T) {
	for _, c := range commands() {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			assert.NotEmpty(t, f.Usage, "%s --%s", c.CommandPath(), f.Name)
			assert.Regexp(t, `^[a-z0-9]+(-[a-z0-9]+)*$`, f.Name)
		})
	}
}

func TestGroupsPrintTheirHelp(t *testing.T) {
	for _, c := range commands() {
		if c.HasSubCommands() {
			out := must(t, strings.Fields(c.CommandPath())[1:]...)
			assert.Contains(t, out, "Available Commands:", c.CommandPath())
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		assert.Contains(t, must(t, "completion", shell), "millrace")
	}
	assert.Contains(t, must(t, "__complete", "drive", ""), "create")
}
