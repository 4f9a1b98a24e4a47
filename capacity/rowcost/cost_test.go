package rowcost

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// present is a number of rows with a value.
func present(n int64) *int64 { return &n }

// column is a column of a description.
func column(name, kind string, list bool, compressed, values int64, rows *int64) partitionfile.Column {
	return partitionfile.Column{Name: name, Nullable: true, PresentRows: rows,
		Schema: &partitionfile.Schema{Kind: kind, List: list, ElementNullable: list},
		Leaves: []partitionfile.Leaf{{Name: name, Compressed: compressed, Unpacked: 2 * compressed, Values: values}}}
}

// file describes 100 rows: a number, ids, a list with a mean of 4 ids where 20 of 100 lists are empty, a map from
// which each row has 5 keys on average, of lists of 3 ids, a column that nothing reads.
func file() *partitionfile.Description {
	m := partitionfile.Column{Name: "features", Nullable: true, Schema: &partitionfile.Schema{Kind: "int64", List: true,
		Map: &partitionfile.MapSchema{Keys: "features.k", Values: "features.v"}},
		Leaves: []partitionfile.Leaf{{Name: "features.k", Compressed: 500, Values: 500},
			{Name: "features.v", Compressed: 2000, Values: 1500}}}
	return &partitionfile.Description{Path: "a.parquet", Format: partitionfile.Parquet, Rows: 100, Bytes: 1_000_000,
		Columns: []partitionfile.Column{
			column("x", "float32", false, 300, 100, present(90)), column("id", "int64", false, 700, 100, present(100)),
			column("list", "int64", true, 1600, 420, present(80)), m,
			column("unread", "bytes", false, 900_000, 100, nil),
		}}
}

// costOf returns the cost of a pipeline over a description.
func costOf(t *testing.T, document string, files ...*partitionfile.Description) *Cost {
	t.Helper()
	var d Data
	for _, f := range files {
		require.NoError(t, d.Add(f))
	}
	c, err := Of(lower(t, document, &d), &d)
	require.NoError(t, err)
	return c
}

func lower(t *testing.T, document string, d *Data) *program.Program {
	t.Helper()
	spec, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	resolved, err := resolve.Pipeline(spec, d.Columns())
	require.NoError(t, err)
	p, _, err := lowering.Lower(resolved)
	require.NoError(t, err)
	return p
}

// TestWorkedExample compares a pipeline of each kind of chain with the arithmetic of docs/planning.md.
func TestWorkedExample(t *testing.T) {
	c := costOf(t, `
name: ads
dense:
  - {columns: [x], ops: [fill_null: 0, log: {add: 1}]}
sparse:
  - {columns: [id], ops: [fill_null: 0, sigrid_hash: {salt: 0, max: 1000}]}
  - {columns: [list], ops: [firstx: 3, sigrid_hash: {salt: 0, max: 1000}]}
generated:
  - {columns: [x], as: bucket, ops: [fill_null: 0, bucketize: {borders: [1, 2, 3]}]}
`, file())
	assert.Equal(t, 3, c.Columns)
	assert.InDelta(t, 3+7+16, c.Row.FlashBytes, 1e-9, "300, 700 and 1600 bytes of 100 rows; the label and the rest "+
		"stay")
	assert.InDelta(t, 1+1+(420-20)/100.0+1, c.Row.Decoded, 1e-9, "x, id, 4 ids of the list, its length")
	assert.InDelta(t, 1, c.Row.Logged, 1e-9)
	assert.InDelta(t, 1+3, c.Row.Hashed, 1e-9, "id, and the first 3 of 4 ids")
	assert.InDelta(t, 1, c.Row.Bucketized, 1e-9)
	assert.InDelta(t, 3, c.Borders, 0)
	assert.InDelta(t, 4+3*4+8*(1+3+1), c.Row.OutBytes, 1e-9, "dense, 3 lengths, ids of id, list and bucket")
	assert.Equal(t, []string{"fill_null", "firstx"}, c.Beyond)
	assert.Empty(t, c.Assumes, "3 is less than the mean")
	w := c.Batch(10)
	assert.InDelta(t, 10*c.Row.Decoded, w.Decoded, 1e-9)
	assert.InDelta(t, 3, w.Borders, 0, "borders are loaded once for a mini-batch")
}

