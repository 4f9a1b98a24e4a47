package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/partition/schema"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// maxDescribed bounds the partitions that are tried until the footer of one can be read. The footers of a job's
// partitions describe the same columns, so one footer is enough.
const maxDescribed = 4

// describeElsewhere makes the data set of a job of which the drives hold nothing, for the first drive of reach any.
// With no such drive it returns notHeld.
func describeElsewhere(ctx context.Context, drives []*Drive, spec *api.Job, notHeld error) (*api.Dataset, error) {
	for _, d := range drives {
		if d.elsewhere == nil || spec.Manifest == nil {
			continue
		}
		d.elsewhere.from.Learn(spec.Digest, spec.Sources)
		data, err := d.describeOne(ctx, drives, spec)
		if err != nil {
			d.elsewhere.forget(spec.Digest)
		}
		return data, err
	}
	return nil, notHeld
}

// describeOne reads the columns of a job from the footer of one of its partitions. It tries the partitions first that
// are in files of this machine, then those whose place is known.
func (d *Drive) describeOne(ctx context.Context, drives []*Drive, spec *api.Job) (*api.Dataset, error) {
	if spec.Columns != nil {
		return datasetElsewhere(spec, drives, spec.Columns, nil), nil
	}
	var errs []error
	for _, index := range describedFirst(spec, d.elsewhere.from.OwnFiles(spec.Manifest)) {
		open, err := d.elsewhere.acquire(ctx, spec.Digest, spec.Manifest.Partitions[index])
		if err != nil {
			errs = append(errs, err)
			if ctx.Err() != nil || !errors.Is(err, ErrSource) {
				break
			}
			continue
		}
		var union schema.Union
		err = union.Add(open.part, d.o.Text)
		d.elsewhere.release(open)
		if err != nil {
			return nil, err
		}
		return datasetElsewhere(spec, drives, union.Columns(), union.MeanLength()), nil
	}
	return nil, fmt.Errorf("read the columns of the job: %w", errors.Join(errs...))
}

// datasetElsewhere returns the data set of a job of which the drives hold nothing, if its columns are known.
func datasetElsewhere(
	spec *api.Job, drives []*Drive, columns []columntypes.Column, meanLength map[string]float64,
) *api.Dataset {
	data := &api.Dataset{Manifest: spec.Manifest, Columns: columns, MeanLength: meanLength}
	for _, other := range drives {
		data.Drives = append(data.Drives, other.described())
	}
	return data
}

// describedFirst returns the indices of the partitions whose footers are tried. ownFiles are those in files of this
// machine.
func describedFirst(spec *api.Job, ownFiles []int) []int {
	indices := slices.Clone(ownFiles[:min(len(ownFiles), maxDescribed/2)])
	for _, s := range spec.Sources {
		if i := spec.Manifest.Find(s.Partition); i >= 0 && len(indices) < maxDescribed {
			indices = append(indices, i)
		}
	}
	for i := range min(len(spec.Manifest.Partitions), maxDescribed) {
		if len(spec.Sources) == 0 {
			indices = append(indices, i)
		}
	}
	return indices
}
