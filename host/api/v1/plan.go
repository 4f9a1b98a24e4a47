package apiv1

import (
	"fmt"

	"github.com/millrace/millrace/sdk/dataset"
)

// ReadPlan reads the options of a plan, which have no epoch on the wire. A number or a word that is missing is the zero
// value of its option. The error wraps dataset.ErrOptions.
func ReadPlan(p *PlanOptions) (dataset.Options, error) {
	o := dataset.Options{Seed: p.GetSeed()}
	for _, number := range []struct {
		name   string
		wire   int64
		most   int64
		option *int
	}{
		{"batch", p.GetBatch(), dataset.MaxBatch, &o.Batch},
		{"split_batches", p.GetSplitBatches(), dataset.MaxSplitBatches, &o.SplitBatches},
		{"window", p.GetWindow(), dataset.MaxSplitBatches, &o.Window},
	} {
		if number.wire < 0 || number.wire > number.most {
			return o, fmt.Errorf("plan: %w: %s %d, want 0 to %d", dataset.ErrOptions, number.name, number.wire, number.most)
		}
		*number.option = int(number.wire)
	}
	for _, word := range []struct {
		wire   string
		option interface{ UnmarshalText(text []byte) error }
	}{
		{p.GetBoundary(), &o.Boundary}, {p.GetTail(), &o.Tail}, {p.GetShuffle(), &o.Shuffle},
	} {
		if word.wire == "" {
			continue
		}
		if err := word.option.UnmarshalText([]byte(word.wire)); err != nil {
			return o, fmt.Errorf("plan: %w", err)
		}
	}
	return o, nil
}

// WritePlan writes the options of a plan without their epoch. The boundary partition has no word, so that the bytes are
// those of builds that know no other.
func WritePlan(o dataset.Options) *PlanOptions {
	p := &PlanOptions{Batch: int64(o.Batch), Tail: o.Tail.String(), Shuffle: o.Shuffle.String(), Seed: o.Seed,
		SplitBatches: int64(o.SplitBatches), Window: int64(o.Window)}
	if o.Boundary != dataset.BoundaryPartition {
		p.Boundary = o.Boundary.String()
	}
	return p
}
