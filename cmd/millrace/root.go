package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/internal/terminal"
)

// Exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// streams are where a command reads and writes; tests give their own.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// usageError is a wrong flag or argument.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usagef makes a usageError.
func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// command is what every subcommand shares.
type command struct {
	streams
	output   string // --output
	progress string // --progress
	wide     bool   // --wide
	// screen is where out ends up, if not there: a watch draws what it collected.
	screen io.Writer
}

// run runs the command line and returns its exit status. An error is one line on stderr, those of a
// pipeline one a cause.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if errors.Is(err, errSaid) {
		return exitFailed
	}
	name := "millrace:"
	if terminal.Colours(s.err) {
		name = terminal.Red.Text(name)
	}
	lines := []string{err.Error()}
	var document *documentError
	if errors.As(err, &document) {
		lines = document.lines()
	}
	for _, line := range lines {
		fmt.Fprintln(s.err, name, visible(oneLine(inTypes.ReplaceAllString(line, ""))))
	}
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// inTypes is what a YAML decoder adds to a field that nobody knows: the type of Go's that lacks it.
var inTypes = regexp.MustCompile(` in type [a-z]+\.[A-Z][A-Za-z]*`)

// oneLine puts what several errors say, each on its lines, into one line.
func oneLine(s string) string {
	var parts []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

// newRoot builds the command tree.
func newRoot(s streams) *cobra.Command {
	c := &command{streams: s}
	root := &cobra.Command{
		Use:           "millrace",
		Short:         "Preprocess training rows on the drives that store them",
		Example:       "  millrace demo\n  millrace preprocess --help",
		SilenceErrors: true, SilenceUsage: true,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return c.checkShared()
		},
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{suggestFlag(cmd, sayWanted(err))} })
	root.PersistentFlags().StringVar(&c.output, "output", "table", "how results are printed: table or json")
	root.PersistentFlags().StringVar(&c.progress, "progress", "auto", "how progress is shown: auto, plain, json or none")
	root.PersistentFlags().BoolVar(&c.wide, "wide", false, "do not fold tables to the terminal's width")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(helpCommand())
	root.AddCommand(c.demo(), c.up(), c.down(), c.dataset(), c.preprocess(), c.drive(), c.image(), c.train(), c.plan(), c.bench(), c.pki(), c.node(), c.config(), c.control(), c.context(), c.jobs(), c.nodes(), c.completion(), c.manual(), c.version())
	return root
}

// checkShared checks the flags that every command has.
func (c *command) checkShared() error {
	if c.output != "table" && c.output != "json" {
		return usagef("--output %q: want table or json", c.output)
	}
	switch c.progress {
	case "auto", "plain", "json", "none":
		return nil
	}
	return usagef("--progress %q: want auto, plain, json or none", c.progress)
}

// noArgs refuses arguments with exit status 2.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return usagef("unknown command %q for %q%s: see %s --help", args[0], cmd.CommandPath(), suggestCommand(cmd, args[0]), cmd.CommandPath())
	}
	return usagef("%s takes no arguments, got %q", cmd.CommandPath(), args)
}

// exactArgs wants as many arguments as names.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s wants %s, got %d arguments", cmd.CommandPath(), strings.Join(names, " "), len(args))
		}
		return nil
	}
}

// group makes a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short, Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Example: "  millrace " + use + " " + subs[0].Name() + " --help",
	}
	g.AddCommand(subs...)
	return g
}

// print writes a result: as JSON, or as the table that the function writes, whose cells are separated by tabs.
func (c *command) print(v any, table func(w io.Writer)) error {
	if c.output == "json" {
		e := json.NewEncoder(c.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	text := c.table(table)
	if c.screen == nil && terminal.Colours(c.out) {
		text = terminal.Paint(text)
	}
	_, err := io.WriteString(c.out, text)
	return err
}

// table lays out what the function writes, folded to the terminal that results go to, if they go to one.
func (c *command) table(write func(w io.Writer)) string {
	var b strings.Builder
	write(&b)
	screen := c.screen
	if screen == nil {
		screen = c.out
	}
	width := terminal.Width(screen)
	if c.wide {
		width = 0
	}
	return terminal.Table(visible(b.String()), width)
}
