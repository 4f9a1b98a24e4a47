package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
	"github.com/millrace/millrace/trainmgr/control/record"
	"github.com/millrace/millrace/trainmgr/remote"
	"github.com/millrace/millrace/trainmgr/remote/summaries"
)

// clusterFlags are the flags of a pass over the data of a cluster.
type clusterFlags struct {
	addressFlags
	partitions []string
	placement  string
	work       string
	disk       string
	put        bool
}

// addFlags adds the flags of every pass. other is the work folder if --work is not given.
func (p *clusterFlags) addFlags(cmd *cobra.Command, other string) {
	const when = "for data of a cluster: "
	p.addressFlags.addFlags(cmd, when)
	f := cmd.Flags()
	f.StringSliceVar(&p.partitions, "partitions", nil,
		when+"patterns of partitions' names, with * and ? (default: all)")
	f.StringVar(&p.placement, "placement", string(record.PlacementAuto), when+placementUsage())
	f.StringVar(&p.work, "work", "", when+"folder that keeps what was taken until the file is written, so that the "+
		"same command goes on from it (default: "+other+")")
}

// addPassFlags adds the flags of a pass that ends in a vocabulary.
func (p *clusterFlags) addPassFlags(cmd *cobra.Command) {
	const when = "for data of a cluster: "
	f := cmd.Flags()
	f.StringVar(&p.disk, "disk", "", when+"bound of that folder's bytes, as 200GiB (default: what its disk has)")
	f.BoolVar(&p.put, "put", false, when+"put the file to the control plane, too, for jobs that are submitted within "+
		"minutes")
}

// isCluster reports whether the data are those of a cluster, and refuses flags that contradict each other: if --control
// or --context is given, or if no data of this machine are named and the environment or a context names a control
// plane. in are the data of this machine that are named.
func (p *clusterFlags) isCluster(cmd *cobra.Command, in []string) (bool, error) {
	if len(p.control) == 0 && p.context == "" {
		here := len(in) > 0 || cmd.Flags().Changed("drive")
		if !here {
			t, err := p.target()
			if err != nil {
				return false, err
			}
			here = len(t.Control) == 0
		}
		if here {
			return false, refuseUnused(cmd, modeOfFlags(cmd), clusterUses)
		}
	}
	if len(in) > 0 {
		return true, cli.Usagef("--in names data of this machine: with --control or --context name partitions of the " +
			"cluster with --partitions")
	}
	if !slices.Contains(record.Placements(), p.placement) {
		return true, cli.Usagef("--placement %q: want one of %s", p.placement, strings.Join(record.Placements(), ", "))
	}
	return true, refuseUnused(cmd, onService, hereUses)
}

// takenFromCluster is what is printed, too, about a pass over a cluster's data.
type takenFromCluster struct {
	Job           string `json:"job"`
	ResumedRows   int64  `json:"resumed_rows"`   // of the rows: that earlier calls of the command took
	MiniBatches   int    `json:"mini_batches"`   // that this call took
	ReceivedBytes int64  `json:"received_bytes"` // of tensors in them
}

// table writes the result for people.
func (v *takenFromCluster) table(w io.Writer) {
	fmt.Fprintf(w, "job\t%s\ntaken\t%s, %d bytes of tensors\n", v.Job, quantity.Of(v.MiniBatches, "mini-batch"),
		v.ReceivedBytes)
	if v.ResumedRows > 0 {
		fmt.Fprintf(w, "kept from before\t%s\n", quantity.Of(v.ResumedRows, "row"))
	}
}

// builtInCluster is what is printed, too, about a vocabulary of a cluster's data.
type builtInCluster struct {
	takenFromCluster
	Put bool `json:"put"` // the control plane has the file
}

// table writes the result for people.
func (v *builtInCluster) table(w io.Writer) {
	v.takenFromCluster.table(w)
	if v.Put {
		fmt.Fprintf(w, "put\tto the control plane: jobs that name the file find it there\n")
	}
}

// dial connects to the control plane of the flags.
func (p *clusterFlags) dial() (*remote.Client, error) {
	to, err := p.target()
	if err != nil {
		return nil, err
	}
	client, err := remote.Dial(remote.Options{Control: to.Control, Identity: to.Identity, Contact: contactTime})
	if errors.Is(err, remote.ErrOptions) {
		return nil, cli.WrongUsage(err)
	}
	return client, err
}

// clusterPass makes the pass of build and extend over the data of a cluster.
func (c vocabularyCommands) clusterPass(cmd *cobra.Command, p *passFlags, spec *pipeline.Spec, extend string) (
	err error,
) {
	pass := summaries.Vocabulary{Pipeline: spec, Path: p.out, Replace: p.replace, Extend: extend,
		Partitions: p.cluster.partitions, Exclude: p.in.far.names.Exclude, Placement: p.cluster.placement,
		Work: p.cluster.work}
	if pass.Work == "" {
		pass.Work = p.out + ".work"
	}
	if pass.Name, err = theVocabulary(spec, p.name); err != nil {
		return err
	}
	for _, size := range []struct {
		flag, text string
		bytes      *int64
	}{{"memory", p.memory, &pass.Memory}, {"disk", p.cluster.disk, &pass.Disk}} {
		if size.text == "" {
			continue
		}
		if *size.bytes, err = quantity.Bytes(size.text); err != nil {
			return cli.Usagef("--%s: %w", size.flag, err)
		}
	}
	if pass.QueueBytes, err = parseQueue(p.queue); err != nil {
		return err
	}
	client, err := p.cluster.dial()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	begin := time.Now()
	made, err := c.runClusterPass(cmd, &pass, client)
	if err != nil {
		return err
	}
	v := viewBuilt(pass.Path, made.Built, made.Columns, made.Rules, made.Rows, time.Since(begin))
	v.RowsPerSecond = float64(made.Rows-made.Resumed) / v.ElapsedSeconds
	v.builtInCluster = &builtInCluster{takenFromCluster: takenFromCluster{Job: made.JobName, ResumedRows: made.Resumed,
		MiniBatches: made.MiniBatches, ReceivedBytes: made.ReceivedBytes}}
	if p.cluster.put {
		if err := client.PutVocabulary(cmd.Context(), pass.Path); err != nil {
			return fmt.Errorf("the vocabulary was written, and was not put to the control plane: %w", err)
		}
		v.Put = true
	}
	return c.Print(v, v.table)
}

// runClusterPass makes a pass over the data of a cluster with progress.
func (c *console) runClusterPass(
	cmd *cobra.Command, pass *summaries.Vocabulary, client *remote.Client,
) (*summaries.Report, error) {
	var shown *progress
	pass.Started = func(rows, taken int64) {
		if taken > 0 {
			c.Announce(fmt.Sprintf("kept in %s: %d of %s", pass.Work, taken, quantity.Of(rows, "row")))
		}
		shown = c.newProgress("vocabulary "+pass.Name, "rows", rows-taken)
	}
	pass.Progress = func(p vocabulary.Progress) { addVocabularyProgress(shown, p) }
	made, err := pass.Run(cmd.Context(), client)
	if shown != nil {
		shown.finish()
	}
	err = nameWork(err)
	if room := (*summaries.RoomError)(nil); errors.As(err, &room) && room.Bound {
		return nil, fmt.Errorf("%w (here: --disk SIZE, or less --memory)", err)
	}
	return made, err
}

// nameWork adds the flag to errors about the work folder.
func nameWork(err error) error {
	var other *summaries.OtherPassError
	if errors.As(err, &other) || errors.Is(err, summaries.ErrInUse) {
		return fmt.Errorf("%w (here: --work OTHER)", err)
	}
	return err
}
