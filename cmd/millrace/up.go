package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/host/site"
	"github.com/millrace/millrace/internal/quantity"
)

// upFlags are the flags of up.
type upFlags struct {
	dir, control, node, context string
	size                        int64
	detach, systemd             bool
}

// systemSite is the folder of the site that systemd runs.
const systemSite = "/var/lib/millrace-up"

// siteCommands are the commands that run a small cluster on this machine.
type siteCommands struct{ *console }

func (c siteCommands) up() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "A control plane and a storage node with a drive on this machine, ready to use",
		Long: `Makes what a small cluster on this machine needs, and runs it: an authority and certificates, a drive, a
control plane, a storage node, and the context by which every command and the Python package find
them without a flag; beside it a context whose certificate is a training launcher's. It runs until it
is interrupted; with --detach it goes on in the background, and with --systemd (as root) systemd runs
it, also after the machine is started again. millrace down ends it.

It may be run again at any time: what is there stays as it is, what is missing is made, what does not
run is started. It touches nothing that it did not make: a folder, a context or a unit of the same
name that is something else is an error.

Everything lies in one folder, --dir, by default ~/.local/share/millrace (or millrace in
XDG_DATA_HOME; with --systemd ` + systemSite + `). The drive's file is sparse: it takes the room of
what is on it.`,
		Example: "  millrace up --detach\n  millrace up --dir /data/millrace --drive-size 500GiB\n" +
			"  millrace up --systemd",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runUp(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "dir", "", "folder of everything that is made (default: ~/.local/share/millrace)")
	fl.StringVar(&f.control, "listen", "", "HOST:PORT of the control plane; port 0 picks one and keeps it (default "+
		site.DefaultControl+")")
	fl.StringVar(&f.node, "node-listen", "", "HOST:PORT of the storage node; port 0 picks one and keeps it (default "+
		site.DefaultNode+")")
	fl.Var(quantity.BytesFlag[int64]{To: &f.size}, "drive-size", "capacity of the drive, as 500GiB (default 16GiB)")
	fl.StringVar(&f.context, "context", "", "name of the context that is made, and made the current one; that of "+
		"launchers is NAME-launcher (default "+site.DefaultContext+")")
	fl.BoolVar(&f.detach, "detach", false, "return when it is ready, and let it go on in the background")
	cli.AddNativeTiming(fl, cli.ServiceTiming)
	fl.BoolVar(&f.systemd, "systemd", false, "have systemd run it; wants root")
	return cmd
}

// options returns the site that the flags describe.
func (f *upFlags) options() (o site.Options, err error) {
	o = site.Options{Dir: f.dir, Control: f.control, Node: f.node, Context: f.context, DriveSize: f.size,
		Version: buildVersion().Version}
	if f.detach && f.systemd {
		return o, cli.Usagef("--detach and --systemd do not go together: systemd runs it in the background")
	}
	for flag, addr := range map[string]string{"--listen": f.control, "--node-listen": f.node} {
		if err := site.CheckAddress(addr); addr != "" && err != nil {
			return o, cli.Usagef("%s: %w", flag, err)
		}
	}
	if f.context != "" {
		if err := contexts.CheckName(f.context); err != nil {
			return o, cli.Usagef("--context: %w", err)
		}
	}
	if o.Dir == "" {
		if o.Dir, err = siteDir(f.systemd); err != nil {
			return o, err
		}
	}
	if o.Contexts, err = contexts.Path(os.Getenv); err != nil {
		return o, err
	}
	o.Program, err = os.Executable()
	return o, err
}

// siteDir returns the folder of a site when no flag names it.
func siteDir(systemd bool) (string, error) {
	if systemd {
		return systemSite, nil
	}
	return site.DefaultDir(os.Getenv)
}

// upView is what up and down print.
type upView struct {
	Dir     string      `json:"dir"`
	Control string      `json:"control"`
	Node    string      `json:"node"`
	Context string      `json:"context"`
	Steps   []site.Step `json:"steps"`
}

// printSteps prints the steps that were done.
func printSteps(w io.Writer, steps []site.Step) {
	for _, s := range steps {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Did, s.What, s.Note)
	}
}