// TestOperators: each operator that changes lengths, over a list of 4 ids or a pair.
func TestOperators(t *testing.T) {
	for name, c := range map[string]struct {
		group string
		ids   float64 // of the key, in its tensor
		says  string  // an assumption
	}{
		"firstx beyond the mean": {"{columns: [list], ops: [firstx: 9]}", 4, "the first 9 of 4 ids are all of them"},
		"list_slice":             {"{columns: [list], ops: [list_slice: {start: 1, end: 3}]}", 2, ""},
		"list_slice to the end": {"{columns: [list], ops: [list_slice: {start: 1}]}", 3,
			"where parts of them are kept"},
		"list_slice of the last": {"{columns: [list], ops: [list_slice: {start: -3}]}", 3, ""},
		"ngram":                  {"{columns: [list], ops: [ngram: {n: 2}]}", 3, "4 ids make 3 windows of 2"},
		"ngram too long":         {"{columns: [list], ops: [ngram: {n: 9}]}", 0, "4 ids make 0 windows of 9"},
		"cartesian": {"{inputs: [list, id], as: both, ops: [cartesian: {max_length: 100}]}", 4,
			"the first 100 of 4 ids are all of them"},
		"cartesian cut": {"{inputs: [list, list], as: both, ops: [cartesian: {max_length: 10}]}", 10, ""},
		"id_list_transform": {"{inputs: [list, id], as: both, ops: [id_list_transform: {}]}", 4,
			"keeps every id of its first input"},
		"hash_cross": {"{inputs: [id, id2], as: both, ops: [hash_cross: 1000]}", 1, ""},
		"split": {"{columns: [unread], ops: [split: {}, hash_bytes: xxh3]}", 2,
			"split makes 2 parts of a text: footers do not say how many separators there are"},
		"a map": {"{columns: ['features[7]']}", 3, "every row counts as having each key"},
	} {
		t.Run(name, func(t *testing.T) {
			f := file()
			f.Columns = append(f.Columns, column("id2", "int64", false, 1, 100, present(100)))
			got := costOf(t, "name: ads\nsparse:\n  - "+c.group+"\n", f)
			assert.InDelta(t, lengthBytes+8*c.ids, got.Row.OutBytes, 1e-9)
			if c.says == "" {
				assert.Empty(t, got.Assumes)
				return
			}
			require.NotEmpty(t, got.Assumes)
			assert.Contains(t, got.Assumes[0], c.says)
		})
	}
}

// TestLengthsOfLists: a row has one id and no length, also where the list is parts of a text.
func TestLengthsOfLists(t *testing.T) {
	got := costOf(t, "name: ads\nsparse:\n  - {columns: [list], ops: [list_length: {}]}\n", file())
	assert.InDelta(t, 8, got.Row.OutBytes, 1e-9)
	assert.Empty(t, got.Assumes)
	got = costOf(t, "name: ads\nsparse:\n  - {columns: [unread], ops: [split: {}, list_length: {}]}\n", file())
	assert.InDelta(t, 8, got.Row.OutBytes, 1e-9)
	require.NotEmpty(t, got.Assumes)
	assert.Contains(t, got.Assumes[0], "split makes 2 parts of a text")
}

// TestMapsAreDecodedWhole: keys, values and both lengths, whichever keys the pipeline names.
func TestMapsAreDecodedWhole(t *testing.T) {
	one := costOf(t, "name: ads\nsparse:\n  - {columns: ['features[7]']}\n", file())
	two := costOf(t, "name: ads\nsparse:\n  - {columns: ['features[7]', 'features[8]']}\n", file())
	assert.InDelta(t, 5+1+15+5, one.Row.Decoded, 1e-9, "keys and their length, ids and their lengths")
	assert.InDelta(t, one.Row.Decoded, two.Row.Decoded, 1e-9)
	assert.InDelta(t, 25, two.Row.FlashBytes, 1e-9)
	assert.Equal(t, 1, two.Columns)
	assert.InDelta(t, 2*one.Row.OutBytes, two.Row.OutBytes, 1e-9)
}

