package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/control/store"
	"github.com/millrace/millrace/trainmgr/remote"
)

func (c controlCommands) backup() *cobra.Command {
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Save everything that the control plane keeps",
		Long: `Saves everything that the control plane keeps, as of now, in a file: jobs and what of them is
acknowledged, nodes, the count of fences. It is taken while jobs run, and nothing waits for it. The
file is in etcd's snapshot format, ends with its checksum, appears whole or not at all, and replaces
none. It holds the key that seals tokens: keep it as you keep private keys. millrace control restore
makes a control plane of it.`,
		Example: "  millrace control backup control-2026-01-31.snapshot --control https://control-0:7460",
		Args:    cli.ExactArgs("FILE"),
	}
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		b, err := store.SaveBackup(args[0], func(w io.Writer) error {
			_, err := client.Backup(ctx, w)
			return err
		})
		if err != nil {
			return err
		}
		return c.Print(b, func(w io.Writer) {
			fmt.Fprintf(w, "backup\t%s\nbytes\t%d\nsha256\t%s\nrevision\t%d\njobs\t%d\nnodes\t%d\n", b.File, b.Bytes,
				b.SHA256, b.Revision, b.Jobs, b.Nodes)
		})
	})
}

func (c controlCommands) restore() *cobra.Command {
	var (
		o   store.RestoreOptions
		log logFlags
	)
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a new control plane of a backup",
		Long: `Makes the folder of a member of a new control plane from a backup. Start the member over it with
millrace control run and the same --data, --name and --peers. For several members run it for each,
with the same FILE, --peers and --revision; the first one prints the lines for the others.

The folder must hold no member, and appears whole or not at all. The new control plane counts on
from where the lost one cannot have been, so that storage nodes refuse leaders of before. What was
acknowledged after the backup comes again, except to launchers that have kept their tokens. Be sure
that no member of the lost control plane is left before the new one is started.`,
		Example: "  millrace control restore control.snapshot --data /var/lib/millrace-control\n" +
			"  millrace control restore control.snapshot --data d0 --name m0 --peers " +
			"m0=https://10.0.0.1:7461,m1=https://10.0.0.2:7461,m2=https://10.0.0.3:7461",
		Args: cli.ExactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if o.Data == "" {
				return cli.Usagef("--data is wanted: the folder in which the new member will keep what it must not forget")
			}
			if o.Revision < 0 {
				return cli.Usagef("--revision %d: want more than 0", o.Revision)
			}
			o.File, o.Logger = args[0], c.log(log)
			r, err := store.Restore(o)
			if err != nil {
				return err
			}
			return c.Print(r, func(w io.Writer) { printRestored(w, r, o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "folder of the new member, as of control run")
	f.StringVar(&o.Name, "name", "", "name of the new member among --peers")
	f.StringSliceVar(&o.Peers, "peers", nil,
		"NAME=URL of every member of the new control plane; none: one member alone")
	f.Int64Var(&o.Revision, "revision", 0,
		"where etcd goes on counting, the same for every member (default: above all that the lost one can have "+
			"reached, by the clock)")
	log.addFlags(cmd)
	return cmd
}

// printRestored prints what was restored, and the next command to run.
func printRestored(w io.Writer, r store.Restored, o store.RestoreOptions) {
	fmt.Fprintf(w,
		"restored\t%s\nfrom\t%s, %d bytes, revision %d\njobs\t%d\nnodes\t%d\ngoes on from revision\t%d\n"+
			"fences above\t%d\n\n",
		r.Data, r.File, r.Bytes, r.Backup.Revision, r.Jobs, r.Nodes, r.Revision, r.Fence)
	for _, peer := range o.Peers {
		name, _, _ := strings.Cut(peer, "=")
		if name != o.Name {
			fmt.Fprintf(w,
				"for member %s: millrace control restore %s --data FOLDER --name %s --peers %s --revision %d\n", name,
				r.File, name, strings.Join(o.Peers, ","), r.Revision)
		}
	}
	start := "millrace control run --data " + r.Data
	if len(o.Peers) > 0 {
		start += " --name " + o.Name + " --peers " + strings.Join(o.Peers, ",")
	}
	fmt.Fprintf(w, "then start it: %s ...\n", start)
}
