package clitest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// measuring begins the part of docs/commands.md that the program millrace-bench has; the part above is millrace's.
const measuring = "<!-- The commands of millrace-bench: written by MILLRACE_UPDATE=1 go test -run Documented " +
	"./cmd/millrace-bench in bench -->\n"

// CheckDocument checks that the program's part of docs/commands.md is what the tree of commands says, or with
// MILLRACE_UPDATE writes it. The text stands above the commands.
func (p Program) CheckDocument(t *testing.T, file, text string) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	above, below, found := strings.Cut(string(b), measuring)
	require.True(t, found, "%s has no part of millrace-bench", file)
	part := &above
	if p.Below != "" {
		part = &below
	}
	want := text + p.document()
	if p.Below == "" {
		want += "\n"
	}
	if os.Getenv("MILLRACE_UPDATE") != "" {
		*part = want
		require.NoError(t, os.WriteFile(file, []byte(above+measuring+below), 0o644))
	}
	require.True(t, want == *part,
		"docs/commands.md is not what the command tree says: run MILLRACE_UPDATE=1 go test -run Documented in this folder")
}

// document lists the program's commands, and describes each.
func (p Program) document() string {
	var b strings.Builder
	all := p.Commands()
	for _, c := range all[1:] {
		if !c.HasSubCommands() && !c.Hidden {
			fmt.Fprintf(&b, "- [`%s`](#%s): %s\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"),
				strings.TrimSuffix(c.Short, "."))
		}
	}
	b.WriteString("\n")
	if p.Below == "" {
		b.WriteString("Every command has:\n\n")
		flagTable(&b, all[0].PersistentFlags())
	}
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
