package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/quantity"
)

// nodeCommand is the command that runs a storage node.
type nodeCommand struct{ *console }

func (c nodeCommand) command() *cobra.Command {
	return cli.Group("node", "Run this machine as a storage node", c.run())
}

// nodeReady is what node run prints when the node serves.
type nodeReady struct {
	Name    string   `json:"name"`
	URLs    []string `json:"urls"`
	Drives  []string `json:"drives"`
	Control []string `json:"control"`
}

func (c nodeCommand) run() *cobra.Command {
	var (
		config string
		far    sourceFlags
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve this machine's drives to launchers and the control plane",
		Long: `Runs the agent of a storage node until it is interrupted: it opens the drives that its configuration
names, registers with the control plane if there is one, and serves mini-batches over HTTP. One line
says when it is ready; the log is on standard error. When it is interrupted it takes no new splits,
lets those that run end (drain_time bounds that), and ends. Metrics are at /metrics, readiness at
/readyz.

The configuration is one YAML document: millrace config print-defaults node shows every field. It
may list a drive of several regions once for each region (?region=0, ?region=1 in its uri): then each
is a drive to the control plane and its jobs.`,
		Example: "  millrace config print-defaults node > node.yaml\n  millrace node run --config node.yaml",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if config == "" {
				return cli.Usagef("--config is wanted: the node's configuration (millrace config print-defaults node)")
			}
			conf, err := node.ReadConfig(config)
			if err != nil {
				return err
			}
			var members []string
			for _, d := range conf.Drives {
				members = append(members, d.Members...)
			}
			sources, err := far.open(source.ParseLocations(members...))
			if err != nil {
				return err
			}
			return node.Run(cmd.Context(), conf, node.Options{Logger: logger(c.Err, conf.Log.Level, conf.Log.Format),
				Version: buildVersion().Version, Sources: sources}, func(a *node.Agent) {
				r := nodeReady{
					Name: conf.Name, URLs: a.URLs(), Drives: []string{}, Control: append([]string{}, conf.Control...),
				}
				for _, d := range conf.Drives {
					r.Drives = append(r.Drives, d.Name)
				}
				_ = c.Print(r, func(w io.Writer) {
					fmt.Fprintf(w, "node %s serves %s at %s\n", r.Name, quantity.Of(len(r.Drives), "drive"),
						strings.Join(r.URLs, ", "))
				})
			})
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "the node's configuration, a YAML file")
	far.addFlags(cmd.Flags())
	cli.AddNativeTiming(cmd.Flags(), cli.ServiceTiming)
	return cmd
}
