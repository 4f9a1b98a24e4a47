package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/trainmgr/control/fleet"
	"github.com/millrace/millrace/trainmgr/remote"
)

// nodesCommands are the commands about the storage nodes that a control plane knows.
type nodesCommands struct{ *console }

func (c nodesCommands) command() *cobra.Command {
	return group("nodes", "The storage nodes that a control plane knows", c.list(), c.show(), c.drain())
}

// nodeView is a node as commands print it.
type nodeView struct {
	Name       string      `json:"name"`
	State      string      `json:"state"`
	URLs       []string    `json:"urls"`
	Version    string      `json:"version"`
	Started    string      `json:"incarnation"`
	LastSeen   float64     `json:"last_seen_seconds"`
	ClockSkew  float64     `json:"clock_skew_seconds"`
	Partitions int         `json:"partitions"`
	Jobs       []string    `json:"jobs"`
	Batches    int64       `json:"buffered_mini_batches"`
	Bytes      int64       `json:"buffered_bytes"`
	Drives     []driveView `json:"per_drive"`
}

type driveView struct {
	Name       string   `json:"name"`
	UUID       string   `json:"uuid"` // of the drive; its regions have it in common
	Region     uint32   `json:"region"`
	Regions    uint32   `json:"regions"` // of the drive; 0: it does not compute
	State      string   `json:"state"`
	Computes   bool     `json:"computes"`
	Threads    int32    `json:"engine_threads"`
	Streams    int32    `json:"streams"`
	Running    int32    `json:"splits_running"`
	Busy       float64  `json:"busy_ratio"`
	Partitions []string `json:"partition_names"`
	Image      string   `json:"image"`
	Free       int64    `json:"free_bytes"`
	Reach      string   `json:"reach"`       // held: the partitions that it holds; any: it holds none
	ComputesOn string   `json:"computes_on"` // drive, cpu or card
	Failures   uint64   `json:"source_failures"`
	Failed     string   `json:"source_error"`
	Leases     uint64   `json:"leases_failed"` // of a worker of reach any, since the present leader leads
	SetAside   string   `json:"set_aside"`     // why no split is given to the worker now; empty: splits are
	Aside      float64  `json:"set_aside_seconds"`
}

// holds describes what a node holds, for a table: a worker without data holds nothing and makes splits of every
// partition.
func (v *nodeView) holds() string {
	for _, d := range v.Drives {
		if d.Reach != apiv1.ReachAny {
			return fmt.Sprint(v.Partitions)
		}
	}
	if len(v.Drives) == 0 {
		return fmt.Sprint(v.Partitions)
	}
	return "worker, reach any"
}

// formatRegion returns which region of its drive this is, for a table.
func (d *driveView) formatRegion() string {
	if d.Regions < 2 {
		return dash("")
	}
	return fmt.Sprintf("%d of %d", d.Region, d.Regions)
}

// shortImage returns the part of an image's id that image list shows.
func shortImage(id string) string { return id[:min(len(id), 16)] }

func viewNode(r *apiv1.NodeRecord) nodeView {
	s := r.GetStatus()
	v := nodeView{
		Name: s.GetName(), State: r.State, URLs: s.GetUrls(), Version: s.GetVersion(), Started: s.GetIncarnation(),
		LastSeen: r.LastSeenSeconds, ClockSkew: r.ClockSkewSeconds,
		Partitions: len(s.GetPartitions()), Jobs: s.GetJobs(), Batches: s.GetBufferedBatches(),
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
		v.Drives = append(v.Drives, driveView{
			Name: d.Name, UUID: d.Uuid, Region: d.Region, Regions: d.Regions, State: d.State, Computes: d.Computes,
			Threads: d.Threads, Streams: d.Streams, Running: d.Running,
			Busy: d.Busy / float64(max(d.Threads, 1)), Partitions: names, Image: d.Image, Free: d.FreeBytes,
			Reach: cmp.Or(d.Reach, apiv1.ReachHeld), ComputesOn: fleet.ComputesOn(d), Failures: d.SourceFailures,
			Failed: d.SourceError, Leases: trouble.GetFailures(), SetAside: trouble.GetSetAside(),
			Aside: trouble.GetSetAsideSeconds(),
		})
	}
	return v
}

// heldBack returns how many workers of a node are set aside.
func (v *nodeView) heldBack() (n int) {
	for _, d := range v.Drives {
		if d.SetAside != "" {
			n++
		}
	}
	return n
}

// formatState returns a node's state, and how many of its workers are set aside, for a table.
func (v *nodeView) formatState() string {
	if n := v.heldBack(); n > 0 {
		return fmt.Sprintf("%s, %d of %d workers set aside", v.State, n, len(v.Drives))
	}
	return v.State
}

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
		Args:    noArgs,
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
			return c.print(views, func(w io.Writer) {
				fmt.Fprintf(w, "node\tstate\tdrives\tpartitions\tsplits running\tlast seen\tclock ahead\tat\n")
				for _, v := range views {
					splits := int32(0)
					for _, d := range v.Drives {
						splits += d.Running
					}
					fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%.1f s ago\t%.1f s\t%s\n", v.Name, v.formatState(),
						len(v.Drives), v.holds(), splits, v.LastSeen, v.ClockSkew, strings.Join(v.URLs, ", "))
				}
			})
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
		Args:    exactArgs("NODE"),
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
			return c.print(v, func(w io.Writer) {
				fmt.Fprintf(w,
					"node\t%s\nstate\t%s\nat\t%s\nversion\t%s\nlast seen\t%.1f s ago\nclock ahead\t%.1f s\n"+
						"buffered\t%s, %d bytes\npartitions\t%d\n\n",
					v.Name, v.State, strings.Join(v.URLs, ", "), v.Version, v.LastSeen, v.ClockSkew,
					quantity.Of(v.Batches, "mini-batch"), v.Bytes, v.Partitions)
				fmt.Fprintf(w, "drive\tstate\treach\tthreads\tstreams\tsplits running\tbusy\tpartitions\tfree bytes\t"+
					"image\tregion\tuuid\n")
				for i := range v.Drives {
					d := &v.Drives[i]
					fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%.0f%%\t%d\t%d\t%s\t%s\t%s\n", d.Name, d.State, d.Reach,
						d.Threads, d.Streams, d.Running, 100*d.Busy, len(d.Partitions), d.Free,
						dash(shortImage(d.Image)), d.formatRegion(), d.UUID)
				}
				for _, d := range v.Drives {
					if d.Failures > 0 {
						fmt.Fprintf(w, "\n%s could not read partitions %d times, the last time: %s\n", d.Name,
							d.Failures, oneLine(d.Failed))
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
		Args:    exactArgs("NODE"),
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "let splits come again")
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		leases, err := client.Drain(ctx, args[0], !undo)
		if err != nil {
			return err
		}
		result := struct {
			Node   string `json:"node"`
			Drains bool   `json:"drains"`
			Leases int    `json:"leases_out"`
		}{args[0], !undo, leases}
		return c.print(result, func(w io.Writer) {
			if undo {
				fmt.Fprintf(w, "node %s takes splits again\n", args[0])
				return
			}
			fmt.Fprintf(w, "node %s drains; leases still out\t%d\n", args[0], leases)
		})
	})
}
