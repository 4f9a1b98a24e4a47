package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/control/fleet"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/trainmgr/remote"
)

// nodesCommands are the commands about the storage nodes that a control plane knows.
type nodesCommands struct{ *console }

func (c nodesCommands) command() *cobra.Command {
	return cli.Group("nodes", "The storage nodes that a control plane knows", c.list(), c.show(), c.drain())
}

// nodeView is a node as commands print it.
type nodeView struct {
	Name       string      `json:"name" table:"node"`
	State      string      `json:"state"`
	state      string      `table:"state"`
	Drives     []driveView `json:"per_drive" table:"drives|%d"`
	Partitions int         `json:"partitions"`
	holds      string      `table:"partitions"`
	splits     string      `table:"splits running"`
	LastSeen   float64     `json:"last_seen_seconds" table:"last seen|%.1f s ago"`
	ClockSkew  float64     `json:"clock_skew_seconds" table:"clock ahead|%.1f s"`
	URLs       []string    `json:"urls" table:"at"`
	Version    string      `json:"version"`
	Started    string      `json:"incarnation"`
	Jobs       []string    `json:"jobs"`
	Fragments  int64       `json:"buffered_fragments"` // A whole mini-batch is one.
	Bytes      int64       `json:"buffered_bytes"`
}

type driveView struct {
	Name       string   `json:"name" table:"drive"`
	State      string   `json:"state" table:"state"`
	Reach      string   `json:"reach" table:"reach"` // held: the partitions that it holds; any: it holds none
	Threads    int32    `json:"engine_threads" table:"threads"`
	Streams    int32    `json:"streams" table:"streams"`
	Running    int32    `json:"splits_running" table:"splits running"`
	Busy       float64  `json:"busy_ratio" table:"busy|%.0f%%"`
	Partitions []string `json:"partition_names" table:"partitions|%d"`
	Free       int64    `json:"free_bytes" table:"free bytes"`
	Image      string   `json:"image"`
	image      string   `table:"image"`
	Region     uint32   `json:"region"`
	Regions    uint32   `json:"regions"` // 0: the drive does not compute
	region     string   `table:"region"`
	UUID       string   `json:"uuid" table:"uuid"` // The regions of a drive have it in common.
	Computes   bool     `json:"compute"`
	ComputesOn string   `json:"compute_location"` // drive, cpu or card
	Failures   uint64   `json:"source_failures"`
	Failed     string   `json:"source_error"`
	Leases     uint64   `json:"leases_failed"`     // counted since the leader leads, for reach any
	SetAside   string   `json:"suspension_reason"` // why no split is given to the worker now; empty: splits are
	Aside      float64  `json:"suspension_seconds"`
}

// describe sets what the table of nodes says. A worker without data holds nothing and makes splits of every partition.
func (v *nodeView) describe() {
	setAside, reachAny, splits := 0, len(v.Drives) > 0, int32(0)
	for i := range v.Drives {
		d := &v.Drives[i]
		splits += d.Running
		reachAny = reachAny && d.Reach == apiv1.ReachAny
		if d.SetAside != "" {
			setAside++
		}
	}
	v.state, v.holds, v.splits = v.State, strconv.Itoa(v.Partitions), fmt.Sprint(splits)
	if setAside > 0 {
		v.state += fmt.Sprintf(", %d of %d workers set aside", setAside, len(v.Drives))
	}
	if reachAny {
		v.holds = "worker, reach any"
	}
}

func viewNode(r *apiv1.NodeRecord) nodeView {
	s := r.GetStatus()
	v := nodeView{
		Name: s.GetName(), State: r.State, URLs: s.GetUrls(), Version: s.GetVersion(), Started: s.GetIncarnation(),
		LastSeen: r.LastSeenSeconds, ClockSkew: r.ClockSkewSeconds,
		Partitions: len(s.GetPartitions()), Jobs: s.GetJobs(), Fragments: s.GetBufferedBatches(),
		Bytes: s.GetBufferedBytes(), Drives: []driveView{},
	}
	if v.URLs == nil {
		v.URLs = []string{}
	}
	if v.Jobs == nil {
		v.Jobs = []string{}
	}
	troubles := map[string]*apiv1.WorkerTrouble{}
	for _, t := range r.GetTroubles() {
		troubles[t.GetDrive()] = t
	}
	for _, d := range s.GetDrives() {
		trouble := troubles[d.Name]
		names := d.Partitions
		if names == nil {
			names = []string{}
		}
		region := ""
		if d.Regions > 1 {
			region = fmt.Sprintf("%d of %d", d.Region, d.Regions)
		}
		v.Drives = append(v.Drives, driveView{
			Name: d.Name, UUID: d.Uuid, Region: d.Region, Regions: d.Regions, State: d.State, Computes: d.Computes,
			Threads: d.Threads, Streams: d.Streams, Running: d.Running,
			Busy: d.Busy / float64(max(d.Threads, 1)), Partitions: names, Image: d.Image, Free: d.FreeBytes,
			Reach: cmp.Or(d.Reach, apiv1.ReachHeld), ComputesOn: fleet.ComputesOn(d), Failures: d.SourceFailures,
			Failed: d.SourceError, Leases: trouble.GetFailures(), SetAside: trouble.GetSetAside(),
			Aside: trouble.GetSetAsideSeconds(), image: d.Image[:min(len(d.Image), shortImage)], region: region,
		})
	}
	v.describe()
	return v
}

