package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
)

// completion prints a shell's completion script.
func completionCommand(c *console) *cobra.Command {
	scripts := map[string]func(*cobra.Command) error{
		"bash":       func(root *cobra.Command) error { return root.GenBashCompletionV2(c.Out, true) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(c.Out) },
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(c.Out, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(c.Out) },
	}
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print a completion script for " + strings.Join(shells, ", "),
		Long: "Prints a script that completes commands and flags; the shell sources it. Its output is the " +
			"script, whatever --output says.",
		Example:   "  source <(millrace completion bash)",
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || scripts[args[0]] == nil {
				return cli.Usagef("%s wants one of %s", cmd.CommandPath(), strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return scripts[args[0]](cmd.Root()) },
	}
}
