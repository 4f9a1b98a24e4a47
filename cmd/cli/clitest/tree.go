package clitest

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
)

// Program is a command line under test.
type Program struct {
	// New makes the root of the tree of commands. Each call makes another tree.
	New func(cli.Streams) *cobra.Command
	// Below is the name of the command whose tree is the program's own; "" is the root.
	Below string
}

// Run runs a command line and returns its exit status, standard output and standard error.
func (p Program) Run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	root := p.New(cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return cli.Execute(context.Background(), root, args), out.String(), errs.String()
}

// Must runs a command line, wants status 0, and returns standard output.
func (p Program) Must(t *testing.T, args ...string) string {
	t.Helper()
	status, out, errs := p.Run(args...)
	require.Zero(t, status, "millrace %s: %s", strings.Join(args, " "), errs)
	return out
}

// Commands lists the program's own commands, the top first. Commands of other programs are left out.
func (p Program) Commands() []*cobra.Command {
	var all []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		all = append(all, c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := p.New(cli.Streams{In: strings.NewReader("")})
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == p.Below {
			root = c
		}
	}
	walk(root)
	return all
}

// Words splits a command line as a shell does, without expansions.
func Words(s string) []string {
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
		if w := Words(part); len(w) > 0 && w[0] == "millrace" {
			list = append(list, w[1:])
		}
	}
	return list
}

// CheckHelp checks that every command has help, and an example that parses and calls the command itself.
func (p Program) CheckHelp(t *testing.T) {
	t.Helper()
	for _, c := range p.Commands() {
		t.Run(c.CommandPath(), func(t *testing.T) {
			assert.NotEmpty(t, c.Short)
			calls := lines(c.Example)
			require.NotEmpty(t, calls, "no call of millrace in the example %q", c.Example)
			args := strings.Fields(c.CommandPath())[1:]
			own := c.Name() == "millrace" || c.HasSubCommands()
			for _, call := range calls {
				// Another tree, so that flags of one example are not seen by the next.
				root := p.New(cli.Streams{})
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
			if c.Name() == "help" || c.DisableFlagParsing { // another program prints its help
				return
			}
			out := p.Must(t, append(args, "--help")...)
			says := c.Short
			if c.Long != "" {
				says = c.Long
			}
			for _, want := range []string{says, "Examples:\n" + c.Example, "--output", "--progress"} {
				assert.True(t, strings.Contains(out, want), "%q is not in\n%s", want, out)
			}
			if len(args) > 0 {
				assert.True(t, out == p.Must(t, append([]string{"help"}, args...)...),
					"millrace help says something else")
			}
			if c.HasSubCommands() {
				assert.Contains(t, p.Must(t, args...), "Available Commands:")
			}
		})
	}
}

// CheckFlags checks that every flag says what it is.
func (p Program) CheckFlags(t *testing.T) {
	t.Helper()
	for _, c := range p.Commands() {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			assert.NotEmpty(t, f.Usage, "%s --%s", c.CommandPath(), f.Name)
			assert.Regexp(t, `^[a-z0-9]+(-[a-z0-9]+)*$`, f.Name)
		})
	}
}
