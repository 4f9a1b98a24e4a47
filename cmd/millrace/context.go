package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/terminal"
)

// contextCommands are the commands of contexts, which name control planes.
type contextCommands struct{ *console }

func (c contextCommands) command() *cobra.Command {
	return cli.Group("context", "Control planes by name: address and certificate in one word", c.list(),
		c.use(), c.show(), c.add(), c.remove())
}

// contextView is a context as it is printed.
type contextView struct {
	mark    string   `table:""` // a star marks the current context
	Name    string   `json:"name" table:"context"`
	Current bool     `json:"current"`
	Control []string `json:"control" table:"control plane"`
	Cert    string   `json:"cert" table:"certificate"`
	Key     string   `json:"key"`
	CA      string   `json:"ca"`
}

func viewContext(name, current string, x contexts.Context) contextView {
	return contextView{
		Name: name, Current: name == current, Control: append([]string{}, x.Control...), Cert: x.Cert, Key: x.Key,
		CA: x.CA, mark: map[bool]string{true: "*"}[name == current],
	}
}

// readContexts reads the user's file.
func readContexts() (*contexts.File, error) {
	path, err := contexts.Path(os.Getenv)
	if err != nil {
		return nil, err
	}
	return contexts.Read(path)
}

// changeContexts changes the user's file.
func changeContexts(change func(*contexts.File) error) error {
	path, err := contexts.Path(os.Getenv)
	if err != nil {
		return err
	}
	err = contexts.Update(path, change)
	if errors.Is(err, contexts.ErrUnknown) {
		return cli.WrongUsage(err)
	}
	return err
}

// completeContexts completes names of contexts in a shell.
func completeContexts(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
	f, err := readContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, n := range f.Names() {
		if strings.HasPrefix(n, begin) {
			names = append(names, n)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeContext completes the argument of commands that take one name.
func completeContext(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeContexts(cmd, args, begin)
}

func (c contextCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List contexts; a star marks the one that is used when none is named",
		Long: `Lists the contexts of ~/.config/millrace/contexts.yaml (or, where XDG_CONFIG_HOME is set,
millrace/contexts.yaml there). A context names the members of a control plane and the certificate,
key and authority with which they are asked. Commands and the Python package take, part by part:
flags first, then the environment (MILLRACE_CONTROL, MILLRACE_CERT, MILLRACE_KEY, MILLRACE_CA), then
a context: that of --context, else that of MILLRACE_CONTEXT, else the current one. A context that
--context names goes before the environment.

The file is JSON, which YAML contains, so that the Python package reads it with the standard library
alone.`,
		Example: "  millrace context list",
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f, err := readContexts()
			if err != nil {
				return err
			}
			views := []contextView{}
			for _, n := range f.Names() {
				views = append(views, viewContext(n, f.Current, f.Contexts[n]))
			}
			return c.Print(views, func(w io.Writer) {
				if len(views) == 0 {
					fmt.Fprintln(w, "no context is known: millrace up makes one, and so does millrace context add")
					return
				}
				terminal.Rows(w, views)
			})
		},
	}
}

func (c contextCommands) use() *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Make a context the one that is used when none is named",
		Example:           "  millrace context use local",
		Args:              cli.ExactArgs("NAME"),
		ValidArgsFunction: completeContext,
		RunE: func(_ *cobra.Command, args []string) error {
			err := changeContexts(func(f *contexts.File) error {
				if _, err := f.Find(args[0]); err != nil {
					return err
				}
				f.Current = args[0]
				return nil
			})
			if err != nil {
				return err
			}
			return c.printContext(args[0])
		},
	}
}

// printContext prints one context.
func (c contextCommands) printContext(name string) error {
	f, err := readContexts()
	if err != nil {
		return err
	}
	x, err := f.Find(name)
	if err != nil {
		return cli.WrongUsage(err)
	}
	v := viewContext(name, f.Current, x)
	return c.Print(v, func(w io.Writer) {
		fmt.Fprintf(w, "context\t%s%s\ncontrol plane\t%s\ncertificate\t%s\nkey\t%s\nauthority\t%s\n",
			v.Name, map[bool]string{true: " (current)"}[v.Current], strings.Join(v.Control, ", "), dash(v.Cert),
			dash(v.Key), dash(v.CA))
	})
}

// usedView is the address and the certificate that a command without flags uses.
type usedView struct {
	Control     []string `json:"control"`
	ControlFrom string   `json:"control_from"`
	Cert        string   `json:"cert"`
	Key         string   `json:"key"`
	CertFrom    string   `json:"cert_from"`
	CA          string   `json:"ca"`
	CAFrom      string   `json:"ca_from"`
}

