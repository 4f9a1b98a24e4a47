// Launcher shows the Go package that a training launcher uses on one machine: it opens Parquet files, submits a job,
// and trains on the job's mini-batches. Two drives in this process hold the files and do the preprocessing.
//
// It prints the schema that a model is built from, the mini-batches in the plan's order, and who preprocessed them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// impression is a row of the training data: was the item clicked, what did it cost, which item was it.
type impression struct {
	Clicked int32   `parquet:"clicked"`
	Price   float32 `parquet:"price"`
	Item    int64   `parquet:"item"`
}

// features is the pipeline: the logarithm of the price becomes a dense feature, the hash of the item a sparse one.
const features = `
name: clicks
batch: 200
label: {column: clicked}
dense:
  - columns: [price]
    ops: [log: {add: 1}]
sparse:
  - columns: [item]
    ops: [sigrid_hash: {salt: 0, max: 1000}]
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout) // an interrupt, too, ends it by its deferred calls: no folder stays
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "launcher-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	files, err := writeImpressions(folder, 500, 2)
	if err != nil {
		return err
	}
	spec, err := pipeline.Parse([]byte(features))
	if err != nil {
		return err
	}

	// Each of the two drives holds one file. A launcher that trains on storage nodes uses trainmgr/remote here instead.
	manager, err := local.Open(ctx, local.Config{
		Files:        source.ParseLocations(files...),
		Spread:       2,
		DriveOptions: host.DriveOptions{SLM: 64 << 20},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()

	// The train manager runs the step on dummy mini-batches to measure T, and lets T/P drives run.
	model := &clickRate{}
	job, err := trainmgr.Submit(ctx, manager, trainmgr.Options{
		Pipeline:   spec,
		Shuffle:    dataset.ShuffleNone,
		Order:      dataset.Deterministic,
		Ranks:      []trainmgr.Step{{Run: model.step, Snapshot: model.snapshot}},
		Throughput: trainmgr.ThroughputOptions{Time: 10 * time.Millisecond},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close()) }()

	schema := job.Schema()
	fmt.Fprintf(out, "dense %v, sparse %v, label %t\n", schema.Dense, schema.KeyNames(), schema.Label)
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			return err
		}
		if err := model.step(ctx, mb); err != nil {
			return err
		}
		fmt.Fprintf(out, "mini-batch %d: %d rows, click rate %.3f\n", mb.Name.Number, mb.Rows, model.rate())
	}
	report, err := job.Report(ctx)
	if err != nil {
		return err
	}
	for _, d := range report.PerDrive {
		fmt.Fprintf(out, "%d rows by the %s\n", d.Rows, d.Engine)
	}
	return nil
}

// clickRate is the simplest model: it learns the share of rows that were clicked.
type clickRate struct {
	rows   int
	clicks float32
}

// step trains on one mini-batch.
func (m *clickRate) step(_ context.Context, mb *tensor.MiniBatch) error {
	for _, clicked := range mb.Label {
		m.clicks += clicked
	}
	m.rows += mb.Rows
	return nil
}

// snapshot saves the model before T is measured, so that measuring does it no harm.
func (m *clickRate) snapshot() (restore func() error, err error) {
	saved := *m
	return func() error { *m = saved; return nil }, nil
}

func (m *clickRate) rate() float32 { return m.clicks / float32(m.rows) }

// writeImpressions writes files of rows each: every fourth row was clicked.
func writeImpressions(folder string, rows, files int) ([]string, error) {
	var paths []string
	for f := range files {
		list := make([]impression, rows)
		for i := range list {
			list[i] = impression{Price: float32(i % 50), Item: int64(f*rows + i)}
			if i%4 == 0 {
				list[i].Clicked = 1
			}
		}
		path := filepath.Join(folder, fmt.Sprintf("day-%d.parquet", f))
		if err := parquet.WriteFile(path, list); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
