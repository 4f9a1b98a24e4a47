package local_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// Criteo rows in a file become mini-batches: an in-process drive reads the file where it lies and does the work.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "day_0.tsv")
	row := "1" + strings.Repeat("\t7", 13) + strings.Repeat("\t0000002a", 26) + "\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(row, 250)), 0o644); err != nil {
		log.Fatal(err)
	}

	spec, err := pipeline.Named("criteo")
	if err != nil {
		log.Fatal(err)
	}
	manager, err := local.Open(ctx, local.Config{Files: source.ParseLocations(path),
		DriveOptions: host.DriveOptions{Source: program.CriteoTSV, SLM: 64 << 20}})
	if err != nil {
		log.Fatal(err)
	}
	defer manager.Close()
	job, err := trainmgr.Submit(ctx, manager, trainmgr.Options{Pipeline: spec, Batch: 100, Shuffle: dataset.ShuffleNone,
		Order: dataset.Deterministic, AllDrives: true})
	if err != nil {
		log.Fatal(err)
	}
	defer job.Close()
	fmt.Println(len(job.Schema().Dense), "dense features,", len(job.Schema().Keys), "keys, label", job.Schema().Label)
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("mini-batch", mb.Name.Number, "of", mb.Rows, "rows")
	}
	report, err := job.Report(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Rows, "rows by the", report.PerDrive[0].Engine)
	// Output:
	// 13 dense features, 26 keys, label true
	// mini-batch 0 of 100 rows
	// mini-batch 1 of 100 rows
	// mini-batch 2 of 50 rows
	// 250 rows by the drive (vendor)
}

// largest is a reducer: it finds the largest value of the first dense feature.
type largest struct{ value float32 }

// Add implements passes.Reducer.
func (l *largest) Add(_ dataset.Fragment, mb *tensor.MiniBatch) error {
	for row := range mb.Rows {
		l.value = max(l.value, mb.Dense[row*len(mb.Schema.Dense)])
	}
	return nil
}

// A pass with a reducer of one's own, in this process: the drives make the values, and the reducer folds them.
func ExamplePassSource() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "day_0.tsv")
	var rows strings.Builder
	for i := range 250 {
		fmt.Fprintf(&rows, "1\t%d%s%s\n", i*i%101, strings.Repeat("\t7", 12), strings.Repeat("\t0000002a", 26))
	}
	if err := os.WriteFile(path, []byte(rows.String()), 0o644); err != nil {
		log.Fatal(err)
	}
	manager, err := local.Open(ctx, local.Config{Files: source.ParseLocations(path),
		DriveOptions: host.DriveOptions{Source: program.CriteoTSV, SLM: 64 << 20}})
	if err != nil {
		log.Fatal(err)
	}
	defer manager.Close()
	spec, err := pipeline.Parse([]byte("dense: [{columns: [int_0], ops: [fill_null: 0]}]\nbatch: 100\n"))
	if err != nil {
		log.Fatal(err)
	}
	var l largest
	report, err := passes.Fold(ctx, &local.PassSource{Storage: manager}, spec, &l, passes.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.value, "of", report.Folded, "rows")
	// Output: 100 of 250 rows
}
