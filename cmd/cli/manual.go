package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ManualCommand makes the hidden command that writes the manual pages of a tree of commands, for packages. Without a
// tree it is that of the root.
func ManualCommand(tree ...*cobra.Command) *cobra.Command {
	var date string
	cmd := &cobra.Command{
		Use: "manual DIR", Hidden: true,
		Short:   "Write the manual pages, one a command",
		Long:    "Writes the manual pages of section 1 into a folder, one a command, as packages install them.",
		Example: "  millrace manual man1 --date 2026-01-31",
		Args:    ExactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := time.Parse(time.DateOnly, date); err != nil {
				return Usagef("--date %q: want it as 2026-01-31", date)
			}
			return writeManual(append(tree, cmd.Root())[0], args[0], date)
		},
	}
	cmd.Flags().StringVar(&date, "date", time.Now().UTC().Format(time.DateOnly), "date of the pages")
	return cmd
}

// writeManual writes the page of a command and of all below it.
func writeManual(cmd *cobra.Command, dir, date string) error {
	if cmd.Hidden {
		return nil
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(manualPage(cmd, date)), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if err := writeManual(sub, dir, date); err != nil {
			return err
		}
	}
	return nil
}

// manualPage is a command's page in man(7)'s macros.
func manualPage(cmd *cobra.Command, date string) string {
	var b strings.Builder
	title := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 %s \"millrace %s\" \"Millrace\"\n.ad l\n.nh\n", escapeRoff(strings.ToUpper(title)), date,
		escapeRoff(version()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escapeRoff(title), escapeRoff(lowerFirst(cmd.Short)))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escapeRoff(cmd.UseLine()))
	if text := cmd.Long; text != "" || cmd.HasSubCommands() {
		b.WriteString(".SH DESCRIPTION\n")
		writeParagraphs(&b, text)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", escapeRoff(title+"-"+sub.Name()), escapeRoff(sub.Short))
			}
		}
	}
	writeOptions(&b, "OPTIONS", cmd.LocalNonPersistentFlags())
	writeOptions(&b, "OPTIONS OF EVERY COMMAND", cmd.Root().PersistentFlags())
	b.WriteString(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong flags or arguments.\n")
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n")
		for line := range strings.Lines(cmd.Example) {
			b.WriteString(escapeRoff(strings.TrimSpace(line)) + "\n")
		}
		b.WriteString(".fi\n")
	}
	if p := cmd.Parent(); p != nil {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", escapeRoff(strings.ReplaceAll(p.CommandPath(), " ", "-")))
	}
	return b.String()
}

// lowerFirst returns text with a small first letter, to go on within a sentence.
func lowerFirst(s string) string {
	first, rest, _ := strings.Cut(s, " ")
	if strings.ToLower(first[1:]) != first[1:] {
		return s // a name, as JSON
	}
	return strings.TrimSpace(strings.ToLower(first) + " " + rest)
}

// writeParagraphs writes text whose paragraphs are separated by empty lines.
func writeParagraphs(b *strings.Builder, text string) {
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		for line := range strings.Lines(p) {
			b.WriteString(escapeRoff(strings.TrimSpace(line)) + "\n")
		}
	}
}

// writeOptions writes a section of flags, if there are any.
func writeOptions(b *strings.Builder, heading string, flags *pflag.FlagSet) {
	begun := false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if !begun {
			fmt.Fprintf(b, ".SH %s\n", heading)
			begun = true
		}
		kind, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escapeRoff(strings.TrimSpace("--"+f.Name+" "+kind)), escapeRoff(usage))
		switch f.DefValue {
		case "", "[]", "0", "false", "0s":
		default:
			fmt.Fprintf(b, "(default: %s)\n", escapeRoff(f.DefValue))
		}
	})
}

// escapeRoff escapes text so that troff prints it literally.
func escapeRoff(s string) string {
	s = strings.NewReplacer("\\", "\\e", "-", "\\-", "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = "\\&" + s
	}
	return s
}
