package summary

import "github.com/millrace/millrace/sdk/targetencoding"

// Bounds of a summary.
const (
	MaxColumns   = 1 << 20
	MaxName      = 1 << 12 // bytes of a column's or a partition's name
	MaxCells     = 1 << 16 // columns times partitions, if a summary has partitions
	ExactValues  = 2048    // distinct values of a column of a partition that are counted exactly
	MaxTopValues = 32      // of a column
	Quantiles    = 99      // of a column: those of the ranks 0.01, 0.02 and so on to 0.99
)

// Kind says how the values of a column are summarised.
type Kind string

// The kinds of columns.
const (
	Integers Kind = "integers" // exactly
	Reals    Kind = "reals"    // as float64: exactly, but for decimals, which are the nearest float64
	Hashes   Kind = "hashes"   // bytes: their XXH3 hashes, which are counted and not ordered
	Lengths  Kind = "lengths"  // lists of real numbers: their lengths alone
)

// Summary is the statistics of a data set.
type Summary struct {
	Manifest Digest // The data set's manifest.
	Rows     int64
	Columns  []Column
	// Partitions are those of the manifest, in its order; empty if they were left out.
	Partitions []Partition
}

// Column is a column of the data set.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // kind and annotation, for people
	Kind Kind   `json:"kind"`
	List bool   `json:"list"`
	Statistics
	// Targets holds the labels of the column's values, if an operator target_encoding takes them.
	Targets *targetencoding.Table `json:"targets,omitempty"`
}

// Partition is one file of the data set.
type Partition struct {
	Name    string       `json:"name"`
	Rows    int64        `json:"rows"`
	Columns []Statistics `json:"columns"` // in the order of Summary.Columns
}

// Statistics are those of a column, over all partitions or in one.
type Statistics struct {
	Rows int64 `json:"rows"`
	// NullRows are the rows without a value: null, and for lists also empty or with a null element.
	NullRows int64 `json:"null_rows"`
	Values   int64 `json:"values"` // The values of all rows; a null is none.
	// ListLengths are those of a list column, null rows included, which count as 0.
	ListLengths *ListLengths `json:"list_lengths,omitempty"`

	NaNs             int64 `json:"nan_values,omitempty"`
	PositiveInfinite int64 `json:"positive_infinite_values,omitempty"`
	NegativeInfinite int64 `json:"negative_infinite_values,omitempty"`

	// The following describe the finite values. They are nil if there are none, or if values have no order.
	Least     *Value   `json:"least,omitempty"`
	Greatest  *Value   `json:"greatest,omitempty"`
	Mean      *float64 `json:"mean,omitempty"`
	Deviation *float64 `json:"deviation,omitempty"` // nil also if there is one value
	Quantiles []Value  `json:"quantiles,omitempty"` // nil, or of the ranks 0.01 to 0.99

	// Distinct is the number of distinct finite values; Exact says that it, the quantiles and the counts of TopValues are
	// exact, and otherwise the counts may be too small by at most MissedCount.
	Distinct    int64      `json:"distinct_values"`
	Exact       bool       `json:"exact"`
	MissedCount int64      `json:"missed_count,omitempty"`
	TopValues   []TopValue `json:"top_values,omitempty"` // by count, the greatest first; then by value, the least first
}

// ListLengths are the lengths of a column's lists.
type ListLengths struct {
	Least    int64   `json:"least"`
	Mean     float64 `json:"mean"`
	Greatest int64   `json:"greatest"`
}

// TopValue is a frequent value.
type TopValue struct {
	Value Value `json:"value"`
	Count int64 `json:"count"`
}

// NullRate returns the share of rows without a value, 0 if there are no rows.
func (s *Statistics) NullRate() float64 {
	if s.Rows == 0 {
		return 0
	}
	return float64(s.NullRows) / float64(s.Rows)
}

// Select returns a summary of some of the columns.
func (s *Summary) Select(columns []int) *Summary {
	some := &Summary{Manifest: s.Manifest, Rows: s.Rows}
	for _, i := range columns {
		some.Columns = append(some.Columns, s.Columns[i])
	}
	for i := range s.Partitions {
		p := Partition{Name: s.Partitions[i].Name, Rows: s.Partitions[i].Rows}
		for _, j := range columns {
			p.Columns = append(p.Columns, s.Partitions[i].Columns[j])
		}
		some.Partitions = append(some.Partitions, p)
	}
	return some
}
