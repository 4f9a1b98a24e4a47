package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/inspection"
	"github.com/millrace/millrace/sdk"
)

// inspectFlags are the flags that say how a drive is reached: this command opens it, or the storage node that has it
// open answers for it.
type inspectFlags struct {
	remoteFlags
	node string
}

// inspectHelp is the part of a command's help that explains inspectFlags.
const inspectHelp = `

A drive that a storage node serves is asked through the node: by its URI on the node's machine,
where the node is found by itself; as NODE/DRIVE, through the control plane; or, with --node, by its
name on the node at that address.`

func (f *inspectFlags) addFlags(cmd *cobra.Command) {
	f.remoteFlags.addFlags(cmd)
	cmd.Flags().StringVar(&f.node, "node", "",
		"address of the storage node that has the drive: https://HOST:PORT, http://HOST:PORT or unix:PATH; the drive "+
			"is then named as the node names it")
	cmd.Long += inspectHelp
}

// inspectDrive asks a drive, opening it or through the process that has it open.
func (c *console) inspectDrive(ctx context.Context, f *inspectFlags, arg string, kind inspection.Kind) (any, error) {
	_, uriError := sdk.ParseURI(arg)
	node, drive, ref := strings.Cut(arg, "/")
	switch {
	case f.node != "":
		t, err := f.target()
		if err != nil {
			return nil, err
		}
		if uriError == nil {
			return nil,
				cli.Usagef("with --node the drive is named as the node names it, as d0: millrace nodes show lists them; "+
					"%s is a URI", arg)
		}
		return inspection.Ask(ctx, t.Identity, []string{f.node}, arg, kind)
	case uriError == nil:
		return f.openOrAsk(ctx, c.warnings(), arg, kind)
	case ref && node != "" && drive != "" && !strings.Contains(arg, ":"):
		return f.askControlPlane(ctx, node, drive, kind)
	}
	return nil, cli.WrongUsage(fmt.Errorf("%w; or name a drive of a storage node as NODE/DRIVE", uriError))
}

// openOrAsk opens a drive by its URI, or asks the process that has it open.
func (f *inspectFlags) openOrAsk(ctx context.Context, log *slog.Logger, uri string,
	kind inspection.Kind) (answer any, err error) {
	err = withDrive(ctx, uri, log, func(dev *sdk.Device) error {
		answer, err = inspection.Read(ctx, kind, dev, nil)
		return err
	})
	var busy *csd.BusyError
	if !errors.As(err, &busy) || busy.Owner == nil || len(busy.Owner.URLs) == 0 {
		return answer, err
	}
	o := busy.Owner
	if served := o.URLs[0]; strings.HasPrefix(served, "tcp:") { // drive serve: it admits further hosts
		if derr := withDrive(ctx, served, log, func(dev *sdk.Device) error {
			answer, err = inspection.Read(ctx, kind, dev, nil)
			return err
		}); derr != nil {
			return nil, fmt.Errorf("%s is served by process %d: %w", uri, o.Process, derr)
		}
		return answer, nil
	}
	t, err := f.target()
	if err != nil {
		return nil, err
	}
	answer, err = inspection.Ask(ctx, t.Identity, o.URLs, o.Drive, kind)
	if err != nil {
		return nil, fmt.Errorf("%s is open in %s (process %d), which does not answer: %w", uri, o.Name, o.Process, err)
	}
	return answer, nil
}

// askControlPlane asks the control plane for the node's address, and then the node.
func (f *inspectFlags) askControlPlane(ctx context.Context, node, drive string,
	kind inspection.Kind) (answer any, err error) {
	client, err := f.dial()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	records, err := client.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if s := r.GetStatus(); s.GetName() == node {
			return inspection.Ask(ctx, f.identity, s.GetUrls(), drive, kind)
		}
	}
	return nil, fmt.Errorf("no node %q is known: millrace nodes list", node)
}
