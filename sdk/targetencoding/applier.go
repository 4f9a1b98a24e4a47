package targetencoding

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/sdk/tensor"
)

// Column is a key that becomes a dense feature.
type Column struct {
	Dense    int // index of the feature
	Encoding *Encoding
}

// Applier replaces the last keys of mini-batches by dense features.
type Applier struct {
	made    *tensor.Schema // The mini-batches that come in.
	schema  *tensor.Schema
	columns []Column
	others  []int // indices of the dense features that come in
}

// NewApplier makes an applier of mini-batches of the schema made, which become those of schema. columns has an element
// for each of the last keys of made, which schema lacks; their dense features ascend. The error wraps tensor.ErrShape.
func NewApplier(made, schema *tensor.Schema, columns []Column) (*Applier, error) {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: target encodings: %s", tensor.ErrShape, fmt.Sprintf(format, args...))
	}
	keys := len(schema.Keys)
	switch {
	case len(made.Keys) != keys+len(columns) || len(schema.Dense) != len(made.Dense)+len(columns):
		return nil, fail("%d keys and %d dense features become %d and %d with %d columns", len(made.Keys), len(made.Dense),
			keys, len(schema.Dense), len(columns))
	case keys > 0 && (made.IDs != schema.IDs || made.Weights != schema.Weights):
		return nil, fail("keys have another type")
	case made.Label != schema.Label || len(made.Dense) > 0 && made.DenseDType() != schema.DenseDType():
		return nil, fail("labels or dense features have another type")
	}
	a := &Applier{made: made, schema: schema, columns: columns}
	next := 0
	for i := range schema.Dense {
		if next < len(columns) && columns[next].Dense == i {
			next++
			continue
		}
		a.others = append(a.others, i)
	}
	if next != len(columns) {
		return nil, fail("dense feature %d is not one behind that of the column before", columns[next].Dense)
	}
	return a, nil
}

// Apply returns a mini-batch with the encodings of its last keys, and takes over the one it is given, whose other
// tensors are shared. row returns the number in the partition of each of its rows. The mini-batch must not be
// deduplicated.
func (a *Applier) Apply(in *tensor.MiniBatch, p Partition, row func(i int) int64) *tensor.MiniBatch {
	var release func()
	if in.Lent() {
		release = in.Release
	}
	out := tensor.New(a.schema, in.Rows, release)
	out.Name, out.Label = in.Name, in.Label
	starts := in.OffsetPerKey()
	if keys := len(a.schema.Keys); keys > 0 {
		values := starts[keys]
		if a.made.IDs == tensor.Int32 {
			out.Values32 = in.Values32[:values:values]
		} else {
			out.Values64 = in.Values64[:values:values]
		}
		if !a.schema.Fixed() {
			out.Lengths = in.Lengths[: keys*in.Rows : keys*in.Rows]
		}
		if a.schema.Weights {
			out.Weights = in.Weights[:values:values]
		}
	}
	width := len(a.schema.Dense)
	if a.schema.DenseDType() == tensor.BFloat16 {
		out.Dense16 = spread(in.Dense16, in.Rows, width, a.others)
	} else {
		out.Dense = spread(in.Dense, in.Rows, width, a.others)
	}
	for i, c := range a.columns {
		key := len(a.schema.Keys) + i
		at := starts[key]
		for j := range in.Rows {
			value := c.Encoding.mean
			if in.Lengths == nil || in.Lengths[key*in.Rows+j] > 0 {
				id := int64(0)
				if a.made.IDs == tensor.Int32 {
					id = int64(in.Values32[at])
				} else {
					id = in.Values64[at]
				}
				at++
				value = c.Encoding.Value(id, p, row(j))
			}
			if out.Dense16 != nil {
				out.Dense16[j*width+c.Dense] = nearestBFloat16(value)
			} else {
				out.Dense[j*width+c.Dense] = value
			}
		}
	}
	return out
}

// nearestBFloat16 returns the bits of the bfloat16 nearest to a finite number, ties to even.
func nearestBFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// spread copies the columns of rows to other places of wider rows.
func spread[E any](dense []E, rows, width int, places []int) []E {
	wide := make([]E, rows*width)
	for i := range rows {
		row := dense[i*len(places):][:len(places)]
		for j, x := range row {
			wide[i*width+places[j]] = x
		}
	}
	return wide
}
