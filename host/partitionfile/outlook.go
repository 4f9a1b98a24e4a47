package partitionfile

import (
	"context"
	"strconv"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// Outlook says what an epoch over a data set will be, before a job runs.
type Outlook struct {
	Partitions   int               `json:"partitions"`
	Rows         int64             `json:"rows"`
	Batch        int               `json:"batch_rows"`
	SplitBatches int               `json:"split_mini_batches"`
	Boundaries   []BoundaryOutlook `json:"boundaries"` // one for each boundary
}

// BoundaryOutlook says what an epoch will be with one boundary.
type BoundaryOutlook struct {
	Boundary    dataset.Boundary `json:"boundary"`
	MiniBatches uint64           `json:"mini_batches"` // with the tail keep
	Short       uint64           `json:"short_mini_batches"`
	LeftOut     int64            `json:"left_out_rows"` // rows of the short mini-batches, which the tail drop leaves out
	Splits      int              `json:"splits"`
	CutGroups   int              `json:"cut_row_groups"` // row groups that have rows in several splits
	// NeededBytes are those of all column chunks that a pipeline can read, and ReadBytes those that drives read for all
	// splits, as partition.ReadBytes says.
	NeededBytes int64 `json:"needed_bytes"`
	ReadBytes   int64 `json:"read_bytes"`
}

// Outlook returns the outlook of files of one format for a batch and splits of some mini-batches. It reads the footers
// of all files, and then the page indexes of the row groups that have rows in several splits.
func (r Resolver) Outlook(ctx context.Context, files []source.Location, fileFormat Format, options text.Options,
	o dataset.Options) (*Outlook, error) {
	list, needed := make([]dataset.Partition, len(files)), int64(0)
	for i, file := range files {
		err := r.usePartition(ctx, file, fileFormat, options, func(p *partition.Partition) error {
			list[i] = p.Describe()
			list[i].Name = strconv.Itoa(i) // the names enter no number, and those of two files may be the same
			for g, group := range p.RowGroups() {
				needed += p.ReadBytes(g, 0, group.Rows)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	m, err := dataset.NewManifest(list)
	if err != nil {
		return nil, err
	}
	v := &Outlook{Partitions: len(files), Rows: m.Rows()}
	cut := make([][]cutPart, len(files))
	for _, boundary := range []dataset.Boundary{dataset.BoundaryPartition, dataset.BoundaryNone} {
		o.Boundary, o.Shuffle, o.Tail = boundary, dataset.ShuffleNone, dataset.DropTail
		dropping, err := dataset.NewPlan(m, o)
		if err != nil {
			return nil, err
		}
		o.Tail = dataset.KeepTail
		plan, err := dataset.NewPlan(m, o)
		if err != nil {
			return nil, err
		}
		v.Batch, v.SplitBatches = plan.Options().Batch, plan.Options().SplitBatches
		v.Boundaries = append(v.Boundaries, BoundaryOutlook{Boundary: boundary, MiniBatches: plan.MiniBatches(),
			Short: plan.ShortMiniBatches(), LeftOut: dropping.LeftOut(), Splits: plan.Splits(), NeededBytes: needed,
			ReadBytes: needed})
		for part := range plan.GroupParts(m) {
			if !part.IsWhole() {
				cut[part.Partition] = append(cut[part.Partition], cutPart{part, len(v.Boundaries) - 1})
			}
		}
	}
	for i, parts := range cut {
		if len(parts) == 0 {
			continue
		}
		err := r.usePartition(ctx, files[i], fileFormat, options, func(p *partition.Partition) error {
			v.addCutParts(p, parts)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

// cutPart is a part of a row group, and the number of the boundary with which a split has it.
type cutPart struct {
	dataset.GroupPart
	boundary int
}

// addCutParts counts what splits read of the row groups of a partition that they have parts of, in place of one read of
// each.
func (v *Outlook) addCutParts(p *partition.Partition, parts []cutPart) {
	for _, part := range parts {
		b := &v.Boundaries[part.boundary]
		b.ReadBytes += p.ReadBytes(part.Group, part.First, part.Rows)
		if part.First == 0 {
			b.CutGroups++
			b.ReadBytes -= p.ReadBytes(part.Group, 0, part.Of)
		}
	}
}
