package kernel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/program"
)

// bounds is a step that bounds values if ok.
type bounds struct {
	low, high float32
	ok        bool
}

func (b bounds) Float32Bounds() (low, high float32, ok bool) { return b.low, b.high, b.ok }

func (b bounds) Run(*block.Buffers, *block.Values) error { return nil }

// TestLogTakesOverBounds checks that a log behind a step that only bounds its values does the work of both.
func TestLogTakesOverBounds(t *testing.T) {
	s, err := Compile(log.Op{Add: 1}, program.Float32, nil)
	require.NoError(t, err)
	fuser := s.(block.Fuser)
	assert.Nil(t, fuser.Fuse(s), "a step without bounds")
	assert.Nil(t, fuser.Fuse(bounds{ok: false}), "a step that does something else")
	assert.Nil(t, fuser.Fuse(nil), "nothing")
	fused := fuser.Fuse(bounds{0, 3, true})
	require.NotNil(t, fused)
	for step, want := range map[block.Step]float32{s: float32(math.Log(10)), fused: float32(math.Log(4))} {
		v := block.Values{Kind: program.Float32, Count: 1, Float32s: []float32{9}}
		require.NoError(t, step.Run(new(block.Buffers), &v))
		assert.InDelta(t, want, v.Float32s[0], 1e-6)
	}
}
