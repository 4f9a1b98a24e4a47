package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
)

// A manager over one drive, which is made of a file of this machine, makes the mini-batches of a job.
func ExampleManager() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	// Five rows in Criteo's format: a label, 13 integers and 26 categories.
	row := "1" + strings.Repeat("\t7", 13) + strings.Repeat("\t68fd1e64", 26) + "\n"
	path := filepath.Join(dir, "day0.tsv")
	if err := os.WriteFile(path, []byte(strings.Repeat(row, 5)), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	if err := makeMiniBatches(context.Background(), path); err != nil {
		fmt.Println(err)
	}
	// Output:
	// mini-batch 0: 2 rows
	// mini-batch 1: 2 rows
	// mini-batch 2: 1 rows
}

func makeMiniBatches(ctx context.Context, path string) (err error) {
	drive, err := host.OpenFiles(ctx, source.ParseLocations(path), host.DriveOptions{
		Engine: host.EngineCPU, Source: program.CriteoTSV,
	})
	if err != nil {
		return err
	}
	manager, err := host.NewManager(host.Options{}, drive)
	if err != nil {
		return errors.Join(err, drive.Close())
	}
	defer func() { err = errors.Join(err, manager.Close()) }()

	// What the drive holds becomes the plan: which rows make which mini-batch.
	data, err := manager.Dataset(ctx)
	if err != nil {
		return err
	}
	plan, err := dataset.NewPlan(data.Manifest, dataset.Options{Batch: 2})
	if err != nil {
		return err
	}
	spec, err := pipeline.Parse([]byte(`
name: example
batch: 2
label: {column: label}
dense:
  - columns: [int_0..int_12]
    ops: [fill_null: 0, log: {add: 1}]
`))
	if err != nil {
		return err
	}
	job := &api.Job{Digest: dataset.Digest{1}, Pipeline: spec, Plan: plan.Options()}
	if err := manager.Prepare(ctx, job); err != nil {
		return err
	}
	for split := range plan.All() {
		stream, err := manager.Open(ctx, api.SplitRequest{Job: job.Digest, Drive: drive.Name(), Split: split})
		if err != nil {
			return err
		}
		for {
			mb, err := stream.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return errors.Join(err, stream.Close())
			}
			fmt.Printf("mini-batch %d: %d rows\n", mb.Name.Number, mb.Rows)
			mb.Release()
		}
		if err := stream.Close(); err != nil {
			return err
		}
	}
	return nil
}
