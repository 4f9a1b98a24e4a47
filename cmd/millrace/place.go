package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/placement"
	"github.com/millrace/millrace/host/placement/cluster"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/trainmgr/remote"
)

// copyResult is a copy of a partition, and what became of it.
type copyResult struct {
	Partition string `json:"partition" table:"partition"`
	Bytes     int64  `json:"bytes" table:"bytes"`
	Rows      int64  `json:"rows" table:"rows"`
	From      string `json:"source" table:"from"` // NODE/DRIVE, or the file
	To        string `json:"destination" table:"to"`
	Done      bool   `json:"copied"`
	Error     string `json:"error"`
	state     string `table:"state"`
}

// openCluster asks the control plane for the nodes and the wanted copies, and opens the nodes.
func (f *remoteFlags) openCluster(ctx context.Context, client *remote.Client) (*cluster.Cluster, error) {
	records, err := client.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	wanted, err := client.Copies(ctx)
	if err != nil {
		return nil, err
	}
	return cluster.Open(records, wanted, f.identity)
}

func (f *remoteFlags) withCluster(ctx context.Context, client *remote.Client, do func(*cluster.Cluster) error) error {
	c, err := f.openCluster(ctx, client)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// awaitListing waits until the control plane lists copies that were made, so that the next command finds them.
func (f *remoteFlags) awaitListing(ctx context.Context, client *remote.Client, copies []placement.Copy) error {
	if len(copies) == 0 {
		return nil
	}
	return cluster.Await(ctx, f.patience, func() (again bool, err error) {
		c, err := f.openCluster(ctx, client)
		if err != nil {
			return false, err
		}
		defer c.Close()
		if !c.Lists(copies) {
			return true,
				errors.New(
					"the copies are made, and the control plane does not list all of them yet: see millrace dataset " +
						"verify")
		}
		return false, nil
	})
}

// placementCommands are the commands that decide on which drives of a cluster the copies of partitions lie.
type placementCommands struct{ *console }

// makeCopies makes copies and prints the result of each; with dry it only prints the copies that it would make.
func (c placementCommands) makeCopies(ctx context.Context, on *cluster.Cluster, copies []placement.Copy, dry bool,
	files map[string]source.Location, format cluster.Format) error {
	views := make([]copyResult, len(copies))
	index := map[placement.Copy]int{}
	for i, k := range copies {
		from := k.From.String()
		if k.From == (placement.Ref{}) {
			from = files[k.Partition.Name].String()
		}
		views[i] = copyResult{
			Partition: k.Partition.Name, Bytes: k.Partition.Bytes, Rows: k.Partition.Rows, From: from,
			To: k.To.String(), state: map[bool]string{true: "not made", false: "failed"}[dry],
		}
		index[k] = i
	}
	var failed error
	if !dry {
		failed = on.Carry(ctx, copies, func(name string) (*cluster.File, error) {
			return cluster.OpenFile(ctx, files[name], name, format)
		}, func(k placement.Copy, err error) {
			v := &views[index[k]]
			if err != nil {
				v.Error = cli.OneLine(err.Error())
			} else {
				v.Done, v.state = true, "done"
			}
			c.Announce(fmt.Sprintf("%s to %s: %s", k.Partition.Name, k.To, v.state))
		})
	}
	return errors.Join(failed, printRows(c.console, views))
}

// matchPatterns returns a function that reports whether a name matches one of the patterns; nil without patterns.
func matchPatterns(patterns []string) (func(string) bool, error) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, cli.Usagef("pattern %q: %v", p, err)
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

func (c placementCommands) place() *cobra.Command {
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
		Long: `Puts Parquet files (or Criteo rows) on the drives of the nodes that a control plane knows: where
rows / P is least, the largest first, replicas on different nodes. Each node checks a file as it
comes in and reads it back from the drive before it counts. A file's partition has the name that
it has in preprocess, its path from the folder in which the data set begins (day=1/part-0.parquet; see
--root), after --prefix. A FILE may be a folder, a pattern, an https: URL, or s3://BUCKET/KEY with *, which
this command reads and sends on. The control plane keeps --replicas as the number of copies that the partition
is to have, by which dataset replicate, dataset verify and drive retire go. Putting the same file
again changes nothing, or makes the copies that are missing after a failure; another file of the
same name is an error. While nodes are starting the command waits for them, --patience at most.`,
		Example: "  millrace dataset place --prefix 2026-11-20/ --replicas 2 rm1/part-00000.parquet " +
			"rm1/part-00001.parquet\n  millrace dataset place --dry-run rm1/part-00000.parquet",
		Args: wantFiles,
	}
	fl := cmd.Flags()
	fl.StringVar(&prefix, "prefix", "", "put before each file's name, such as DAY/")
	fl.IntVar(&replicas, "replicas", 1,
		"drives that get each file; without the flag a file that is placed already keeps its number")
	fl.BoolVar(&dry, "dry-run", false, "tell what would be done")
	in.formatFlags(fl, "what the files are by name and content")
	rootFlag(fl, &in.root)
	in.far.addFlags(fl)
	changed := fl.Changed
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		if replicas < 1 {
			return cli.Usagef("--replicas %d: want 1 or more", replicas)
		}
		p := &placing{placementCommands: c, flags: &f, client: client, dry: dry}
		if changed("replicas") {
			p.replicas = replicas
		}
		if err := p.find(ctx, &in, prefix, args); err != nil {
			return err
		}
		return p.run(ctx)
	})
}

