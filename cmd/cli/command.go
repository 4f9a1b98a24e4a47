package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/internal/terminal"
)

// Exit statuses.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitUnread = 128 + 13 // as a shell shows the end by SIGPIPE
)

// usageError is the error of a wrong flag or argument.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usagef makes the error of a wrong flag or argument.
func Usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// WrongUsage returns err as the error of a wrong flag or argument.
func WrongUsage(err error) error { return usageError{err} }

// ErrReported is the error of a command that has reported it: Execute does not print it again.
var ErrReported = errors.New("it failed, as said above")

// Root completes the root of a tree of commands: with the flags that every command has, help and the version.
func Root(c *Console, root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Args, root.Version = NoArgs, versionAndCommit()
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return c.checkShared(cmd) }
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return WrongUsage(suggestFlag(cmd, explainWanted(err)))
	})
	root.PersistentFlags().StringVar(&c.Output, "output", "table", "how results are printed: table or json")
	root.PersistentFlags().StringVar(&c.Progress, "progress", "auto",
		"how progress is shown: auto, plain, json or none")
	root.PersistentFlags().BoolVar(&c.Wide, "wide", false, "do not fold tables to the terminal's width")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(helpCommand())
}

// Execute runs a command line and returns its exit status. An error is one line on standard error, or as many as its
// method Lines returns.
func Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitDone
	}
	if errors.Is(err, errNobodyReads) || errors.Is(context.Cause(ctx), errNobodyReads) {
		return ExitUnread
	}
	if errors.Is(err, ErrReported) {
		return ExitFailed
	}
	name := "millrace:"
	if terminal.Colours(root.ErrOrStderr()) {
		name = terminal.Red.Text(name)
	}
	lines := []string{err.Error()}
	var several interface{ Lines() []string }
	if errors.As(err, &several) {
		lines = several.Lines()
	}
	for _, line := range lines {
		fmt.Fprintln(root.ErrOrStderr(), name,
			terminal.Escape(OneLine(goTypeSuffix.ReplaceAllString(line, ""))))
	}
	var usage usageError
	if errors.As(err, &usage) {
		return ExitUsage
	}
	return ExitFailed
}

// goTypeSuffix matches the Go type that a YAML decoder appends to the error of an unknown field.
var goTypeSuffix = regexp.MustCompile(` in type [a-z]+\.[A-Z][A-Za-z]*`)

// OneLine joins the lines of a text into one.
func OneLine(s string) string {
	var parts []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

// NoArgs refuses arguments with exit status 2.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return Usagef("unknown command %q for %q%s: see %s --help", args[0], cmd.CommandPath(),
			suggestCommand(cmd, args[0]), cmd.CommandPath())
	}
	return Usagef("%s takes no arguments, got %q", cmd.CommandPath(), args)
}

// ExactArgs refuses any other number of arguments than names.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return Usagef("%s wants %s, got %d arguments", cmd.CommandPath(), strings.Join(names, " "), len(args))
		}
		return nil
	}
}

// Group returns a command that only holds others.
func Group(use, short string, subs ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short, Args: NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Example: "  millrace " + use + " " + subs[0].Name() + " --help",
	}
	g.AddCommand(subs...)
	return g
}

// helpCommand is "millrace help COMMAND"; a command that does not exist is a wrong argument.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Help about a command", Example: "  millrace help drive put",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err == nil && found != nil && found.DisableFlagParsing { // another program has its commands
				return found.RunE(found, append(rest, "--help"))
			}
			if err != nil || len(rest) > 0 || found == nil {
				suggestion := ""
				if found != nil && len(rest) > 0 {
					suggestion = suggestCommand(found, rest[0])
				} else if len(args) > 0 {
					suggestion = suggestCommand(cmd.Root(), args[0])
				}
				return Usagef("help: unknown command %q%s: see millrace --help", strings.Join(args, " "), suggestion)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}
