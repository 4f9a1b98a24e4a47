package workload

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// tensorsOf returns the tensors that a pipeline makes of a generated file, by the reference, in one mini-batch.
func tensorsOf(t *testing.T, path string, spec *pipeline.Spec) *tensor.MiniBatch {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	part, err := partition.Open(t.Context(), "part", bytes.NewReader(data), int64(len(data)), program.Parquet,
		partition.Options{Bytes: data})
	require.NoError(t, err)
	columns, _ := schema.Columns(part, text.Options{})
	r, err := resolve.Pipeline(spec, columns)
	require.NoError(t, err)
	p, schema, err := lowering.Lower(r)
	require.NoError(t, err)
	ref, err := cpu.NewReference(p, schema)
	require.NoError(t, err)
	s, err := ref.Open(t.Context(), processor.Run{Partition: part, Rows: part.Rows, Batch: int(part.Rows)})
	require.NoError(t, err)
	m, err := s.Next(t.Context())
	require.NoError(t, err)
	return m
}

// The same rows in columns and in maps give the same mini-batches.
func TestMapsHoldTheSameRows(t *testing.T) {
	m := small(true)
	m.Coverage = 0.4
	options := Options{Model: m, Rows: 40, RowGroupRows: 15, Seed: 3, PageBytes: 600, PageVersion: 2, Codec: "snappy"}
	spec := func(dense, sparse string) *pipeline.Spec {
		s, err := pipeline.Parse([]byte(`
label: {column: label}
dense: [{columns: ["` + dense + `"], as: "d{n}", ops: [fill_null: -1]}]
sparse: [{columns: ["` + sparse + `"], as: "s{n}"}]`))
		require.NoError(t, err)
		return s
	}
	to := func(n int) string { return strconv.Itoa(n - 1) }
	options.Out = t.TempDir()
	flat, err := Generate(t.Context(), options)
	require.NoError(t, err)
	options.Out, options.Maps = t.TempDir(), true
	maps, err := Generate(t.Context(), options)
	require.NoError(t, err)
	want := tensorsOf(t, flat[0].Path, spec("int_0..int_"+to(m.Dense), "cat_0..cat_"+to(m.Sparse)))
	got := tensorsOf(t, maps[0].Path,
		spec(FloatFeatures+"[0.."+to(m.Dense)+"]", IDListFeatures+"[0.."+to(m.Sparse)+"]"))
	assert.Empty(t, tensor.Diff(want, got))
	assert.Positive(t, want.Values())

	m.Lists = false
	options.Model = m
	_, err = Generate(t.Context(), options)
	require.ErrorIs(t, err, ErrOptions)
}
