package local_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	summaries "github.com/millrace/millrace/sdk/summary/reducer"
	"github.com/millrace/millrace/trainmgr/local"
)

// TestStatisticsBehindOperators makes the statistics that a pipeline with a filter names, on every engine, and compares
// them with sums over the rows that pass.
func TestStatisticsBehindOperators(t *testing.T) {
	folder := t.TempDir()
	rows := drawRows(3, 2000)
	files := []string{writeRows(t, folder, "p0.parquet", rows[:1300], 500),
		writeRows(t, folder, "p1.parquet", rows[1300:], 500)}
	spec, err := pipeline.Parse([]byte(`dense:
  - {columns: [age], ops: [fill_null: 5, clamp: {max: 60}, normalize: {statistics: s}]}
  - {columns: [score], ops: [clamp: {min: 0}, min_max: {statistics: s}, fill_null: 0]}
statistics: {s: }
filter: {column: id, gt: 0}
`))
	require.NoError(t, err)
	var passing, nulls int64
	sum, least, greatest := 0.0, math.Inf(1), math.Inf(-1)
	for _, r := range rows {
		if r.ID <= 0 {
			continue
		}
		passing++
		age := int32(5)
		if r.Age != nil {
			age = min(*r.Age, 60)
		}
		sum += float64(age)
		if r.Score == nil {
			nulls++
			continue
		}
		least, greatest = min(least, max(*r.Score, 0)), max(greatest, *r.Score)
	}
	var before []byte
	for i, c := range []local.Config{
		{Files: source.ParseLocations(files...)},
		{Files: source.ParseLocations(files...), DriveOptions: host.DriveOptions{Engine: host.EngineReference}},
		{Files: source.ParseLocations(files...), Spread: 2, DriveOptions: host.DriveOptions{Engine: host.EngineCPU,
			Threads: 2}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			made := runPass(t, c, summaries.Pass{Pipeline: spec, Name: "s", Batch: 100 + i})
			require.Len(t, made.Columns, 2)
			assert.Equal(t, passing, made.Rows)
			age, score := &made.Columns[0], &made.Columns[1]
			assert.InEpsilon(t, sum/float64(passing), *age.Mean, 1e-12)
			assert.Equal(t, []int64{0, nulls}, []int64{age.NullRows, score.NullRows})
			assert.Equal(t, []float64{least, greatest}, []float64{score.Least.Real(), score.Greatest.Real()})
			b, err := made.Encode()
			require.NoError(t, err)
			if before != nil {
				assert.Equal(t, before, b)
			}
			before = b
		})
	}
	m, err := local.Open(t.Context(), local.Config{Files: source.ParseLocations(files...)})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	_, err = (&summaries.Pass{Pipeline: spec, Name: "t"}).Run(t.Context(), &local.PassSource{Storage: m})
	require.ErrorIs(t, err, problem.ErrStatistics)
}
