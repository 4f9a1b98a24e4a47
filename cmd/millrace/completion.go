package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// completion prints a shell's completion script.
func completionCommand(c *console) *cobra.Command {
	scripts := map[string]func(*cobra.Command) error{
		"bash":       func(root *cobra.Command) error { return root.GenBashCompletionV2(c.out, true) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(c.out) },
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(c.out, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(c.out) },
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
				return usagef("%s wants one of %s", cmd.CommandPath(), strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return scripts[args[0]](cmd.Root()) },
	}
}

// helpCommand is "millrace help COMMAND"; a command that does not exist is a wrong argument.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Help about a command", Example: "  millrace help drive put",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 || found == nil {
				suggestion := ""
				if found != nil && len(rest) > 0 {
					suggestion = suggestCommand(found, rest[0])
				} else if len(args) > 0 {
					suggestion = suggestCommand(cmd.Root(), args[0])
				}
				return usagef("help: unknown command %q%s: see millrace --help", strings.Join(args, " "), suggestion)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}
