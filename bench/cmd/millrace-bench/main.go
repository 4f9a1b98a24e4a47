// Millrace-bench measures millrace on this machine.
//
//	millrace bench rm                     RM1 to RM5, rows a second of one engine
//	millrace bench roofline               the same beside a copy of memory
//	millrace bench wire                   NVMe/TCP beside raw TCP
//	millrace bench service                storage nodes and a trainer
//	millrace bench pipeline               the whole way, from files on a drive to trainers
//	millrace bench placement              five places to preprocess
//	millrace bench regions                regions of a drive
//	millrace bench offload                the policies of offloading
//	millrace bench operators              MiniPipe's operators one by one
//	millrace bench papers                 the papers' figures and tables
//
// millrace bench runs this program, which lies beside millrace or on the PATH, with the same arguments: millrace-bench
// bench rm is millrace bench rm. Measurements of several processes run millrace, which is looked for in the same way.
// Streams, errors and exit statuses are those of millrace.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
)

func main() { os.Exit(cli.Main(run)) }

// run runs the command line and returns its exit status.
func run(ctx context.Context, args []string, s cli.Streams) int {
	return cli.Execute(ctx, newRoot(s), args)
}

// newRoot builds the command tree, which is that of millrace with bench alone, so that both programs call a command by
// the same name.
func newRoot(s cli.Streams) *cobra.Command {
	c := &cli.Console{Streams: s}
	root := &cobra.Command{Use: "millrace", Short: "Measure millrace on this machine", Example: "  millrace bench --help"}
	cli.Root(c, root)
	bench := benchCommands{c}.command()
	root.AddCommand(bench, cli.ManualCommand(bench))
	return root
}
