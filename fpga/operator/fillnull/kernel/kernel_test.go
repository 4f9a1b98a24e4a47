package kernel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/program"
)

// TestFillsZeros checks that only the bits of 0 count as the 0 that a decoder leaves where values are null.
func TestFillsZeros(t *testing.T) {
	for _, c := range []struct {
		kind program.Kind
		op   fillnull.Op
		want bool
	}{
		{program.Int64, fillnull.Op{Float: 1}, true},
		{program.Int64, fillnull.Op{Int: 1}, false},
		{program.Float32, fillnull.Op{Int: 1}, true},
		{program.Float64, fillnull.Op{Float: math.Copysign(0, -1)}, false},
	} {
		s, err := Compile(c.op, c.kind, nil)
		require.NoError(t, err)
		assert.Equal(t, c.want, s.(block.NullFiller).FillsZeros(), "%v %+v", c.kind, c.op)
	}
}
