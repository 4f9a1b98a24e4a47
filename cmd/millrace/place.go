package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/placement"
	"github.com/millrace/millrace/host/placement/cluster"
	"github.com/millrace/millrace/trainmgr/remote"
)

// copyView is a copy as it is printed.
type copyView struct {
	Partition string `json:"partition"`
	Bytes     int64  `json:"bytes"`
	Rows      int64  `json:"rows"`
	From      string `json:"from"` // NODE/DRIVE, or the file
	To        string `json:"to"`
	Done      bool   `json:"done"`
	Error     string `json:"error"`
}

// withCluster asks the control plane for the nodes and opens them.
func (f *remoteFlags) withCluster(ctx context.Context, client *remote.Client, do func(*cluster.Cluster) error) error {
	records, err := client.Nodes(ctx)
	if err != nil {
		return err
	}
	c, err := cluster.Open(records, f.identity)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// carry makes copies, or only tells them, and prints what became of each.
func (c *command) carry(ctx context.Context, on *cluster.Cluster, copies []placement.Copy, dry bool, files map[string]string, format cluster.Format) error {
	views := make([]copyView, len(copies))
	index := map[placement.Copy]int{}
	for i, k := range copies {
		from := k.From.String()
		if k.From == (placement.Ref{}) {
			from = files[k.Partition.Name]
		}
		views[i] = copyView{Partition: k.Partition.Name, Bytes: k.Partition.Bytes, Rows: k.Partition.Rows, From: from, To: k.To.String()}
		index[k] = i
	}
	var failed error
	if !dry {
		failed = on.Carry(ctx, copies, func(name string) (*cluster.File, error) {
			return cluster.OpenFile(ctx, files[name], name, format)
		}, func(k placement.Copy, err error) {
			v := &views[index[k]]
			v.Done = err == nil
			if err != nil {
				v.Error = oneLine(err.Error())
			}
			c.say(fmt.Sprintf("%s to %s: %s", k.Partition.Name, k.To, map[bool]string{true: "done", false: "failed"}[err == nil]))
		})
	}
	err := c.print(views, func(w io.Writer) {
		fmt.Fprintf(w, "partition\tbytes\trows\tfrom\tto\tstate\n")
		for _, v := range views {
			state := map[bool]string{true: "done", false: "failed"}[v.Done]
			if dry {
				state = "not made"
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\n", v.Partition, v.Bytes, v.Rows, v.From, v.To, state)
		}
	})
	return errors.Join(failed, err)
}

// matching makes a filter of patterns; none takes all.
func matching(patterns []string) (func(string) bool, error) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, usagef("pattern %q: %v", p, err)
		}
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	return func(name string) bool {
		for _, p := range patterns {
			if ok, _ := path.Match(p, name); ok {
				return true
			}
		}
		return false
	}, nil
}

func (c *command) datasetPlace() *cobra.Command {
	var (
		f        remoteFlags
		in       input
		prefix   string
		replicas int
		dry      bool
	)
	cmd := &cobra.Command{
		Use:   "place FILE...",
		Short: "Put files on the drives of storage nodes, spread so that the drives end together",
		Long: `Puts Parquet files (or Criteo rows) on the drives of the nodes that a control plane knows: where rows / P is least, the largest first,
replicas on different nodes. Each node checks a file as it comes in and reads it back from the drive before it counts. A file's partition is
called by its base name, after --prefix. Putting the same file again changes nothing.`,
		Example: "  millrace dataset place --prefix 2026-11-20/ --replicas 2 rm1/part-00000.parquet rm1/part-00001.parquet\n  millrace dataset place --dry-run rm1/part-00000.parquet",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s wants the files to place", cmd.CommandPath())
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&prefix, "prefix", "", "put before each file's base name, as DAY/")
	fl.IntVar(&replicas, "replicas", 1, "drives that get each file")
	fl.BoolVar(&dry, "dry-run", false, "tell what would be done")
	fl.StringVar(&in.format, "input-format", "parquet", "parquet, criteo-tsv or criteo-bin")
	fl.StringVar(&in.label, "label", "present", "criteo-tsv: present, or absent for the 39-field form")
	fl.StringVar(&in.malformed, "malformed", "fail", "criteo-tsv: what becomes of a malformed row: fail, drop or null")
	return c.asks(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		format, err := in.fileFormat()
		if err != nil {
			return err
		}
		if replicas < 1 {
			return usagef("--replicas %d: want 1 or more", replicas)
		}
		files := map[string]string{}
		var fresh []placement.Partition
		for _, file := range args {
			name := prefix + filepath.Base(file)
			if other, ok := files[name]; ok {
				return usagef("%s and %s would both be called %s: place them in turn with another --prefix", other, file, name)
			}
			p, err := cluster.OpenFile(ctx, file, name, format)
			if err != nil {
				return err
			}
			files[name] = file
			fresh = append(fresh, placement.Partition{Name: name, Bytes: p.Bytes, Rows: p.Rows})
			if err := p.Close(); err != nil {
				return err
			}
		}
		return f.withCluster(ctx, client, func(on *cluster.Cluster) error {
			copies, err := placement.Spread(on.Drives(), on.Partitions(nil), fresh, replicas)
			if err != nil {
				return err
			}
			return c.carry(ctx, on, copies, dry, files, format)
		})
	})
}

