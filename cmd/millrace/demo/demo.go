// Package demo runs the main job on one machine, from nothing: it generates RM1, puts the partitions on two file:
// drives, and feeds a stand-in trainer from them.
//
// It uses only parts that a user would use: the generator, drives by URI, tar volumes, and a job over local drives.
// The trainer is a stand-in, and the report says so.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/standin"
)

// Options configure the demo. The zero value works.
type Options struct {
	// folder for data and drives, which must be absent or empty; "" means a temporary folder that is removed at the end
	Dir           string
	Rows          int64         // 0 means 3,145,728
	Drives        int           // 0 means 2
	Partitions    int           // 0 means two a drive
	RowsPerSecond float64       // The stand-in trainer takes them; 0 means 5,000,000.
	SLM           int64         // bytes of each drive's memory; 0 means its default
	Epochs        int           // 0 means 1
	Measure       time.Duration // T and each drive's P are measured for this time; 0 means 1 s.
	// Say is called with each step; Generated, Stored and Trained are called with the progress in rows, bytes and rows.
	// All may be nil.
	Say       func(string)
	Generated func(done, total int64)
	Stored    func(done, total int64)
	Trained   func(done, total int64)
}

func (o Options) withDefaults() Options {
	if o.Rows == 0 {
		o.Rows = 3_145_728
	}
	if o.Drives == 0 {
		o.Drives = 2
	}
	if o.Partitions == 0 {
		o.Partitions = 2 * o.Drives
	}
	if o.RowsPerSecond == 0 {
		o.RowsPerSecond = 5_000_000
	}
	if o.Epochs == 0 {
		o.Epochs = 1
	}
	if o.Measure == 0 {
		o.Measure = time.Second
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	for _, f := range []*func(int64, int64){&o.Generated, &o.Stored, &o.Trained} {
		if *f == nil {
			*f = func(int64, int64) {}
		}
	}
	return o
}

// Run runs the demo and returns the job's report.
func Run(ctx context.Context, o Options) (report *trainmgr.Report, err error) {
	o = o.withDefaults()
	dir := o.Dir
	if dir != "" {
		if err := empty(dir); err != nil {
			return nil, err
		}
	} else {
		temporary, err2 := scratch.Make("", "millrace-demo-")
		if err2 != nil {
			return nil, err2
		}
		defer func() { err = errors.Join(err, temporary.Close()) }()
		dir = temporary.Path
	}
	m, err := workload.Find("rm1")
	if err != nil {
		return nil, err
	}
	o.Say(fmt.Sprintf("1. generate RM1 (PreSto, Table I): %s in %s", quantity.Of(o.Rows, "row"),
		quantity.Of(o.Partitions, "Parquet partition")))
	files, err := workload.Generate(ctx, workload.Options{Model: m, Rows: o.Rows, Out: filepath.Join(dir, "rm1"),
		Partitions: o.Partitions, RowGroupRows: 65_536, Codec: "snappy", Progress: o.Generated})
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	o.Say(fmt.Sprintf("2. create %d drives (file:, NVMe in process) and put the partitions on them", o.Drives))
	uris, err := store(ctx, o, dir, files)
	if err != nil {
		return nil, err
	}
	o.Say(fmt.Sprintf("3. measure T of a stand-in trainer of %.0f rows/s and P of each drive, and allocate T/P drives",
		o.RowsPerSecond))
	return train(ctx, o, uris)
}

// empty refuses a folder that holds something: the demo writes over nothing.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s holds %s: name an empty folder, or one that does not exist", dir, entries[0].Name())
	}
	return err
}

// store puts the partitions on drives, in turn, and returns the drives' URIs.
func store(ctx context.Context, o Options, dir string, files []workload.File) ([]string, error) {
	shares := make([][]workload.File, o.Drives)
	var total int64
	for i, f := range files {
		shares[i%o.Drives] = append(shares[i%o.Drives], f)
		total += f.Bytes
	}
	var uris []string
	var done int64
	for d, share := range shares {
		uri, err := workload.MakeDrive(ctx, filepath.Join(dir, fmt.Sprintf("drive%d.flash", d)), share, func(n int64) {
			done += n
			o.Stored(done, total)
		})
		if err != nil {
			return nil, err
		}
		if o.SLM > 0 {
			uri += fmt.Sprintf("?slm=%dB", o.SLM)
		}
		uris = append(uris, uri)
	}
	return uris, nil
}

// train runs the job.
func train(ctx context.Context, o Options, uris []string) (report *trainmgr.Report, err error) {
	spec, err := pipeline.Named("rm1")
	if err != nil {
		return nil, err
	}
	trainer, err := standin.New(o.RowsPerSecond)
	if err != nil {
		return nil, err
	}
	dummy, err := standin.New(o.RowsPerSecond)
	if err != nil {
		return nil, err
	}
	manager, err := local.Open(ctx, local.Config{Drives: uris, Manager: host.Options{MeasureTime: o.Measure}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	job, err := trainmgr.Submit(ctx, manager, trainmgr.Options{
		Pipeline: spec, Epochs: o.Epochs, Ranks: []trainmgr.Step{{Run: dummy.Step}},
		Throughput: trainmgr.ThroughputOptions{Time: o.Measure},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	a := job.Allocation()
	o.Say(fmt.Sprintf("   T %.0f rows/s; %s", a.RowsPerSecond, a.Note))
	o.Say(fmt.Sprintf("4. train: %v", job.Plan()))
	total := job.Plan().Rows() * int64(o.Epochs)
	var done int64
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			return nil, err
		}
		if err := trainer.Step(ctx, mb); err != nil {
			return nil, err
		}
		done += int64(mb.Rows)
		o.Trained(done, total)
	}
	return job.Report(ctx)
}
