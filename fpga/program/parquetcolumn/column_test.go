package parquetcolumn

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

func TestKindOf(t *testing.T) {
	for physical, want := range map[format.Type]program.Kind{
		format.Boolean: program.Int64, format.Int32: program.Int64, format.Int64: program.Int64,
		format.Float: program.Float32, format.Double: program.Float64,
		format.ByteArray: program.Bytes, format.FixedLenByteArray: program.Bytes,
	} {
		assert.Equal(t, want, KindOf(physical.Kind()), physical.String())
	}
}

func TestWidens(t *testing.T) {
	assert.True(t, Widens(program.Float32, program.Float64))
	assert.False(t, Widens(program.Float64, program.Float32))
	assert.False(t, Widens(program.Int64, program.Float64))
	assert.False(t, Widens(program.Float64, program.Float64))
}

func TestLeafPart(t *testing.T) {
	for name, c := range map[string]struct {
		part program.Part
		want format.Part
	}{
		"no map": {program.NoPart, format.NoPart},
		"keys":   {program.MapKeys, format.MapKeys},
		"values": {program.MapValues, format.MapValues},
		"scores": {program.MapScores, format.MapScores},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, LeafPart(c.part)) })
	}
}

// TestIsList checks that a leaf of a map is a list where the map's values are lists, and that any other leaf is a list
// where the format says so.
func TestIsList(t *testing.T) {
	for name, test := range map[string]struct {
		leaf format.Leaf
		part program.Part
		want bool
	}{
		"a number":                  {format.Leaf{}, program.NoPart, false},
		"a list":                    {format.Leaf{List: true, MaxRep: 1}, program.NoPart, true},
		"a map's numbers":           {format.Leaf{List: true, MaxRep: 1}, program.MapValues, false},
		"a map's lists":             {format.Leaf{List: true, MaxRep: 2}, program.MapValues, true},
		"a map's lists of scores":   {format.Leaf{List: true, MaxRep: 2}, program.MapScores, true},
		"a map's numbers by itself": {format.Leaf{Part: format.MapValues, List: true, MaxRep: 1}, program.NoPart, true},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, IsList(&test.leaf, test.part)) })
	}
}

func TestHoldsPart(t *testing.T) {
	values := format.Leaf{Part: format.MapValues, List: true, MaxRep: 1}
	assert.True(t, HoldsPart(&values, program.MapValues))
	assert.True(t, HoldsPart(&values, program.NoPart))
	assert.False(t, HoldsPart(&values, program.MapKeys))
	assert.False(t, HoldsPart(&format.Leaf{List: true, MaxRep: 1}, program.MapKeys))
}
