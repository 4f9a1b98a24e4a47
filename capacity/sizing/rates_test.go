package sizing

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/fpga/timing"
)

// TestRatesOfTheModel: the units, the memory and the flash of a drive are constraints of their own.
func TestRatesOfTheModel(t *testing.T) {
	w, err := capacity.CostOfRow("rm5", 8)
	require.NoError(t, err)
	r := RatesOf(timing.SmartSSD(), capacity.BatchOf(w))
	assert.InEpsilon(t, 8*223e6/(504+840+42), r.P.Value, 1e-9, "8 elements take one of 1386 values a cycle each")
	assert.Contains(t, r.P.Source, "decode binds")
	assert.InEpsilon(t, 0.8*19.2e9, r.Memory.Value, 1e-9)
	card := RatesOf(timing.U280(), capacity.BatchOf(w))
	assert.InEpsilon(t, 2*r.P.Value, card.P.Value, 1e-9, "twice the units")

	serial := timing.SmartSSD()
	serial.Overlap = false
	one := RatesOf(serial, capacity.BatchOf(w))
	assert.Zero(t, one.Memory.Value)
	assert.Less(t, one.P.Value, timing.SmartSSDMeasuredP2P/w.InBytes(), "the moves are a part of each mini-batch's time")
}

// TestJobOfRM5: a row sends 9,412 bytes of tensors to the trainer, 5,884 with ids of 4 bytes.
func TestJobOfRM5(t *testing.T) {
	j, err := JobOf("rm5", 8)
	require.NoError(t, err)
	assert.InDelta(t, 8908, j.RowIn.Value, 0)
	assert.InDelta(t, 4*504+4+8*(840+42)+4*84, j.RowOut.Value, 0)
	assert.InDelta(t, 5884, j.RowOut.Low, 0)
	assert.Zero(t, j.T.Value, "the paper states none")
	assert.Greater(t, j.KernelsCore.Value, j.LoopsCore.Value)
}

func TestJobOfDPP(t *testing.T) {
	j, err := JobOf("dpp-rm3", 8)
	require.NoError(t, err)
	assert.InEpsilon(t, 0.22e9/36.9e3, j.RowOut.Value, 1e-9)
	assert.InEpsilon(t, 36.9e3/18, j.DPPCore.Value, 1e-9)
	assert.InDelta(t, 23.2e3, j.ReadSize.Value, 0)
	for _, f := range []Figure{j.T, j.Bytes, j.RowIn, j.RowOut, j.DPPCore, j.ReadSize} {
		assert.Equal(t, Published, f.Kind)
	}
}
