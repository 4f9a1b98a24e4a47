// Package passestest has a source of passes that needs no drive, for tests.
package passestest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/tensor"
)

// ErrStopped ends a run of a Source that stops early.
var ErrStopped = errors.New("stopped by the test")

// Source makes mini-batches of the values of a column id, each of which is a key. Without an order it makes the last
// mini-batch first.
type Source struct {
	Partitions [][]int64
	Batch      int
	StopAfter  int // StopAfter is how many mini-batches a run makes before ErrStopped; 0: all.
	// Cut, if it is not nil, changes how the source cuts the data, as no source may.
	Cut func(*dataset.Options)
}

// Facts implements passes.Source.
func (s *Source) Facts() []passes.Fact { return nil }

// Describe implements passes.Source.
func (s *Source) Describe(context.Context) (*passes.Data, error) {
	m := &dataset.Manifest{}
	for i, values := range s.Partitions {
		rows := int64(len(values))
		m.Partitions = append(m.Partitions, dataset.Partition{Name: fmt.Sprint("part-", i), Bytes: 8 * rows, Rows: rows,
			RowGroups: []int64{rows}, Content: sha256.Sum256(fmt.Append(nil, values))})
	}
	return &passes.Data{Manifest: m, Columns: []columntypes.Column{{Name: "id", Kind: program.Int64}}}, nil
}

// Begin implements passes.Source.
func (s *Source) Begin(_ context.Context, j *passes.Job) (passes.Run, error) {
	o := passes.PlanOptions()
	o.Batch, o.SplitBatches = s.Batch, 2
	if s.Cut != nil {
		s.Cut(&o)
	}
	plan, err := dataset.NewPlan(j.Data.Manifest, o)
	if err != nil {
		return nil, err
	}
	manifest, err := j.Data.Manifest.Digest()
	if err != nil {
		return nil, err
	}
	digest, err := dataset.JobDigest(manifest, j.Pipeline.YAML(), plan.Options())
	if err == nil && j.Resume != nil && j.Resume.Job != digest {
		err = dataset.ErrOtherJob
	}
	return &run{s, j, plan, digest}, err
}

// run is a run of a Source.
type run struct {
	source *Source
	job    *passes.Job
	plan   *dataset.Plan
	digest dataset.Digest
}

func (r *run) Digest() dataset.Digest                                  { return r.digest }
func (r *run) Plan() *dataset.Plan                                     { return r.plan }
func (r *run) Pipeline() (*pipeline.Spec, error)                       { return r.job.Pipeline, nil }
func (r *run) Selection(context.Context) (*selection.Selection, error) { return nil, nil }
func (r *run) End(_ context.Context, err error) error                  { return err }
func (r *run) Schema() *tensor.Schema {
	return &tensor.Schema{IDs: tensor.Int64, Keys: []tensor.Key{{Name: "id"}}}
}

// MiniBatches implements passes.Run. It makes every mini-batch twice, as a service does that repeats a delivery.
func (r *run) MiniBatches(context.Context) iter.Seq2[*tensor.MiniBatch, error] {
	var numbers []uint64
	for number := range r.plan.MiniBatches() {
		one := []dataset.Range{{From: number, To: number + 1}}
		if r.job.Resume == nil || len(dataset.IntersectRanges(r.job.Resume.Acknowledged(), one)) == 0 {
			numbers = append(numbers, number)
		}
	}
	if r.job.Order == dataset.Fastest {
		slices.Reverse(numbers)
	}
	return func(yield func(*tensor.MiniBatch, error) bool) {
		for i, number := range numbers {
			if r.source.StopAfter > 0 && i == r.source.StopAfter {
				yield(nil, ErrStopped)
				return
			}
			at, err := r.plan.Fragment(number)
			mb := tensor.New(r.Schema(), at.Rows, nil)
			mb.Name.Number = number
			mb.Values64 = append(mb.Values64, r.source.Partitions[at.Partition][at.First:][:at.Rows]...)
			for range 2 {
				if !yield(mb, err) {
					return
				}
			}
		}
	}
}