// shortImage is the length of the part of an image's id that tables show.
const shortImage = 16

// printTrouble prints what went wrong with a worker of any reach.
func (d *driveView) printTrouble(w io.Writer) {
	if d.Leases > 0 {
		fmt.Fprintf(w, "\nworker %s\t%d leases failed on it\n", d.Name, d.Leases)
	}
	if d.SetAside != "" {
		fmt.Fprintf(w, "for %.0f s\t%s\n", d.Aside, d.SetAside)
	}
}

func (c nodesCommands) list() *cobra.Command {
	var (
		f     remoteFlags
		watch bool
	)
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List storage nodes and how they are",
		Long:    "Lists every node that the control plane knows: ready, draining, silent, dead, or refused and why.",
		Example: "  millrace nodes list --control https://control-0:7460 --watch",
		Args:    cli.NoArgs,
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print again every second until it is interrupted")
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, _ []string) error {
		return c.printRepeatedly(ctx, watch, func(c *console) error {
			records, err := client.Nodes(ctx)
			if err != nil {
				return err
			}
			views := make([]nodeView, len(records))
			for i, r := range records {
				views[i] = viewNode(r)
			}
			return printRows(c, views)
		})
	})
}

func (c nodesCommands) show() *cobra.Command {
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "show NODE",
		Short: "Show a storage node, its drives and what they hold",
		Long: `Shows what a node said of itself with its last heartbeat: its version, and of each drive its state,
what it holds, the bytes that are free and the image that it runs. Regions of one drive have its uuid
in common: they hold the same, and their free bytes are the same bytes. What else a drive tells is
asked with millrace drive info, smart and ls and millrace image list, which take NODE/DRIVE.`,
		Example: "  millrace nodes show node0 --output json",
		Args:    cli.ExactArgs("NODE"),
	}
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		records, err := client.Nodes(ctx)
		if err != nil {
			return err
		}
		for _, r := range records {
			if r.GetStatus().GetName() != args[0] {
				continue
			}
			v := viewNode(r)
			return c.Print(v, func(w io.Writer) {
				fmt.Fprintf(w,
					"node\t%s\nstate\t%s\nat\t%s\nversion\t%s\nlast seen\t%.1f s ago\nclock ahead\t%.1f s\n"+
						"buffered\t%s, %d bytes\npartitions\t%d\n\n",
					v.Name, v.State, strings.Join(v.URLs, ", "), v.Version, v.LastSeen, v.ClockSkew,
					quantity.Of(v.Fragments, "fragment"), v.Bytes, v.Partitions)
				terminal.Rows(w, v.Drives)
				for _, d := range v.Drives {
					if d.Failures > 0 {
						fmt.Fprintf(w, "\n%s could not read partitions %d times, the last time: %s\n", d.Name,
							d.Failures, cli.OneLine(d.Failed))
					}
				}
				for _, d := range v.Drives {
					d.printTrouble(w)
				}
			})
		}
		return fmt.Errorf("no node %q is known: millrace nodes list", args[0])
	})
}

func (c nodesCommands) drain() *cobra.Command {
	var (
		f    remoteFlags
		undo bool
	)
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Keep new splits away from a storage node",
		Long: `New splits keep away from the node; those that run end. A node that is drained may be stopped
without anybody waiting for it. A node that is gone for good and drained is not missed: what it
alone held is not part of jobs that are submitted from then on.`,
		Example: "  millrace nodes drain node0\n  millrace nodes drain node0 --undo",
		Args:    cli.ExactArgs("NODE"),
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "let splits come again")
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		leases, err := client.Drain(ctx, args[0], !undo)
		if err != nil {
			return err
		}
		result := struct {
			Node   string `json:"node"`
			Drains bool   `json:"draining"`
			Leases int    `json:"outstanding_leases"`
		}{args[0], !undo, leases}
		return c.Print(result, func(w io.Writer) {
			if undo {
				fmt.Fprintf(w, "node %s takes splits again\n", args[0])
				return
			}
			fmt.Fprintf(w, "node %s drains; leases still out\t%d\n", args[0], leases)
		})
	})
}