// TestFilesThatLackAColumn: bytes of a row are over all rows, and a file without statistics is an assumption.
func TestFilesThatLackAColumn(t *testing.T) {
	without := file()
	without.Path, without.Columns = "b.parquet", without.Columns[:2]
	c := costOf(t, "name: ads\nsparse:\n  - {columns: [list], absent: allow}\n", file(), without)
	assert.InDelta(t, 8, c.Row.FlashBytes, 1e-9, "1600 bytes of 200 rows")
	assert.InDelta(t, 2+1, c.Row.Decoded, 1e-9)

	silent := file()
	silent.Columns[2].PresentRows = nil
	c = costOf(t, "name: ads\nsparse:\n  - {columns: [list]}\n", silent)
	assert.InDelta(t, 4.2+1, c.Row.Decoded, 1e-9, "an empty list counts as one id")
	assert.Contains(t, c.Assumes[0], `column "list": the files do not say how many of its lists are empty`)
}

// TestModelsAgree: over generated rows of rm1 to rm5, the counts are those of the models' own workloads, and the label.
func TestModelsAgree(t *testing.T) {
	for _, name := range []string{"rm1", "rm3", "rm5"} {
		m, err := workload.Find(name)
		require.NoError(t, err)
		files, err := workload.Generate(t.Context(), workload.Options{Model: m, Rows: 400, Out: t.TempDir(),
			Coverage: 1})
		require.NoError(t, err)
		v, err := partitionfile.Describe(t.Context(), files[0].Path, partitionfile.Parquet, text.Options{}, false)
		require.NoError(t, err)
		var d Data
		require.NoError(t, d.Add(&v))
		spec, err := pipeline.Named(name)
		require.NoError(t, err)
		resolved, err := resolve.Pipeline(spec, d.Columns())
		require.NoError(t, err)
		p, _, err := lowering.Lower(resolved)
		require.NoError(t, err)
		c, err := Of(p, &d)
		require.NoError(t, err)
		w, err := capacity.CostOfRow(name, 8)
		require.NoError(t, err)
		w.TensorIDBytes = int(p.Output.IDs.Bytes())
		want, got := w.Work(400), c.Batch(400)
		assert.InEpsilon(t, want.Decoded+400, got.Decoded, 0.02, name)
		assert.InEpsilon(t, want.Hashed, got.Hashed, 0.02, name)
		assert.InEpsilon(t, want.Logged, got.Logged, 1e-9, name)
		assert.InEpsilon(t, want.Bucketized, got.Bucketized, 1e-9, name)
		assert.InEpsilon(t, want.Borders, got.Borders, 1e-9, name)
		assert.InEpsilon(t, want.OutBytes, got.OutBytes, 0.02, name)
		assert.Empty(t, c.Assumes, name)
	}
}

func TestRefusedData(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v *partitionfile.Description)
		says   string
	}{
		"text": {func(v *partitionfile.Description) { v.Format = partitionfile.CriteoTSV },
			"write it as Parquet"},
		"rows":      {func(v *partitionfile.Description) { v.Rows = -1 }, "has -1 rows"},
		"bytes":     {func(v *partitionfile.Description) { v.Bytes = -1 }, "-1 bytes"},
		"no schema": {func(v *partitionfile.Description) { v.Columns[0].Schema = nil }, "make it again"},
		"leaf":      {func(v *partitionfile.Description) { v.Columns[0].Leaves[0].Values = -1 }, "-1 values"},
		"present": {func(v *partitionfile.Description) { v.Columns[2].PresentRows = present(101) },
			"101 of 100 rows"},
		"not present": {func(v *partitionfile.Description) { v.Columns[2].PresentRows = present(-1) },
			"-1 of 100 rows"},
	} {
		v := file()
		c.change(v)
		err := new(Data).Add(v)
		require.ErrorIs(t, err, ErrData, name)
		assert.ErrorContains(t, err, c.says, name)
	}
	v, at := file(), new(Data)
	v.Columns[1].Leaves = nil
	require.NoError(t, at.Add(v))
	_, err := Of(lower(t, "name: a\nsparse:\n  - {columns: [id]}\n", at), at)
	assert.ErrorIs(t, err, ErrData)
	assert.ErrorContains(t, err, `lack column "id"`)
	v.Rows, at = 0, new(Data)
	v.Columns[2].PresentRows = present(0)
	require.NoError(t, at.Add(v))
	_, err = Of(lower(t, "name: a\nsparse:\n  - {columns: [x], ops: [fill_null: 0, bucketize: {borders: [1]}]}\n", at),
		at)
	assert.ErrorContains(t, err, "no rows in")
}
