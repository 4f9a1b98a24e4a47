package pipeline

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
)

func TestJSONReadsBack(t *testing.T) {
	specs := map[string]*Spec{
		"everything": {
			Name: "a \"b\" \n <&>", Batch: 7, IDs: program.IDs32,
			Label: &Label{Column: "y", Ops: []Op{FillNull(Real(0.5))}},
			Dense: []Group{{Columns: Columns("", "x_0..x_3"), As: "f{i}",
				Ops: []Op{
					Clamp(With("min", Int(math.MinInt64)), With("max", Int(math.MaxInt64))),
					Log(With("add", Real(1e-30))),
				}}, {Columns: Columns("z")}},
			Sparse: []Group{{Columns: Columns("m[1..2]"), DropScores: true, Deduplicate: true,
				Ops: []Op{HexToInt(), FirstX(0)}}},
			Generated: []Group{{Columns: Columns("x"), Ops: []Op{
				Bucketize(Borders{LogSpaced: &LogSpaced{From: 1, To: 1e6, Count: 10}}, Arg{Name: "side", Value: Text("right")}),
				Bucketize(Borders{List: []Number{Int(-1), Real(0.25), Real(1e300)}})}}},
		},
	}
	specs["values"] = &Spec{Batch: 3,
		Values: []NamedValue{
			{As: "hour", From: Pattern{Text: "ts"}, Ops: []Op{FillNull(Int(0))}},
			{As: "pairs", Inputs: Columns("a", "hour"), Ops: []Op{Cartesian(), PositiveModulus(7)}},
		},
		Sparse: []Group{{Columns: Columns("pairs")}, {Inputs: Columns("pairs", "b"), As: "c", Deduplicate: true,
			Ops: []Op{Cartesian(Arg{Name: "max_length", Value: Int(9)}, Arg{Name: "overflow", Value: Text("fail")})}}},
	}
	specs["narrow"] = &Spec{Batch: 3, FitIDs: true, DenseType: program.DenseBFloat16, Label: &Label{Column: "y"}}
	for _, name := range Names() {
		spec, err := Named(name)
		require.NoError(t, err)
		specs[name] = spec
	}
	for name, spec := range specs {
		b := spec.JSON()
		require.True(t, json.Valid(b), "%s: %s", name, b)
		again, err := Parse(b)
		require.NoError(t, err, "%s: %s", name, b)
		assert.Equal(t, string(spec.YAML()), string(again.YAML()), name)
	}
}

// JSON has no word for an infinity.
func TestJSONOfInfiniteBorders(t *testing.T) {
	spec := &Spec{Sparse: []Group{{Columns: Columns("x"), Ops: []Op{
		Bucketize(Borders{List: []Number{Real(math.Inf(-1)), Int(0), Real(math.Inf(1))}})}}}}
	require.NoError(t, spec.Check())
	want := `{"sparse":[{"columns":["x"],"ops":[{"bucketize":{"borders":[-1e999,0,1e999]}}]}]}`
	assert.Equal(t, want, string(spec.JSON()))
}
