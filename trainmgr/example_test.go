package trainmgr_test

import (
	"context"
	"fmt"
	"io"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// constant is a Source, its only Pieces, its only Piece and its api.Stream: one epoch whose mini-batches have labels
// alone.
type constant struct {
	plan   *dataset.Plan
	schema *tensor.Schema
	begun  bool   // the only epoch
	opened bool   // the only piece
	next   uint64 // number of the next mini-batch
}

func (c *constant) Epoch(context.Context) (*trainmgr.Epoch, error) {
	if c.begun {
		return nil, io.EOF
	}
	c.begun = true
	progress := dataset.NewProgress(dataset.Digest{}, 0, c.plan.MiniBatches())
	return &trainmgr.Epoch{Plan: c.plan, Progress: progress}, nil
}

func (c *constant) Begin(context.Context, *trainmgr.Epoch, trainmgr.Delivery) (trainmgr.Pieces, error) {
	return pieces{c}, nil
}

func (c *constant) Acknowledged(_, number uint64) error {
	fmt.Println("acknowledged", number)
	return nil
}

func (c *constant) Allocation() allocation.Allocation {
	return allocation.Allocation{Drives: 1, Wanted: 1, Note: "one piece"}
}

func (c *constant) Report(context.Context) ([]api.DriveReport, []string, error) { return nil, nil, nil }

func (c *constant) Close() error { return nil }

// pieces hands out one piece with all mini-batches.
type pieces struct{ *constant }

func (p pieces) Next(context.Context) (trainmgr.Piece, error) {
	if p.opened {
		return nil, io.EOF
	}
	p.opened = true
	return piece(p), nil
}

// piece is all mini-batches of the epoch.
type piece struct{ *constant }

func (p piece) Numbers() dataset.Range { return dataset.Range{To: p.plan.MiniBatches()} }

func (p piece) Drive() string { return "none" }

func (p piece) Open(context.Context) (api.Stream, error) { return stream(p), nil }

func (p piece) End(err error) error { return err }

func (p piece) Wrap(err error) error { return fmt.Errorf("%v: %w", p, err) }

func (p piece) String() string { return "the only piece" }

// stream makes the mini-batches in order.
type stream struct{ *constant }

func (s stream) Next(context.Context) (*tensor.MiniBatch, error) {
	planned, err := s.plan.MiniBatch(s.next)
	if err != nil {
		return nil, io.EOF
	}
	s.next++
	mb, err := tensor.Make(s.schema, planned.Rows, 0)
	if err != nil {
		return nil, err
	}
	mb.Name.Number = planned.Number
	return mb, nil
}

func (s stream) Close() error { return nil }

// A job iterates over the mini-batches that a Source hands out. Launchers call Submit, or Attach of package remote,
// whose sources are the drives of a machine and the leases of a control plane.
func ExampleNewJob() {
	ctx := context.Background()
	manifest, err := dataset.NewManifest([]dataset.Partition{{Name: "day_0", Bytes: 1, Rows: 25, RowGroups: []int64{25}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := dataset.NewPlan(manifest, dataset.Options{Batch: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	schema := &tensor.Schema{Label: true}
	options := trainmgr.JobOptions{Schema: schema, Order: dataset.Deterministic}
	job, err := trainmgr.NewJob(ctx, &constant{plan: plan, schema: schema}, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer job.Close()
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("mini-batch", mb.Name.Number, "of", mb.Rows, "rows")
	}
	fmt.Println("all acknowledged below", job.Checkpoint().Mark)
	// Output:
	// mini-batch 0 of 10 rows
	// acknowledged 0
	// mini-batch 1 of 10 rows
	// acknowledged 1
	// mini-batch 2 of 5 rows
	// acknowledged 2
	// all acknowledged below 3
}
