package workload

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/unit/parquet"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/pipeline"
)

// tensorsOf is what a pipeline makes of a generated file, by the reference.
func tensorsOf(t *testing.T, path string, spec *pipeline.Spec) *reference.Tensors {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := parquet.ReadFooter(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	columns, _ := host.Columns(&sdk.Partition{File: f, Source: 1}, text.Options{})
	r, err := spec.Resolve(columns)
	require.NoError(t, err)
	p, _, err := pipeline.Lower(r)
	require.NoError(t, err)
	ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
	require.NoError(t, err)
	m, err := ref.MiniBatch(0, int(f.Rows))
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
	got := tensorsOf(t, maps[0].Path, spec(FloatFeatures+"[0.."+to(m.Dense)+"]", IDListFeatures+"[0.."+to(m.Sparse)+"]"))
	assert.Equal(t, want, got)
	assert.NotEmpty(t, want.Values)

	m.Lists = false
	options.Model = m
	_, err = Generate(t.Context(), options)
	require.ErrorIs(t, err, ErrOptions)
}
