package main

import (
	"context"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
)

// benchProgram has the commands of millrace bench, which the product does not link.
const benchProgram = "millrace-bench"

// benchCommand is "millrace bench", whose commands, help and completion are those of the program millrace-bench.
func benchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "bench", Short: "Our own tables, measured on this machine",
		Long: `Runs the program millrace-bench with the same arguments. It measures this machine, and is a program of its
own so that millrace links nothing that only measures. It is looked for in the folder of millrace, and
then on the PATH; make build, the Debian package, the archive of a release and the container image have
both, and a wheel has millrace alone.`,
		Example:            "  millrace bench --help\n  millrace bench rm --models rm1",
		DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		ValidArgsFunction: completeBench,
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := cli.FindProgram(benchProgram)
			if err != nil {
				return err
			}
			return become(cmd, program, append([]string{"bench"}, args...))
		},
	}
}

// completeBench has the program complete a command line. Its lines are completions, and the last one is a colon and a
// number (cobra.ShellCompDirective).
func completeBench(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	program, err := cli.FindProgram(benchProgram)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	args = append(append([]string{cobra.ShellCompRequestCmd, "bench"}, args...), toComplete)
	out, err := exec.CommandContext(ctx, program, args...).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := len(lines) - 1
	directive, numberErr := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil || numberErr != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}
