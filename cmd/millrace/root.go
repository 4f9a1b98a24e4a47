package main

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
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitUnread = 128 + 13 // as a shell shows the end by SIGPIPE
)

// usageError is the error of a wrong flag or argument.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usagef makes a usageError.
func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// run runs the command line and returns its exit status. An error is one line on stderr; the errors of a pipeline are
// one line each.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if errors.Is(err, errNobodyReads) || errors.Is(context.Cause(ctx), errNobodyReads) {
		return exitUnread
	}
	if errors.Is(err, errReported) {
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
		fmt.Fprintln(s.err, name, terminal.Escape(oneLine(goTypeSuffix.ReplaceAllString(line, ""))))
	}
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// goTypeSuffix matches the Go type that a YAML decoder appends to the error of an unknown field.
var goTypeSuffix = regexp.MustCompile(` in type [a-z]+\.[A-Z][A-Za-z]*`)

// oneLine joins the lines of a text into one.
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
	c := &console{streams: s}
	root := &cobra.Command{
		Use:           "millrace",
		Short:         "Preprocess training rows on the drives that store them",
		Example:       "  millrace demo\n  millrace preprocess --help",
		SilenceErrors: true, SilenceUsage: true,
		Args: noArgs, Version: buildVersion().String(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return c.checkShared(cmd)
		},
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{suggestFlag(cmd, explainWanted(err))}
	})
	root.PersistentFlags().StringVar(&c.output, "output", "table", "how results are printed: table or json")
	root.PersistentFlags().StringVar(&c.progress, "progress", "auto",
		"how progress is shown: auto, plain, json or none")
	root.PersistentFlags().BoolVar(&c.wide, "wide", false, "do not fold tables to the terminal's width")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(helpCommand())
	root.AddCommand(
		demoCommand(c),
		siteCommands{c}.up(),
		siteCommands{c}.down(),
		datasetCommands{c}.command(),
		(&preprocessCommand{console: c}).command(),
		privateCommand(c),
		driveCommands{c}.command(),
		imageCommands{c}.command(),
		pipelineCommands{c}.command(),
		vocabularyCommands{c}.command(),
		operatorCommands{c}.command(),
		(&trainCommand{console: c}).command(),
		planCommand(c),
		benchCommands{c}.command(),
		pkiCommands{c}.command(),
		nodeCommand{c}.command(),
		workerCommand{c}.command(),
		configCommands{c}.command(),
		controlCommands{c}.command(),
		contextCommands{c}.command(),
		jobCommands{c}.command(),
		nodesCommands{c}.command(),
		completionCommand(c),
		manualCommand(),
		versionCommand(c),
	)
	return root
}

// noArgs refuses arguments with exit status 2.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return usagef("unknown command %q for %q%s: see %s --help", args[0], cmd.CommandPath(),
			suggestCommand(cmd, args[0]), cmd.CommandPath())
	}
	return usagef("%s takes no arguments, got %q", cmd.CommandPath(), args)
}

// exactArgs refuses any other number of arguments than names.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s wants %s, got %d arguments", cmd.CommandPath(), strings.Join(names, " "), len(args))
		}
		return nil
	}
}

// group returns a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short, Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Example: "  millrace " + use + " " + subs[0].Name() + " --help",
	}
	g.AddCommand(subs...)
	return g
}
