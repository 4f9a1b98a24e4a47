package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/remote"
)

// passFlags are the flags of a pass over data of this machine or of a cluster.
type passFlags struct {
	in       input
	pipeline string
	name     string // name is that of what the pass makes in the pipeline.
	queue    int64
	numbers  statisticsFlags
	modules  moduleFlags
	split    splitFlag
	cluster  clusterFlags
}

// addFlags adds the flags. other is the work folder if --work is not given.
func (p *passFlags) addFlags(cmd *cobra.Command, other string) {
	p.in.noTrainer = true
	p.in.addFlags(cmd)
	p.cluster.addFlags(cmd, other)
	f := cmd.Flags()
	p.numbers.addFlag(f)
	p.modules.addFlag(f)
	p.split.addFlag(f)
	p.addQueue(f)
}

func (p *passFlags) addQueue(f *pflag.FlagSet) {
	f.Var(quantity.BytesFlag[int64]{To: &p.queue}, "queue", "bound of the mini-batches that wait, as 256MiB")
}

// bind gives the pipeline its part of the rows, its modules and the numbers of its statistics.
func (p *passFlags) bind(spec *pipeline.Spec) (*pipeline.Spec, error) {
	spec, err := p.split.bind(spec, p.pipeline)
	if err != nil {
		return nil, err
	}
	if spec, err = p.modules.bind(spec, p.pipeline); err != nil {
		return nil, err
	}
	return p.numbers.bind(spec, p.pipeline)
}

// open opens the source of a pass that writes a file, and sets the options that follow from it.
func (p *passFlags) open(
	cmd *cobra.Command, o *passes.Options, out string, inCluster bool,
) (_ passes.Source, closeSource func() error, err error) {
	o.QueueBytes = p.queue
	if !inCluster {
		config, err := p.in.localConfig(cmd)
		if err != nil {
			return nil, nil, err
		}
		manager, err := local.Open(cmd.Context(), config)
		if err != nil {
			return nil, nil, err
		}
		return &local.PassSource{Storage: manager}, manager.Close, nil
	}
	if o.Work = p.cluster.work; o.Work == "" && out != "" {
		o.Work = out + ".work"
	}
	client, err := p.cluster.dial()
	if err != nil {
		return nil, nil, err
	}
	return &remote.PassSource{Client: client, Partitions: p.cluster.partitions, Exclude: p.in.far.names.Exclude,
		Placement: p.cluster.placement}, client.Close, nil
}

// showPass has a pass show its progress until finish is called.
func (c *console) showPass(o *passes.Options, name string) (finish func()) {
	var shown *progress
	o.Started = func(rows, taken int64) {
		if taken > 0 {
			c.Announce(fmt.Sprintf("kept in %s: %d of %s", o.Work, taken, quantity.Of(rows, "row")))
		}
		shown = c.newProgress(name, "rows", rows-taken)
	}
	o.Progress = func(p passes.Progress) {
		counts := []progressCount{{name: "splits", done: int64(p.Splits), total: int64(p.AllSplits)}}
		if p.Keys > 0 {
			counts = append(counts, progressCount{name: "keys", done: p.Keys})
		}
		shown.add(p.Rows, counts...)
	}
	return func() {
		if shown != nil {
			shown.finish()
		}
	}
}

// clusterFlags are the flags of a pass over the data of a cluster.
type clusterFlags struct {
	addressFlags
	partitions []string
	placement  string
	work       string
}

// forCluster begins the help of flags of passes over the data of a cluster.
const forCluster = "for data of a cluster: "

// addFlags adds the flags. other is the work folder if --work is not given.
func (p *clusterFlags) addFlags(cmd *cobra.Command, other string) {
	p.addressFlags.addFlags(cmd, forCluster)
	f := cmd.Flags()
	f.StringSliceVar(&p.partitions, "partitions", nil,
		forCluster+"patterns of partitions' names, with * and ? (default: all)")
	addPlacement(f, &p.placement, forCluster)
	f.StringVar(&p.work, "work", "", forCluster+"folder that keeps what was taken until the file is written, so that "+
		"the same command goes on from it (default: "+other+")")
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
	return true, refuseUnused(cmd, onService, hereUses)
}

// takenFromCluster is what is printed, too, about a pass over a cluster's data.
type takenFromCluster struct {
	Job           string `json:"job"`
	ResumedRows   int64  `json:"resumed_rows"`   // Earlier calls of the command took these.
	MiniBatches   int    `json:"mini_batches"`   // This call took these.
	ReceivedBytes int64  `json:"received_bytes"` // The tensors of this call had these bytes.
}

// viewTaken describes what a pass took.
func viewTaken(r *passes.Report) *takenFromCluster {
	return &takenFromCluster{Job: r.JobName, ResumedRows: r.Resumed, MiniBatches: r.MiniBatches,
		ReceivedBytes: r.ReceivedBytes}
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

// nameWork adds the flag to errors about the work folder.
func nameWork(err error) error {
	var other *passes.OtherPassError
	if errors.As(err, &other) || errors.Is(err, passes.ErrInUse) {
		return fmt.Errorf("%w (here: --work OTHER)", err)
	}
	if room := (*passes.RoomError)(nil); errors.As(err, &room) && room.Bound {
		return fmt.Errorf("%w (here: --disk SIZE, or less --memory)", err)
	}
	return err
}
