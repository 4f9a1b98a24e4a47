package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
)

// run runs the command line and returns its exit status.
func run(ctx context.Context, args []string, s cli.Streams) int {
	return cli.Execute(ctx, newRoot(s), args)
}

// newRoot builds the command tree.
func newRoot(s cli.Streams) *cobra.Command {
	c := &console{cli.Console{Streams: s}}
	root := &cobra.Command{
		Use:     "millrace",
		Short:   "Preprocess training rows on the drives that store them",
		Example: "  millrace demo\n  millrace preprocess --help",
	}
	cli.Root(&c.Console, root)
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
		benchCommand(),
		pkiCommands{c}.command(),
		nodeCommand{c}.command(),
		workerCommand{c}.command(),
		configCommands{c}.command(),
		controlCommands{c}.command(),
		contextCommands{c}.command(),
		jobCommands{c}.command(),
		nodesCommands{c}.command(),
		completionCommand(c),
		cli.ManualCommand(),
		versionCommand(c),
	)
	return root
}
