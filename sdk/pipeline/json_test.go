package pipeline_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
)

func TestJSONReadsBack(t *testing.T) {
	specs := map[string]*pipeline.Spec{
		"everything": {
			Name: "a \"b\" \n <&>", Batch: 7, IDs: program.IDs32,
			Label: &pipeline.Label{Column: "y", Ops: []pipeline.Op{pipeline.FillNull(pipeline.Real(0.5))}},
			Dense: []pipeline.Group{{Columns: pipeline.Columns("", "x_0..x_3"), As: "f{i}",
				Ops: []pipeline.Op{
					pipeline.Clamp(pipeline.With("min", pipeline.Int(math.MinInt64)), pipeline.With("max",
						pipeline.Int(math.MaxInt64))),
					pipeline.Log(pipeline.With("add", pipeline.Real(1e-30))),
				}}, {Columns: pipeline.Columns("z")}},
			Sparse: []pipeline.Group{{Columns: pipeline.Columns("m[1..2]"), DropScores: true, Deduplicate: true,
				Ops: []pipeline.Op{pipeline.HexToInt(), pipeline.FirstX(0)}}},
			Generated: []pipeline.Group{{Columns: pipeline.Columns("x"), Ops: []pipeline.Op{
				pipeline.Bucketize(pipeline.Borders{LogSpaced: &pipeline.LogSpaced{From: 1, To: 1e6, Count: 10}},
					pipeline.Arg{Name: "side", Value: pipeline.Text("right")}),
				pipeline.Bucketize(pipeline.Borders{List: []pipeline.Number{pipeline.Int(-1), pipeline.Real(0.25),
					pipeline.Real(1e300)}})}}},
		},
	}
	specs["values"] = &pipeline.Spec{Batch: 3,
		Values: []pipeline.NamedValue{
			{As: "hour", From: pipeline.Pattern{Text: "ts"}, Ops: []pipeline.Op{pipeline.FillNull(pipeline.Int(0))}},
			{As: "pairs", Inputs: pipeline.Columns("a", "hour"), Ops: []pipeline.Op{pipeline.Cartesian(),
				pipeline.PositiveModulus(7)}},
		},
		Sparse: []pipeline.Group{{Columns: pipeline.Columns("pairs")}, {Inputs: pipeline.Columns("pairs", "b"), As: "c",
			Deduplicate: true,
			Ops: []pipeline.Op{pipeline.Cartesian(pipeline.Arg{Name: "max_length", Value: pipeline.Int(9)},
				pipeline.Arg{Name: "overflow", Value: pipeline.Text("fail")})}}},
	}
	specs["narrow"] = &pipeline.Spec{Batch: 3, FitIDs: true, DenseType: program.DenseBFloat16,
		Label: &pipeline.Label{Column: "y"}}
	for _, name := range pipeline.Names() {
		spec, err := pipeline.Named(name)
		require.NoError(t, err)
		specs[name] = spec
	}
	for name, spec := range specs {
		b := spec.JSON()
		require.True(t, json.Valid(b), "%s: %s", name, b)
		again, err := pipeline.Parse(b)
		require.NoError(t, err, "%s: %s", name, b)
		assert.Equal(t, string(spec.YAML()), string(again.YAML()), name)
	}
}

// JSON has no word for an infinity.
func TestJSONOfInfiniteBorders(t *testing.T) {
	spec := &pipeline.Spec{Sparse: []pipeline.Group{{Columns: pipeline.Columns("x"), Ops: []pipeline.Op{
		pipeline.Bucketize(pipeline.Borders{List: []pipeline.Number{pipeline.Real(math.Inf(-1)), pipeline.Int(0),
			pipeline.Real(math.Inf(1))}})}}}}
	require.NoError(t, spec.Check())
	want := `{"sparse":[{"columns":["x"],"ops":[{"bucketize":{"borders":[-1e999,0,1e999]}}]}]}`
	assert.Equal(t, want, string(spec.JSON()))
}
