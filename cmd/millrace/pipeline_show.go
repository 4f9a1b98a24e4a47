package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/sdk/pipeline/picture"
)

// show draws a pipeline.
func (c pipelineCommands) show() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "show PIPELINE",
		Short: "Draw a pipeline, with the estimated cost of each step",
		Long: `Draws a pipeline: a YAML file, the name of a built-in pipeline, or - for standard input. Each group of columns
is shown on its way through the operators to its tensor, and each operator with the nanoseconds of one core that
a value is estimated to cost, by docs/performance-kernels.md. Nothing is measured. --format dot is for Graphviz.`,
		Example: "  millrace pipeline show rm1\n" +
			"  millrace pipeline show pipeline.yaml --format dot | dot -Tsvg > pipeline.svg",
		Args: cli.ExactArgs("PIPELINE"),
		RunE: func(_ *cobra.Command, args []string) error {
			spec, err := c.loadPipeline(args[0])
			if err != nil {
				return c.reportProblems(err)
			}
			drawn := picture.Draw(spec)
			switch {
			case format == "json" || format == "text" && c.Output == "json":
				asJSON := *c.console
				asJSON.Output = "json"
				return asJSON.Report(drawn, nil)
			case format == "dot":
				_, err = c.Out.Write(drawn.DOT())
			default:
				_, err = fmt.Fprintf(c.Out, "%s%s\n", drawn.Text(), cli.VersionLine())
			}
			return err
		},
	}
	cli.AddChoice(cmd.Flags(), &format, "format", "text", "text, dot or json", "text", "dot", "json")
	return cmd
}
