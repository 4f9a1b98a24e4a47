package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/steadyrate"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/remote"
)

const (
	// partitionsOfData keeps both streams of every drive busy until shortly before the end of an epoch.
	partitionsOfData = 8
	// epochs of a job over real nodes: more than any cell takes.
	epochs = 1 << 20
)

// data is the files that lie on the drive of every real node.
type data struct {
	dir   string
	files []workload.File
}

// generate writes the files of the real nodes' drives: Criteo's columns, every feature present.
func (o *Options) generate(ctx context.Context, dir string) (*data, error) {
	d := &data{dir: dir}
	if o.DriveRows < 0 {
		return d, nil
	}
	o.Progress("generate " + quantity.Of(o.DriveRows, "row"))
	m, err := workload.Find("rm1")
	if err != nil {
		return nil, err
	}
	d.files, err = workload.Generate(ctx, workload.Options{
		Model: m, Rows: o.DriveRows, Partitions: int(min(o.DriveRows, partitionsOfData)),
		Out: filepath.Join(dir, "data"), Coverage: 1,
	})
	return d, err
}

// agents measures a cell with real nodes, each of which has a drive with a copy of the data. The raw connections are
// those of the stand-ins' cell.
func (o *Options) agents(ctx context.Context, ceiling Wire, d *data) (_ *Wire, err error) {
	t, nodes := ceiling.Transport, ceiling.Nodes
	o.Progress(fmt.Sprintf("%s, %d nodes", t, nodes))
	c, err := cluster.Start(ctx, o.program(), t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for i := range nodes {
		folder, err := os.MkdirTemp(d.dir, "drive")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		uri, err := workload.MakeDrive(ctx, filepath.Join(folder, "flash"), d.files, nil)
		if err != nil {
			return nil, err
		}
		node := cluster.NodeOptions{Name: fmt.Sprintf("n%d", i), Drive: uri, Threads: o.Threads,
			Measure: min(o.Time, host.DefaultMeasureTime)}
		if _, err := c.StartNode(ctx, node); err != nil {
			return nil, err
		}
	}
	if err := c.AwaitNodes(ctx, nodes); err != nil {
		return nil, err
	}
	w := ceiling
	w.Kind = Agent
	if err := o.takeFrom(ctx, c, &w); err != nil {
		return nil, err
	}
	w.Ceiling = w.BytesPerSecond / ceiling.BytesPerSecond
	return &w, nil
}

// takeFrom has a trainer take mini-batches until their rate is known.
func (o *Options) takeFrom(ctx context.Context, c *cluster.Cluster, w *Wire) error {
	var (
		begin time.Time
		meter *steadyrate.Sampler
	)
	counters := func() []int64 { return []int64{int64(processors.Time()), int64(c.NodeTime())} }
	spec := &apiv1.JobSpec{Pipeline: document(o.Rows), Plan: &apiv1.PlanOptions{}, Epochs: epochs}
	err := c.Take(ctx, spec, remote.AttachOptions{}, func(mb *tensor.MiniBatch) (bool, error) {
		if meter == nil { // the clock starts with the first mini-batch, after the preparation of the job
			begin, meter = time.Now(), steadyrate.NewSampler(steadyrate.New(o.Time, 1), counters)
			return true, nil
		}
		return meter.Add(time.Since(begin), mb.Bytes()), nil
	})
	if err != nil {
		return err
	}
	if meter == nil || meter.Rate().Count == 0 {
		return errors.New("nothing was delivered")
	}
	r := meter.Rate()
	gb, growth := float64(r.Count)/1e9, meter.Growth()
	w.BytesPerSecond, w.Spread, w.Settled = r.PerSecond, r.Spread, r.Settled
	w.NodeCPUPerGB = float64(growth[1]) / 1e9 / gb
	w.CPUSecondsPerGB = float64(growth[0])/1e9/gb + w.NodeCPUPerGB
	w.Ratio = w.BytesPerSecond / w.RawPerSecond
	return nil
}
