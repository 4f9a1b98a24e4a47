package rowcost

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// ErrData says that descriptions of files do not suffice for a pipeline.
var ErrData = errors.New("data")

// Data is what the footers of some files say. The zero value has no file.
type Data struct {
	Files int
	Rows  int64
	Bytes int64 // The files have these bytes, with columns that nothing reads.

	union  columntypes.Union
	leaves map[string]*leaf
}

// leaf is what the footers say of one leaf.
type leaf struct {
	compressed, unpacked int64
	values               int64 // with nulls
	empty                int64 // Values that are lists known to be empty or null.
	uncounted            bool  // a file does not say how many lists are empty
}

// Add adds a file's description. Errors wrap ErrData.
func (d *Data) Add(v *partitionfile.Description) error {
	switch {
	case v.Format != partitionfile.Parquet:
		return fmt.Errorf("%w: %s is %s, and columns' bytes are in the footers of Parquet files only: write it as Parquet "+
			"with millrace dataset import", ErrData, v.Path, v.Format)
	case v.Rows < 0 || v.Bytes < 0:
		return fmt.Errorf("%w: %s has %d rows and %d bytes, want numbers not below 0", ErrData, v.Path, v.Rows, v.Bytes)
	}
	columns := make([]columntypes.Column, 0, len(v.Columns))
	for i := range v.Columns {
		info, err := v.Columns[i].Info()
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrData, v.Path, err)
		}
		columns = append(columns, info)
	}
	for i := range v.Columns {
		if err := d.addLeaves(v, &v.Columns[i], &columns[i]); err != nil {
			return err
		}
	}
	d.union.Add([]string{v.Path}, columns)
	d.Files++
	d.Rows += v.Rows
	d.Bytes += v.Bytes
	return nil
}

// addLeaves adds what a file says of the leaves of a column.
func (d *Data) addLeaves(v *partitionfile.Description, c *partitionfile.Column, info *columntypes.Column) error {
	if d.leaves == nil {
		d.leaves = make(map[string]*leaf)
	}
	for _, l := range c.Leaves {
		if l.Compressed < 0 || l.Unpacked < 0 || l.Values < 0 {
			return fmt.Errorf("%w: %s: column %q has %d bytes, %d unpacked, %d values, want numbers not below 0", ErrData,
				v.Path, c.Name, l.Compressed, l.Unpacked, l.Values)
		}
		to := d.leaves[l.Name]
		if to == nil {
			to = new(leaf)
			d.leaves[l.Name] = to
		}
		to.compressed += l.Compressed
		to.unpacked += l.Unpacked
		to.values += l.Values
		switch {
		case !info.List || info.Map.IsMap():
		case c.PresentRows == nil:
			to.uncounted = true
		case *c.PresentRows < 0 || *c.PresentRows > v.Rows:
			return fmt.Errorf("%w: %s: column %q has values in %d of %d rows", ErrData, v.Path, c.Name, *c.PresentRows, v.Rows)
		default:
			to.empty += min(v.Rows-*c.PresentRows, l.Values)
		}
	}
	return nil
}

// Columns returns the columns of all files, as a pipeline is resolved against them.
func (d *Data) Columns() []columntypes.Column { return slices.Clone(d.union.Columns()) }
