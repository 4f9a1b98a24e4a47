package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/host/node"
)

func (c *command) config() *cobra.Command {
	return group("config", "Configurations of daemons", c.configCheck(), c.configPrintDefaults())
}

// configChecked is what config check prints.
type configChecked struct {
	File    string   `json:"file"`
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Listen  []string `json:"listen"`
	Control []string `json:"control"`
	Drives  []string `json:"drives"`
	TLS     bool     `json:"tls"`
}

func (c *command) configCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a storage node's configuration",
		Long: `Reads a configuration as millrace node run would, and says what is wrong with it, with line and column. Nothing is opened and nobody is called.
docs/node.schema.json is the JSON Schema of the document, for editors.`,
		Example: "  millrace config check /etc/millrace/node.yaml",
		Args:    exactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			conf, err := node.ReadConfig(args[0])
			if err != nil {
				return err
			}
			r := configChecked{File: args[0], Kind: "node", Name: conf.Name, Listen: conf.Listen, Control: append([]string{}, conf.Control...), Drives: []string{}, TLS: conf.TLS != node.TLSConfig{}}
			for _, d := range conf.Drives {
				r.Drives = append(r.Drives, d.Name)
			}
			return c.print(r, func(w io.Writer) {
				fmt.Fprintf(w, "%s: node %s, %d drives: fine\n", r.File, r.Name, len(r.Drives))
			})
		},
	}
}

func (c *command) configPrintDefaults() *cobra.Command {
	return &cobra.Command{
		Use:     "print-defaults KIND",
		Short:   "Print a configuration that says what is so anyway, with every field described",
		Long:    "Prints the configuration of a daemon with every field, its default and what it means. KIND is node.",
		Example: "  millrace config print-defaults node > node.yaml",
		Args:    exactArgs("KIND"),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] != "node" {
				return usagef("%q: want node: that is the daemon with a configuration file", args[0])
			}
			b := node.PrintDefaults()
			var v map[string]any
			if err := yaml.Unmarshal(b, &v); err != nil {
				return err
			}
			return c.print(v, func(w io.Writer) { _, _ = w.Write(b) })
		},
	}
}
