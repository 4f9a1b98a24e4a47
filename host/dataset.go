package host

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
)

// describe makes the data set of the partitions that drives hold. If selected is not nil, the data set has the
// partitions that selected names, in its order. Otherwise it has all partitions, which must have one schema, in the
// order in which files and members were given, or else in that of dataset.CompareNames.
func describe(drives []*Drive, selected *dataset.Manifest) (*api.Dataset, error) {
	entries := map[string]dataset.Partition{}
	first := map[string]*Drive{}
	var held []heldPartition
	data := &api.Dataset{Manifest: selected}
	for _, d := range drives {
		for _, p := range d.Partitions() {
			e := p.Describe()
			if selected != nil {
				i := selected.Find(p.Name)
				if i < 0 {
					continue
				}
				if why := differs(e, selected.Partitions[i]); why != "" {
					return nil, &ChangedError{Drive: d.name, Partition: p.Name, Why: why}
				}
			}
			if other, ok := entries[e.Name]; ok {
				if differs(e, other) != "" {
					return nil, fmt.Errorf("%w: %s on drive %s and on drive %s are different files", ErrSchema, e.Name,
						first[e.Name].name, d.name)
				}
				continue
			}
			entries[e.Name], first[e.Name] = e, d
			if stamp, ok := d.stamp(p); ok {
				if data.Stamps == nil {
					data.Stamps = map[string]api.Stamp{}
				}
				data.Stamps[e.Name] = stamp
			}
			held = append(held, heldPartition{Partition: p, text: d.o.Text, place: d.placeOf(p.Name)})
			if malformed := program.Malformed(d.o.Text.Policy); len(entries) == 1 {
				data.Malformed = malformed
			} else if data.Malformed != malformed {
				return nil, fmt.Errorf("%w: drives treat malformed rows differently", ErrSchema)
			}
		}
	}
	switch {
	case len(entries) > 0:
	case selected != nil:
		return nil, fmt.Errorf("none of the job's %d partitions is here: %w", len(selected.Partitions), ErrNotHeld)
	default:
		return nil, fmt.Errorf("%s with no partition: put some there first (millrace drive put)",
			quantity.Of(len(drives), "drive"))
	}
	if selected == nil {
		slices.SortFunc(held, func(a, b heldPartition) int {
			return cmp.Or(cmp.Compare(a.place, b.place), drives[0].o.Sort.Compare(a.Name, b.Name))
		})
		list := make([]dataset.Partition, len(held))
		for i, p := range held {
			list[i] = entries[p.Name]
		}
		var err error
		if data.Manifest, err = dataset.NewManifest(list); err != nil {
			return nil, err
		}
	} else {
		slices.SortFunc(held, func(a, b heldPartition) int {
			return cmp.Compare(selected.Find(a.Name), selected.Find(b.Name))
		})
	}
	// The order of columns does not depend on which drive holds which partition.
	var union schema.Union
	for _, p := range held {
		if err := union.Add(p.Partition, p.text); err != nil {
			return nil, err
		}
	}
	data.Columns, data.MeanLength = union.Columns(), union.MeanLength()
	for _, d := range drives {
		ad := d.described()
		for _, p := range d.Partitions() {
			if i := data.Manifest.Find(p.Name); i >= 0 {
				ad.Partitions = append(ad.Partitions, i)
			}
		}
		slices.Sort(ad.Partitions)
		data.Drives = append(data.Drives, ad)
	}
	return data, nil
}

// heldPartition is a partition with the options of its text and its place among the files or members that were given.
type heldPartition struct {
	*partition.Partition
	text  text.Options
	place int
}

// described returns the drive as a data set describes it, without partitions.
func (d *Drive) described() api.Drive {
	return api.Drive{Name: d.name, Compute: d.Computes(), Threads: d.threads(), Streams: d.streams()}
}
