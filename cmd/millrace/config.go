package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/internal/ownership"
)

// configCommands are the commands of daemons' configurations.
type configCommands struct{ *console }

func (c configCommands) command() *cobra.Command {
	return group("config", "Configurations of daemons", c.check(), c.printDefaults())
}

// configChecked is what config check prints.
type configChecked struct {
	File     string         `json:"file"`
	Kind     string         `json:"kind"`
	Name     string         `json:"name"`
	Listen   []string       `json:"listen"`
	Control  []string       `json:"control"`
	Drives   []string       `json:"drives"`
	TLS      bool           `json:"tls"`
	User     string         `json:"user"` // the user whose rights were checked
	Findings []node.Finding `json:"findings"`
}

// errReported is the error of a command that another process ran and reported: run does not print it again.
var errReported = errors.New("it failed, as said above")

// serviceUser is the user that the package's services run as.
const serviceUser = "millrace"

func (c configCommands) check() *cobra.Command {
	var (
		document bool
		as       string
	)
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a storage node's configuration and what it names",
		Long: `Reads a configuration as millrace node run would, and says what is wrong with it, with line and
column. Then it looks at what the configuration names, as the user who runs the node: whether
folders and keys can be read and written, certificates are valid and not about to end, addresses can
be listened at, and drives can be opened or are in service. The exit status is 1 while there is a
problem. Nothing is changed; a drive on the network is called, the control plane is not.

As root it is looked at as the user of the packaged service (millrace), if there is one.
docs/node.schema.json is the JSON Schema of the document, for editors.`,
		Example: "  millrace config check /etc/millrace/node.yaml\n  millrace config check node.yaml --document",
		Args:    exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if as == "" && os.Geteuid() == 0 && !document {
				if _, err := user.Lookup(serviceUser); err == nil {
					as = serviceUser
				}
			}
			if as != "" && !document {
				if done, err := c.runAsUser(cmd.Context(), as, "config", "check", args[0], "--output",
					c.output); done ||
					err != nil {
					return err
				}
			}
			conf, err := node.ReadConfig(args[0])
			if err != nil {
				return ownership.Explain(err, args[0])
			}
			r := configChecked{
				File: args[0], Kind: "node", Name: conf.Name, Listen: conf.Listen,
				Control: append([]string{}, conf.Control...), Drives: []string{},
				TLS: conf.TLS != node.TLSConfig{}, User: currentUser(), Findings: []node.Finding{},
			}
			for _, d := range conf.Drives {
				r.Drives = append(r.Drives, d.Name)
			}
			if !document {
				r.Findings = append(r.Findings, conf.Examine(cmd.Context(), time.Now())...)
			}
			return c.printChecked(r)
		},
	}
	cmd.Flags().BoolVar(&document, "document", false, "look at the document only, not at what it names")
	cmd.Flags().StringVar(&as, "user", "", "look at it as this user, which only root may (default: as "+serviceUser+
		" for root, if there is one)")
	return cmd
}

// printChecked prints findings; problems make an error.
func (c configCommands) printChecked(r configChecked) error {
	problems := 0
	for _, f := range r.Findings {
		if f.Level == node.Problem {
			problems++
		}
	}
	err := c.print(r, func(w io.Writer) {
		for _, f := range r.Findings {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Level, f.Part, oneLine(f.Says))
		}
		if problems == 0 {
			fmt.Fprintf(w, "%s: node %s, %d drives, looked at as %s: fine\n", r.File, r.Name, len(r.Drives), r.User)
		}
	})
	if err == nil && problems > 0 {
		err = fmt.Errorf("%s: %d of %d parts have a problem, for the user %s", r.File, problems, len(r.Findings),
			r.User)
	}
	return err
}

// currentUser is the name, or the number, of the user who runs this process.
func currentUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Geteuid())
}

func (c configCommands) printDefaults() *cobra.Command {
	return &cobra.Command{
		Use:   "print-defaults KIND",
		Short: "Print a configuration that says what is so anyway, with every field described",
		Long: "Prints the configuration of a daemon with every field, its default and what it means. KIND is\n" +
			"node or worker.",
		Example: "  millrace config print-defaults node > node.yaml",
		Args:    exactArgs("KIND"),
		RunE: func(_ *cobra.Command, args []string) error {
			var b []byte
			switch args[0] {
			case "node":
				b = node.PrintDefaults()
			case "worker":
				b = worker.PrintDefaults()
			default:
				return usagef("%q: want node or worker: those are the daemons with a configuration file", args[0])
			}
			var v map[string]any
			if err := yaml.Unmarshal(b, &v); err != nil {
				return err
			}
			return c.print(v, func(w io.Writer) { _, _ = w.Write(b) })
		},
	}
}
