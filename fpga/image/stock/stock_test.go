package stock

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/internal/goldenfile"
)

// TestStockGolden compares the id of the stock image with a file, which go generate ./fpga/operator writes. The id
// changes when a unit, its version, a known answer or the program's wire form does.
func TestStockGolden(t *testing.T) {
	b, err := Image()
	require.NoError(t, err)
	again, err := Image()
	require.NoError(t, err)
	require.Equal(t, b, again)
	m, err := image.Parse(b)
	require.NoError(t, err)
	goldenfile.Text(t, filepath.Join("testdata", "stock.id"), m.ID.String()+"\n")
	assert.Equal(t, Interface(), m.Interface())
}

func TestStockHasEveryUnitAndProvesIt(t *testing.T) {
	b, err := Image()
	require.NoError(t, err)
	m, err := image.Parse(b)
	require.NoError(t, err)
	proved := map[int]bool{}
	for _, v := range m.Spec.SelfTest {
		for _, u := range v.Units {
			proved[u] = true
		}
		p, err := operator.Unmarshal(v.Program)
		require.NoError(t, err, v.Name)
		require.NoError(t, p.Validate(), v.Name)
		_, err = wire.UnmarshalSlice(v.Args)
		require.NoError(t, err, v.Name)
	}
	known := slices.DeleteFunc(program.Known(), func(u program.UnitRef) bool {
		return u.Unit == wasm.Unit // the image has no module
	})
	require.Len(t, m.Spec.Units, len(known))
	for i, u := range known {
		got := m.Spec.Units[i]
		assert.Equal(t, uint16(u.Unit), got.Number)
		assert.Equal(t, u.Version, got.Version)
		assert.Equal(t, u.Unit.String(), got.Name)
		assert.True(t, proved[int(u.Unit)], "no known answer for %s: declare Answers in its folder of fpga/operator", u.Unit)
	}
}

// TestStockHasAVectorOfEveryOperator checks that each operator has a self-test of its own, so that a drive that fails
// one names the operator. The vectors of vocabulary and wasm need a lookup table and a module.
func TestStockHasAVectorOfEveryOperator(t *testing.T) {
	b, err := Image()
	require.NoError(t, err)
	m, err := image.Parse(b)
	require.NoError(t, err)
	others := []program.Unit{program.UnitParquet, program.UnitText, program.UnitMap, vocabulary.Unit, wasm.Unit}
	for _, u := range program.Known() {
		own := slices.ContainsFunc(m.Spec.SelfTest, func(v image.Vector) bool { return v.Name == u.Unit.String() })
		assert.Equal(t, !slices.Contains(others, u.Unit), own,
			"%s has a vector of its own: declare Answers in its folder of fpga/operator", u.Unit)
	}
}

// No synthesis of these units has been run, so the stock image may not state a value that only synthesis measures.
func TestStockStatesNoHardwareFigure(t *testing.T) {
	b, err := Image()
	require.NoError(t, err)
	m, err := image.Parse(b)
	require.NoError(t, err)
	assert.Nil(t, m.Spec.Parameters)
	assert.Empty(t, m.Spec.Unsourced())
	assert.Equal(t, image.Resources{}, m.Spec.Resources)
	for _, u := range m.Spec.Units {
		assert.Empty(t, u.Source, u.Name)
	}
}