func (c contextCommands) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show a context; without a name, what commands would use now, and from where each part is",
		Long: `Shows a context. Without a name it shows the address and the files that a command would use now that
has none of the flags, and from where each is: a variable of the environment, or a context.`,
		Example: "  millrace context show\n  millrace context show local",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("%s wants one NAME or none, got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction: completeContext,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return c.printContext(args[0])
			}
			t, err := new(addressFlags).target()
			if err != nil {
				return err
			}
			v := usedView{
				append([]string{}, t.Control...), t.ControlFrom, t.Identity.Cert, t.Identity.Key, t.CertFrom,
				t.Identity.CA, t.CAFrom,
			}
			if len(v.Control) == 0 {
				v.Control, v.ControlFrom = []string{defaultControl}, "nothing names one: this is the default"
			}
			return c.Print(v, func(w io.Writer) {
				fmt.Fprintf(w, "control plane\t%s\t%s\n", strings.Join(v.Control, ", "), dash(v.ControlFrom))
				fmt.Fprintf(w, "certificate\t%s\t%s\nkey\t%s\t%s\nauthority\t%s\t%s\n", dash(v.Cert), dash(v.CertFrom),
					dash(v.Key), dash(v.CertFrom), dash(v.CA), dash(v.CAFrom))
			})
		},
	}
}

func (c contextCommands) add() *cobra.Command {
	var (
		x            contexts.Context
		use, replace bool
	)
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a context",
		Long: `Adds a context, and makes it the current one if it is the first, or with --use. The files are read
once, so that what is wrong with them is said now; nobody is called. contexts.yaml is for its owner
alone; it names the files, it does not hold them.`,
		Example: "  millrace context add prod --control https://control-0.example.net:7460 --control " +
			"https://control-1.example.net:7460 " +
			"--cert ann.pem --key ann.key --ca ca.pem --use\n" +
			"  millrace context add local --control unix:/run/millrace/control.sock",
		Args: cli.ExactArgs("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[0]
			if err := contexts.CheckName(name); err != nil {
				return cli.WrongUsage(err)
			}
			for _, p := range []*string{&x.Cert, &x.Key, &x.CA} {
				if *p == "" {
					continue
				}
				abs, err := filepath.Abs(*p)
				if err != nil {
					return err
				}
				*p = abs
			}
			if err := x.Check(); err != nil {
				return cli.WrongUsage(fmt.Errorf("context %s: %w (--control, --cert, --key, --ca)", name, err))
			}
			client, err := identity.HTTPClientOf(x.Identity(), identity.AcceptControl)
			if err != nil {
				return fmt.Errorf("context %s: %w", name, err)
			}
			client.CloseIdleConnections()
			err = changeContexts(func(f *contexts.File) error {
				if have, ok := f.Contexts[name]; ok && !have.Equal(x) && !replace {
					return fmt.Errorf(
						"context %s says something else already (millrace context show %s): give --replace, or "+
							"another name", name, name)
				}
				f.Contexts[name] = x
				if use || f.Current == "" {
					f.Current = name
				}
				return nil
			})
			if err != nil {
				return err
			}
			return c.printContext(name)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&x.Control, "control", nil,
		"members of the control plane: https://HOST:PORT, http://HOST:PORT or unix:PATH")
	fl.StringVar(&x.Cert, "cert", "", "certificate (PEM) to show")
	fl.StringVar(&x.Key, "key", "", "its private key (PEM)")
	fl.StringVar(&x.CA, "ca", "", "authorities (PEM) whose certificates are trusted")
	fl.BoolVar(&use, "use", false, "make it the current context")
	fl.BoolVar(&replace, "replace", false, "replace a context of this name that says something else")
	return cmd
}

func (c contextCommands) remove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a context",
		Long: "Removes a context. The files that it names stay. If it was the current one, none is " +
			"until millrace context use names one.",
		Example:           "  millrace context remove prod",
		Args:              cli.ExactArgs("NAME"),
		ValidArgsFunction: completeContext,
		RunE: func(_ *cobra.Command, args []string) error {
			err := changeContexts(func(f *contexts.File) error {
				if _, err := f.Find(args[0]); err != nil {
					return err
				}
				delete(f.Contexts, args[0])
				if f.Current == args[0] {
					f.Current = ""
				}
				return nil
			})
			if err != nil {
				return err
			}
			return c.Print(map[string]string{"removed": args[0]}, func(w io.Writer) {
				fmt.Fprintf(w, "context %s is removed\n", args[0])
			})
		},
	}
}
