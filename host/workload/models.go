package workload

import (
	"fmt"
	"strings"
)

// Model is a row of PreSto's table I, or one of MiniPipe's data sets.
type Model struct {
	Name       string  // rm1 to rm5, d1, d2
	Dense      int     // dense features
	Sparse     int     // sparse features in the data
	Lists      bool    // sparse features are lists; otherwise one id a row
	MeanLength float64 // ids of a sparse feature in a row that has it
	Generated  int     // sparse features made from dense ones by Bucketize
	Borders    int     // bucket borders of each
	Tables     int     // embedding tables: Sparse + Generated
	Embeddings int64   // rows of a table, on average
	Coverage   float64 // share of rows that have a feature; 0: column by column, Criteo's
	Text       bool    // sparse features are hexadecimal text and dense ones floats; otherwise ids are integers
}

// Batch is the rows of a mini-batch in all of PreSto's measurements.
const Batch = 8192

// dppCoverage is that of DPP's RM3 (table V), whose 504 dense and 42 sparse features RM2 to RM5 copy.
const dppCoverage = 0.29

// Models returns RM1 to RM5 (PreSto, table I).
func Models() []Model {
	return []Model{
		{"rm1", 13, 26, false, 1, 13, 1024, 39, 500_000, 0, false},
		{"rm2", 504, 42, true, 20, 21, 1024, 63, 500_000, dppCoverage, false},
		{"rm3", 504, 42, true, 20, 42, 1024, 84, 500_000, dppCoverage, false},
		{"rm4", 504, 42, true, 20, 42, 2048, 84, 500_000, dppCoverage, false},
		{"rm5", 504, 42, true, 20, 42, 4096, 84, 500_000, dppCoverage, false},
	}
}

// DataSets returns MiniPipe's data sets D-I and D-II. D-I has Criteo's columns and nulls. D-II is synthetic, and its
// size (11 GB of 4 M rows, section 4.1.1) is that of 504 floats and 42 texts of eight digits in every row.
func DataSets() []Model {
	return []Model{
		{Name: "d1", Dense: 13, Sparse: 26, Tables: 26, Text: true},
		{Name: "d2", Dense: 504, Sparse: 42, Tables: 42, Text: true, Coverage: 1},
	}
}

// Find returns the model or data set of that name, in either case.
func Find(name string) (Model, error) {
	var names []string
	for _, m := range append(Models(), DataSets()...) {
		if strings.EqualFold(m.Name, name) {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Model{}, fmt.Errorf("%w: model %q, want one of %s", ErrOptions, name, strings.Join(names, ", "))
}

// Columns returns the names of the data's columns in order: label, int_0 ..., cat_0 ....
func (m Model) Columns() []string {
	names := []string{"label"}
	for i := range m.Dense {
		names = append(names, fmt.Sprint("int_", i))
	}
	for i := range m.Sparse {
		names = append(names, fmt.Sprint("cat_", i))
	}
	return names
}

// criteoNulls are the null cells of each column, of criteoRows rows: int_0 to int_12, then cat_0 to cat_25.
//
// Source: counted over the 3,000-row sample of day 11 of Criteo's 1TB click logs that pytorch/data ships with its
// examples. The counts are all that is kept of it. (Criteo's Kaggle set has other rates.)
var criteoNulls = [...]int{
	714, 284, 820, 1393, 1279, 243, 110, 0, 0, 243, 1279, 40, 820,
	104, 0, 0, 0, 0, 0, 0, 0, 0, 104, 104, 0, 0, 1396, 0, 1396, 1396, 0, 0, 104, 104, 104, 1396, 0, 0, 0,
}

const criteoRows = 3000

// nullRate returns the share of nulls in a column, counted as Columns does.
func (m Model) nullRate(column int) float64 {
	switch {
	case column == 0:
		return 0
	case m.Coverage > 0:
		return 1 - m.Coverage
	case column-1 < len(criteoNulls):
		return float64(criteoNulls[column-1]) / criteoRows
	}
	return 0
}