func (c placementCommands) replicate() *cobra.Command {
	var (
		f        remoteFlags
		replicas int
		dry      bool
	)
	cmd := &cobra.Command{
		Use:   "replicate [PATTERN...]",
		Short: "Copy partitions between storage nodes until each has its number of copies",
		Long: `Brings the partitions that match (all, without a pattern) to the number of copies that the control
plane keeps for them, on different nodes where there are enough. --replicas sets another number,
which is kept from then on; a lower one deletes nothing. --replicas 0 forgets partitions that nobody
wants any more, so that dataset verify does not miss them. Nodes copy from each other.`,
		Example: "  millrace dataset replicate\n  millrace dataset replicate --replicas 3 '2026-11-20/*'",
	}
	cmd.Flags().IntVar(&replicas, "replicas", 0, "copies of each partition (default: the number that is kept, or 2)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "tell what would be done")
	changed := cmd.Flags().Changed
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		match, err := matchPatterns(args)
		if err != nil {
			return err
		}
		if replicas < 0 {
			return cli.Usagef("--replicas %d: want 0 or more", replicas)
		}
		return f.withCluster(ctx, client, func(on *cluster.Cluster) error {
			if changed("replicas") && replicas == 0 {
				return c.forgetCopies(ctx, client, on, match, dry)
			}
			parts := on.Numbered(on.Partitions(match), replicas, func(string) int { return 2 })
			copies, err := placement.Replicate(on.Drives(), parts)
			if err != nil {
				return err
			}
			if !dry {
				if err := client.SetCopies(ctx, on.Want(parts)); err != nil {
					return err
				}
			}
			if err := c.makeCopies(ctx, on, copies, dry, nil, cluster.Format{}); err != nil || dry {
				return err
			}
			return f.awaitListing(ctx, client, copies)
		})
	})
}

// forgetCopies has the control plane set the number of copies of partitions to 0.
func (c placementCommands) forgetCopies(ctx context.Context, client *remote.Client, on *cluster.Cluster,
	match func(string) bool,
	dry bool) error {
	parts := append(on.Partitions(match), on.Gone(match)...)
	for i := range parts {
		parts[i].Copies = 0
		c.Announce(parts[i].Name + ": no copies are wanted any more; those that there are stay")
	}
	if dry {
		return nil
	}
	return client.SetCopies(ctx, on.Want(parts))
}