// fileFormat reads the flags that say what files are.
func (i *input) fileFormat() (cluster.Format, error) {
	var format cluster.Format
	switch i.format {
	case "parquet":
		format.Source = program.Parquet
	case "criteo-tsv":
		format.Source = program.CriteoTSV
	case "criteo-bin":
		format.Source = program.CriteoBinary
	default:
		return format, usagef("--input-format %q: want parquet, criteo-tsv or criteo-bin", i.format)
	}
	var err error
	format.Text, err = i.text()
	return format, err
}

func (c *command) datasetReplicate() *cobra.Command {
	var (
		f        remoteFlags
		replicas int
		dry      bool
	)
	cmd := &cobra.Command{
		Use:     "replicate [PATTERN...]",
		Short:   "Copy partitions between storage nodes until each has so many copies",
		Long:    "Brings the partitions that match (all, without a pattern) to --replicas copies, on different nodes where there are enough. Nodes copy from each other.",
		Example: "  millrace dataset replicate --replicas 2\n  millrace dataset replicate --replicas 3 '2026-11-20/*'",
	}
	cmd.Flags().IntVar(&replicas, "replicas", 2, "copies of each partition")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "tell what would be done")
	return c.asks(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		match, err := matching(args)
		if err != nil {
			return err
		}
		if replicas < 1 {
			return usagef("--replicas %d: want 1 or more", replicas)
		}
		return f.withCluster(ctx, client, func(on *cluster.Cluster) error {
			copies, err := placement.Replicate(on.Drives(), on.Partitions(match), replicas)
			if err != nil {
				return err
			}
			return c.carry(ctx, on, copies, dry, nil, cluster.Format{})
		})
	})
}

// verifyView is what dataset verify prints.
type verifyView struct {
	placement.Report
	Copies []sumView `json:"checked_copies"`
	Bad    int       `json:"bad_copies"`
}

type sumView struct {
	Partition string `json:"partition"`
	Drive     string `json:"drive"`
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256"`
	Verdict   string `json:"verdict"`
}

func (c *command) datasetVerify() *cobra.Command {
	var (
		f        remoteFlags
		replicas int
		deep     bool
	)
	cmd := &cobra.Command{
		Use:   "verify [PATTERN...]",
		Short: "Whether partitions have their copies, what they sustain, and with --deep whether every copy is whole",
		Long: `Counts the copies of the partitions that match (all, without a pattern), and says how many rows a second the drives can sustain over a whole epoch.
With --deep every node reads every copy and compares its SHA-256 with the one kept since it was put there, and copies are compared with
each other. The exit status is 1 if copies are missing or differ.`,
		Example: "  millrace dataset verify --replicas 2\n  millrace dataset verify --deep '2026-11-20/*' --output json",
	}
	cmd.Flags().IntVar(&replicas, "replicas", 1, "copies that each partition should have")
	cmd.Flags().BoolVar(&deep, "deep", false, "read every copy and compare checksums")
	return c.asks(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		match, err := matching(args)
		if err != nil {
			return err
		}
		return f.withCluster(ctx, client, func(on *cluster.Cluster) error {
			parts := on.Partitions(match)
			report, err := placement.Check(on.Drives(), parts, replicas)
			if err != nil {
				return err
			}
			v := verifyView{Report: report, Copies: []sumView{}}
			if deep {
				for _, p := range parts {
					list := verifyCopies(ctx, on, p.Name)
					for _, s := range list {
						if s.Verdict != "good" {
							v.Bad++
						}
					}
					v.Copies = append(v.Copies, list...)
				}
			}
			if err := c.print(v, func(w io.Writer) { v.table(w) }); err != nil {
				return err
			}
			if v.Bad > 0 || len(v.Short) > 0 {
				return fmt.Errorf("%d partitions lack copies, %d copies are bad", len(v.Short), v.Bad)
			}
			return nil
		})
	})
}

