package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

const commandsFile = "../../docs/commands.md"

// renderCommands writes docs/commands.md from the command tree.
func renderCommands() string {
	var b strings.Builder
	b.WriteString("# Commands\n\n")
	b.WriteString(
		"Written from the command tree by `MILLRACE_UPDATE=1 go test -run Documented ./cmd/millrace`, and checked " +
			"against it by `make test`.\n\n")
	b.WriteString(
		"Results go to standard output, progress and errors to standard error; an error is one line, of a pipeline " +
			"one a cause. Exit status: 0 done, 1 failed, 2 wrong\nflags or arguments, 141 nobody reads the output any more " +
			"(as behind head). Ctrl-C, SIGTERM and the end of a terminal have a command end in order; a second Ctrl-C " +
			"ends it at once. ")
	b.WriteString("In JSON, keys are snake_case and end in their unit; the reports of measurements, jobs, plans " +
		"and checks say in `version` which version of millrace wrote them.\n\n")
	all := commands()
	for _, c := range all[1:] {
		if !c.HasSubCommands() && !c.Hidden {
			fmt.Fprintf(&b, "- [`%s`](#%s): %s\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"),
				strings.TrimSuffix(c.Short, "."))
		}
	}
	b.WriteString("\nEvery command has:\n\n")
	flagTable(&b, all[0].PersistentFlags())
	for _, c := range all[1:] {
		if c.HasSubCommands() || c.Hidden {
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n%s.\n\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
		if c.Long != "" {
			b.WriteString(strings.ReplaceAll(c.Long, "<", "\\<") + "\n\n")
		}
		fmt.Fprintf(&b, "    %s\n\n", c.UseLine())
		flagTable(&b, c.LocalNonPersistentFlags())
		b.WriteString("For example:\n\n")
		for line := range strings.Lines(c.Example) {
			b.WriteString("    " + strings.TrimSpace(line) + "\n")
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func flagTable(b *strings.Builder, flags *pflag.FlagSet) {
	begun := false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		if !begun {
			b.WriteString("| flag | default | what |\n|---|---|---|\n")
			begun = true
		}
		def := f.DefValue
		switch def {
		case "", "[]", "0", "false", "0s":
			def = ""
		default:
			def = "`" + def + "`"
		}
		fmt.Fprintf(b, "| `--%s` | %s | %s |\n", f.Name, def, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
	if begun {
		b.WriteString("\n")
	}
}

func TestCommandsAreDocumented(t *testing.T) {
	want := renderCommands()
	if os.Getenv("MILLRACE_UPDATE") != "" {
		require.NoError(t, os.WriteFile(commandsFile, []byte(want), 0o644))
	}
	got, err := os.ReadFile(commandsFile)
	require.NoError(t, err)
	require.True(t, want == string(got),
		"docs/commands.md "+
			"is not what the command tree says: run MILLRACE_UPDATE=1 go test -run Documented ./cmd/millrace")
}
