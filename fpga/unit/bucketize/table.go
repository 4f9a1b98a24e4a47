package bucketize

// Table is a set of borders made ready for search.
type Table struct {
	p Params
}

// New checks parameters and builds a table. It copies what it keeps.
func New(p Params) (*Table, error) {
	return &Table{p: p}, nil
}

// Buckets returns the number of buckets, one more than there are borders: every result is below it.
func (t *Table) Buckets() int { return max(len(t.p.Borders), len(t.p.Borders64), len(t.p.BordersI64)) + 1 }

// Float32 sets dst[i] to the bucket of src[i] for every i of src. dst must be at least as long as src. On an error
// the rows before the one named are done and the others are undefined.
func (t *Table) Float32(dst []int64, src []float32) error { return nil }

// Float64 is Float32 for float64 values; under CompareFloat32 they are rounded to float32 first.
func (t *Table) Float64(dst []int64, src []float64) error { return nil }

// Int64 is Float32 for integers; under CompareFloat32 and CompareFloat64 they are rounded to that type first. dst may
// be src.
func (t *Table) Int64(dst, src []int64) error { return nil }
