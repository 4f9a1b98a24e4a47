package kernel

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/program"
)

// TestBoundsForOthers checks which clamps another step may take over: those of float32 that keep a value as it is.
func TestBoundsForOthers(t *testing.T) {
	for _, c := range []struct {
		kind program.Kind
		op   clamp.Op
		want bool
	}{
		{program.Float32, clamp.Op{FloatLo: -1, FloatHi: 2}, true},
		{program.Float32, clamp.Op{FloatLo: 2, FloatHi: -1}, false},
		{program.Float64, clamp.Op{FloatLo: -1, FloatHi: 2}, false},
		{program.Int64, clamp.Op{IntLo: -1, IntHi: 2}, false},
	} {
		s, err := Compile(c.op, c.kind, nil)
		require.NoError(t, err)
		low, high, ok := s.(block.Float32Bounder).Float32Bounds()
		assert.Equal(t, c.want, ok, "%v %+v", c.kind, c.op)
		if ok {
			assert.Equal(t, [2]float32{-1, 2}, [2]float32{low, high})
		}
	}
}
