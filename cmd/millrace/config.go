package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/internal/ownership"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/strictyaml"
)

// configCommands are the commands of daemons' configurations.
type configCommands struct{ *console }

func (c configCommands) command() *cobra.Command {
	return cli.Group("config", "Configurations of daemons", c.check(), c.printDefaults())
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

// serviceUser is the user that the package's services run as.
const serviceUser = "millrace"

func (c configCommands) check() *cobra.Command {
	var (
		document bool
		as, kind string
		far      sourceFlags
	)
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check the configuration of a storage node or a worker, and what it names",
		Long: `Reads a configuration as millrace node run or millrace worker run would, and says what is wrong
with it, with line and column. Then it looks at what the configuration names, as the user who runs the
daemon: whether folders and keys can be read and written, certificates are valid and not about to end,
addresses can be listened at, drives can be opened or are in service, and a worker's partitions can be
listed. The exit status is 1 while there is a problem. Nothing is changed; drives and stores on the
network are called, the control plane is not.

The kind of the document is the daemon that knows more of its keys; --kind says it where that is not
clear. As root it is looked at as the user of the packaged service (millrace), if there is one.
docs/node.schema.json and docs/worker.schema.json are JSON Schemas of the documents, for editors.`,
		Example: "  millrace config check /etc/millrace/node.yaml\n  millrace config check node.yaml --document\n" +
			"  millrace config check /etc/millrace/worker.yaml --kind worker",
		Args: cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if as == "" && os.Geteuid() == 0 && !document {
				if _, err := user.Lookup(serviceUser); err == nil {
					as = serviceUser
				}
			}
			if as != "" && !document {
				again := []string{"config", "check", args[0], "--output", c.Output, "--kind", configKind(kind, args[0])}
				if done, err := c.runAsUser(cmd.Context(), as, append(again, far.args()...)...); done || err != nil {
					return err
				}
			}
			var (
				r   configChecked
				err error
			)
			if configKind(kind, args[0]) == kindWorker {
				r, err = checkWorker(cmd.Context(), args[0], document, &far)
			} else {
				r, err = checkNode(cmd.Context(), args[0], document)
			}
			if err != nil {
				return ownership.Explain(err, args[0])
			}
			return c.printChecked(r)
		},
	}
	far.addFlags(cmd.Flags())
	cli.AddChoice(cmd.Flags(), &kind, "kind", "", "whose configuration it is, node or worker (default: by its keys)",
		kindNode, kindWorker)
	cmd.Flags().BoolVar(&document, "document", false, "look at the document only, not at what it names")
	cmd.Flags().StringVar(&as, "user", "", "look at it as this user, which only root may (default: as "+serviceUser+
		" for root, if there is one)")
	return cmd
}

// The kinds of configurations.
const (
	kindNode   = "node"
	kindWorker = "worker"
)

// configKind returns the kind of a configuration file: the given kind, or the kind of the daemon that knows more of the
// document's keys. A file that cannot be read counts as a node's, whose reader then reports the error.
func configKind(given, path string) string {
	if given != "" {
		return given
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return kindNode
	}
	n, w := node.DefaultConfig(), worker.DefaultConfig()
	if len(strictyaml.Unknown(b, &w)) < len(strictyaml.Unknown(b, &n)) {
		return kindWorker
	}
	return kindNode
}

// checkNode checks a storage node's configuration.
func checkNode(ctx context.Context, path string, document bool) (configChecked, error) {
	conf, err := node.ReadConfig(path)
	if err != nil {
		return configChecked{}, err
	}
	r := configChecked{
		File: path, Kind: kindNode, Name: conf.Name, Listen: conf.Listen, Control: append([]string{}, conf.Control...),
		Drives: []string{}, TLS: conf.TLS != node.TLSConfig{}, User: currentUser(), Findings: []node.Finding{},
	}
	for _, d := range conf.Drives {
		r.Drives = append(r.Drives, d.Name)
	}
	if !document {
		r.Findings = append(r.Findings, conf.Examine(ctx, time.Now())...)
	}
	return r, nil
}

// checkWorker checks the configuration of a worker without data. Without a control plane in it, worker run takes the
// context's, or the one of this machine.
func checkWorker(ctx context.Context, path string, document bool, far *sourceFlags) (configChecked, error) {
	conf, err := worker.ReadConfig(path)
	if err != nil {
		return configChecked{}, err
	}
	control := append([]string{}, conf.Control...)
	if len(control) == 0 {
		conf.Control = []string{defaultControl}
	}
	if err := conf.Check(); err != nil {
		return configChecked{}, fmt.Errorf("%w %s: %w", worker.ErrConfig, path, err)
	}
	r := configChecked{
		File: path, Kind: kindWorker, Name: conf.Name, Listen: conf.Listen, Control: control, Drives: []string{},
		TLS: conf.TLS != node.TLSConfig{}, User: currentUser(), Findings: []node.Finding{},
	}
	if conf.Drive != "" {
		r.Drives = append(r.Drives, conf.Drive)
	}
	if document {
		return r, nil
	}
	stores, err := far.stores(true)
	if err != nil {
		return r, err
	}
	stores.Retry.Attempts = 1
	r.Findings = append(r.Findings, conf.Examine(ctx, stores, time.Now())...)
	return r, nil
}

// printChecked prints findings; problems make an error.
func (c configCommands) printChecked(r configChecked) error {
	problems := 0
	for _, f := range r.Findings {
		if f.Level == node.Problem {
			problems++
		}
	}
	err := c.Print(r, func(w io.Writer) {
		for _, f := range r.Findings {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Level, f.Part, cli.OneLine(f.Says))
		}
		if problems == 0 {
			fmt.Fprintf(w, "%s: %s %s, %s, looked at as %s: fine\n", r.File, r.Kind, r.Name,
				quantity.Of(len(r.Drives), "drive"), r.User)
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
		Args:    cli.ExactArgs("KIND"),
		RunE: func(_ *cobra.Command, args []string) error {
			var b []byte
			switch args[0] {
			case kindNode:
				b = node.PrintDefaults()
			case kindWorker:
				b = worker.PrintDefaults()
			default:
				return cli.Usagef("%q: want node or worker: those are the daemons with a configuration file", args[0])
			}
			var v map[string]any
			if err := yaml.Unmarshal(b, &v); err != nil {
				return err
			}
			return c.Print(v, func(w io.Writer) { _, _ = w.Write(b) })
		},
	}
}