// verifyCopies reads every copy of a partition.
func verifyCopies(ctx context.Context, on *cluster.Cluster, name string) []sumView {
	var list []sumView
	var first []byte
	for _, r := range on.Holders(name) {
		s, err := on.Verify(ctx, r, name)
		v := sumView{Partition: name, Drive: r.String(), Bytes: s.Bytes, SHA256: hex.EncodeToString(s.SHA256), Verdict: "good"}
		switch {
		case err != nil:
			v.Verdict = oneLine(err.Error())
		case len(s.Kept) > 0 && !bytes.Equal(s.Kept, s.SHA256):
			v.Verdict = "changed since it was put there"
		case first != nil && !bytes.Equal(first, s.SHA256):
			v.Verdict = "differs from the first copy"
		case first == nil:
			first = s.SHA256
		}
		list = append(list, v)
	}
	return list
}

func (v *verifyView) table(w io.Writer) {
	fmt.Fprintf(w, "partitions\t%d\nrows\t%d\nfewest copies\t%d\n", v.Partitions, v.Rows, v.Fewest)
	if v.RowsPerSecond > 0 {
		fmt.Fprintf(w, "sustains\t%.0f rows/s; %s ends last\n", v.RowsPerSecond, v.Last)
	} else {
		fmt.Fprintf(w, "sustains\tnot known: P is measured when a job is submitted\n")
	}
	fmt.Fprintf(w, "lack copies\t%s\non one node only\t%s\n", someOf(v.Short), someOf(v.OneNode))
	for _, s := range v.Copies {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Partition, s.Drive, s.SHA256[:min(16, len(s.SHA256))], s.Verdict)
	}
}

// someOf shows names, not too many of them.
func someOf(names []string) string {
	const most = 5
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (c *command) driveRetire() *cobra.Command {
	var (
		f        remoteFlags
		replicas int
		dry      bool
		wait     time.Duration
	)
	cmd := &cobra.Command{
		Use:   "retire NODE/DRIVE",
		Short: "Drain a drive of a storage node and copy elsewhere what it holds, so that it can be taken out",
		Long: `Lets the drive take no new splits, waits for those that run, and copies its partitions to other drives until each has --replicas copies
without it. Then the drive may be taken out of its node's configuration. Running jobs go on with the copies.`,
		Example: "  millrace drive retire node0/d3 --replicas 2",
		Args:    exactArgs("NODE/DRIVE"),
	}
	cmd.Flags().IntVar(&replicas, "replicas", 1, "copies of each partition elsewhere")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "tell what would be done")
	cmd.Flags().DurationVar(&wait, "wait", 5*time.Minute, "how long to wait for running splits")
	return c.asks(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		var r placement.Ref
		var ok bool
		if r.Node, r.Drive, ok = strings.Cut(args[0], "/"); !ok || r.Node == "" || r.Drive == "" {
			return usagef("%q: want NODE/DRIVE", args[0])
		}
		return f.withCluster(ctx, client, func(on *cluster.Cluster) error {
			copies, err := placement.Retire(on.Drives(), on.Partitions(nil), r, replicas)
			if err != nil {
				return err
			}
			if !dry {
				settle, cancel := context.WithTimeout(ctx, wait)
				err := on.Settle(settle, r)
				cancel()
				if err != nil {
					return err
				}
			}
			if err := c.carry(ctx, on, copies, dry, nil, cluster.Format{}); err != nil {
				return fmt.Errorf("%w; the drive stays drained: try again", err)
			}
			if !dry {
				c.say(fmt.Sprintf("drive %s may be taken out of the configuration of node %s", r, r.Node))
			}
			return nil
		})
	})
}