// verifyView is what dataset verify prints.
type verifyView struct {
	placement.Assessment
	Wanted []int     `json:"required_copies"` // the least and the most of any partition
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

func (c placementCommands) verify() *cobra.Command {
	var (
		f        remoteFlags
		replicas int
		deep     bool
	)
	cmd := &cobra.Command{
		Use:   "verify [PATTERN...]",
		Short: "Whether partitions have their copies, what they sustain, and with --deep whether every copy is whole",
		Long: `Counts the copies of the partitions that match (all, without a pattern), compares them with the
number that dataset place or dataset replicate had the control plane keep (1 where none did), and
says how many rows a second the drives can sustain over a whole epoch. A partition that was placed
and lies on no node that answers is named too. With --deep every node reads every copy and compares
its SHA-256 with the one kept since it was put there, and copies are compared with each other. The
exit status is 1 if copies are missing, if copies that should lie on different nodes lie on one, or
if copies differ.`,
		Example: "  millrace dataset verify --replicas 2\n" +
			"  millrace dataset verify --deep '2026-11-20/*' --output json",
	}
	cmd.Flags().IntVar(&replicas, "replicas", 0,
		"copies that each partition should have (default: the number that is kept)")
	cmd.Flags().BoolVar(&deep, "deep", false, "read every copy and compare checksums")
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		match, err := matchPatterns(args)
		if err != nil {
			return err
		}
		return f.withCluster(ctx, client, func(on *cluster.Cluster) error {
			parts := append(on.Partitions(match), on.Gone(match)...)
			parts = on.Numbered(parts, replicas, func(string) int { return 1 })
			report, err := placement.Check(on.Drives(), parts)
			if err != nil {
				return err
			}
			v := verifyView{Assessment: report, Wanted: copyBounds(parts), Copies: []sumView{}}
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
			if err := c.Print(v, func(w io.Writer) { v.table(w) }); err != nil {
				return err
			}
			return v.verdict()
		})
	})
}

// verifyCopies reads every copy of a partition.
func verifyCopies(ctx context.Context, on *cluster.Cluster, name string) []sumView {
	var list []sumView
	var first []byte
	for _, r := range on.Holders(name) {
		s, err := on.Verify(ctx, r, name)
		v := sumView{
			Partition: name, Drive: r.String(), Bytes: s.Bytes, SHA256: hex.EncodeToString(s.SHA256), Verdict: "good",
		}
		switch {
		case err != nil:
			v.Verdict = cli.OneLine(err.Error())
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
	wanted := "none"
	if len(v.Wanted) == 2 {
		wanted = fmt.Sprint(v.Wanted[0])
		if v.Wanted[0] != v.Wanted[1] {
			wanted = fmt.Sprintf("%d to %d", v.Wanted[0], v.Wanted[1])
		}
	}
	fmt.Fprintf(w, "partitions\t%d\nrows\t%d\nwanted copies\t%s\nfewest copies\t%d\n", v.Partitions, v.Rows, wanted,
		v.Fewest)
	if v.RowsPerSecond > 0 {
		fmt.Fprintf(w, "sustains\t%.0f rows/s; %s ends last\n", v.RowsPerSecond, v.Last)
	} else {
		fmt.Fprintf(w, "sustains\tnot known: P is measured when a job is submitted\n")
	}
	var short []string
	for _, s := range v.Short {
		short = append(short, fmt.Sprintf("%s (%d of %d)", s.Partition, s.Copies, s.Wanted))
	}
	fmt.Fprintf(w, "lack copies\t%s\non one node only\t%s\n", listSome(short), listSome(v.OneNode))
	for _, s := range v.Copies {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Partition, s.Drive, s.SHA256[:min(16, len(s.SHA256))], s.Verdict)
	}
}

// verdict returns an error if a placement lacks copies or has bad ones; the error says what to do.
func (v *verifyView) verdict() error {
	var list []string
	gone := 0
	for _, s := range v.Short {
		if s.Copies == 0 {
			gone++
		}
	}
	if short := len(v.Short) - gone; short > 0 {
		list = append(list, fmt.Sprintf("copies are missing of %s (millrace dataset replicate makes them)",
			quantity.Of(short, "partition")))
	}
	if gone > 0 {
		list = append(list, fmt.Sprintf("no node that answers has %s (bring the node back, or put the files again "+
			"with millrace dataset place)", quantity.Of(gone, "partition")))
	}
	if n := len(v.Spreadable); n > 0 {
		list = append(list, fmt.Sprintf("one node has all copies of %s (millrace dataset replicate brings one to "+
			"another)", quantity.Of(n, "partition")))
	}
	if v.Bad > 0 {
		list = append(list, fmt.Sprintf("bad copies: %d", v.Bad))
	}
	if len(list) == 0 {
		return nil
	}
	return errors.New(strings.Join(list, "; "))
}

// copyBounds returns the least and the most copies that partitions are to have; empty without partitions.
func copyBounds(parts []placement.Partition) []int {
	if len(parts) == 0 {
		return []int{}
	}
	s := []int{parts[0].Copies, parts[0].Copies}
	for _, p := range parts {
		s[0], s[1] = min(s[0], p.Copies), max(s[1], p.Copies)
	}
	return s
}

// listSome returns the first names of a list, and how many more there are.
func listSome(names []string) string {
	const most = 5
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// joinRefs lists the names of a drive's regions, or the name of a drive that has one.
func joinRefs(regions []placement.Ref) string {
	names := make([]string, len(regions))
	for i, r := range regions {
		names[i] = r.String()
	}
	return strings.Join(names, ", ")
}

// retirement is what drive retire is to do.
type retirement struct {
	drive    placement.Ref
	replicas int // copies elsewhere; 0: as many as are kept
	dry      bool
	wait     time.Duration // for splits that run
}

func (c placementCommands) retire() *cobra.Command {
	var (
		f remoteFlags
		r retirement
	)
	cmd := &cobra.Command{
		Use:   "retire NODE/DRIVE",
		Short: "Drain a drive of a storage node and copy elsewhere what it holds, so that it can be taken out",
		Long: `Lets the drive take no new splits, waits for those that run, and copies its partitions to other
drives until each has, without it, the number of copies that the control plane keeps for it (or as
many as it has now, where none is kept). Then the drive may be taken out of its node's
configuration. Running jobs go on with the copies. --replicas takes another number, this once; where
that is lower than the number that is kept, the command says so and its exit status is 1. Of a drive
whose regions are listed one by one, all regions are drained, whichever is named.`,
		Example: "  millrace drive retire node0/d3",
		Args:    cli.ExactArgs("NODE/DRIVE"),
	}
	cmd.Flags().IntVar(&r.replicas, "replicas", 0,
		"copies of each partition elsewhere (default: the number that is kept)")
	cmd.Flags().BoolVar(&r.dry, "dry-run", false, "tell what would be done")
	cmd.Flags().DurationVar(&r.wait, "wait", 5*time.Minute, "how long to wait for running splits")
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		var ok bool
		if r.drive.Node, r.drive.Drive, ok = strings.Cut(args[0], "/"); !ok || r.drive.Node == "" || r.drive.Drive == "" {
			return cli.Usagef("%q: want NODE/DRIVE", args[0])
		}
		if r.replicas < 0 {
			return cli.Usagef("--replicas %d: want 1 or more", r.replicas)
		}
		return f.withCluster(ctx, client, func(on *cluster.Cluster) error {
			return c.retireDrive(ctx, on, r, func(copies []placement.Copy) error { return f.awaitListing(ctx, client, copies) })
		})
	})
}