// printUp prints that the site is ready.
func (c siteCommands) printUp(s *site.Site) error {
	return c.Print(upView{s.Dir(), s.ControlURL(), s.NodeURL(), s.Context(), s.Steps}, func(w io.Writer) {
		printSteps(w, s.Steps)
		fmt.Fprintf(w,
			"\nready: try millrace nodes list, millrace dataset place FILE.parquet, millrace train --pipeline "+
				"PIPELINE.yaml; millrace down ends it\n")
	})
}

func (c siteCommands) runUp(ctx context.Context, f upFlags) (err error) {
	o, err := f.options()
	if err != nil {
		return err
	}
	var sd site.Systemd
	if f.systemd {
		if sd, err = systemd(); err != nil {
			return err
		}
	}
	s, err := site.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.Managed() && !f.systemd {
		return fmt.Errorf("systemd runs the site in %s: say millrace up --systemd, or millrace down first", s.Dir())
	}
	if err := s.Make(ctx); err != nil {
		return err
	}
	switch {
	case f.systemd:
		err = s.Install(ctx, sd)
	case f.detach:
		err = s.Start(ctx)
	default:
		log := io.Discard
		if c.Progress != "none" {
			log = c.Err
		}
		var printed error
		err = s.Attend(ctx, log, func() { printed = c.printUp(s) })
		return errors.Join(err, printed)
	}
	if err != nil {
		return err
	}
	return c.printUp(s)
}

// systemd returns how units are installed, or why they cannot be.
func systemd() (site.Systemd, error) {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return site.Systemd{},
			errors.New("--systemd: " +
				"systemd does not run here: leave the flag out (millrace up --detach goes on in the background)")
	}
	if os.Geteuid() != 0 {
		return site.Systemd{},
			errors.New("--systemd: " +
				"only root may install units: use sudo, or leave the flag out (millrace up --detach goes on in the " +
				"background)")
	}
	return site.Systemd{Units: "/etc/systemd/system", Call: systemctl}, nil
}

// systemctl calls systemctl.
func systemctl(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, cli.OneLine(string(out)))
	}
	return nil
}

func (c siteCommands) down() *cobra.Command {
	var (
		dir   string
		purge bool
	)
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End what millrace up made",
		Long: `Ends the control plane and the storage node that millrace up runs, in the foreground of another
terminal, in the background or under systemd, and takes the context away. A process is ended only if
it is the one that up started: its id, the time at which it began and its command are compared. The
node first lets running splits end.

Data, certificates and configuration stay, and millrace up goes on with them. With --purge they are
removed: the drive and all that was placed on it, too.`,
		Example: "  millrace down\n  millrace down --purge",
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) (err error) {
			s, looked, err := findSite(dir)
			if errors.Is(err, os.ErrNotExist) {
				return c.Print(upView{Dir: looked, Steps: []site.Step{}}, func(w io.Writer) {
					fmt.Fprintf(w, "there is nothing in %s: millrace up makes it\n", looked)
				})
			}
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			var sd site.Systemd
			if s.Managed() {
				if sd, err = systemd(); err != nil {
					return err
				}
			}
			if err := s.Down(sd); err != nil {
				return err
			}
			if purge {
				if err := s.Purge(); err != nil {
					return err
				}
			}
			return c.Print(upView{s.Dir(), s.ControlURL(), s.NodeURL(), s.Context(), s.Steps}, func(w io.Writer) {
				printSteps(w, s.Steps)
				if !purge {
					fmt.Fprintf(w,
						"\ndata stays in %s: millrace up goes on with it, millrace down --purge removes it\n", s.Dir())
				}
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "",
		"folder that millrace up made (default: ~/.local/share/millrace; of root, else "+systemSite+")")
	cmd.Flags().BoolVar(&purge, "purge", false, "remove data, certificates and configuration, too")
	return cmd
}

// findSite finds what millrace up made in a folder, or in the folders where it makes it by default. looked is the
// folder in which it looked first.
func findSite(dir string) (s *site.Site, looked string, err error) {
	looked = dir
	if dir == "" {
		if looked, err = site.DefaultDir(os.Getenv); err != nil {
			return nil, "", err
		}
	}
	s, err = site.Find(site.Options{Dir: looked})
	if dir == "" && errors.Is(err, os.ErrNotExist) && os.Geteuid() == 0 {
		s, err = site.Find(site.Options{Dir: systemSite})
	}
	return s, looked, err
}