// retireDrive drains a drive, and copies elsewhere what it holds. await waits until the copies are listed.
func (c placementCommands) retireDrive(ctx context.Context, on *cluster.Cluster, o retirement,
	await func([]placement.Copy) error) error {
	regions, r := on.Regions(o.drive), on.Whole(o.drive)
	parts := on.Numbered(on.Partitions(nil), o.replicas, func(name string) int { return len(on.Holders(name)) })
	copies, err := placement.Retire(on.Drives(), parts, r)
	if err != nil {
		return err
	}
	if !o.dry {
		settle, cancel := context.WithTimeout(ctx, o.wait)
		err := on.Settle(settle, r)
		cancel()
		if err != nil {
			return err
		}
	}
	if err := c.makeCopies(ctx, on, copies, o.dry, nil, cluster.Format{}); err != nil {
		return fmt.Errorf("%w; the drive stays drained: try again", err)
	}
	if !o.dry {
		if err := await(copies); err != nil {
			return err
		}
		c.Announce(fmt.Sprintf("drive %s may be taken out of the configuration of node %s", joinRefs(regions), r.Node))
	}
	held := slices.DeleteFunc(parts, func(p placement.Partition) bool {
		return !slices.Contains(on.Holders(p.Name), r)
	})
	if n := on.Below(held); n > 0 {
		return fmt.Errorf("without drive %s copies are missing of %s, because --replicas %d is below the "+
			"number that is kept: millrace dataset replicate makes the others, or lowers that number "+
			"(--replicas)", r, quantity.Of(n, "partition"), o.replicas)
	}
	return nil
}
