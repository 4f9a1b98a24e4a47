package program_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/onehot"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/program"
)

// halving is an operator that knows only the most elements that it makes.
type halving struct{ positivemodulus.Op }

func (halving) MostElements(n uint64) uint64 { return n / 2 }

// pairing is a combiner that knows only the most elements that it makes.
type pairing struct{ program.Combiner }

func (pairing) Unit() program.Unit { return cartesian.Unit }

func (pairing) MostElements(inputs []program.Extent) uint64 {
	return inputs[0].Elements + inputs[1].Elements
}

// TestMeanElements takes operators that say their mean length, operators that say the most elements, and others.
func TestMeanElements(t *testing.T) {
	var assumed []string
	assume := func(format string, args ...any) { assumed = append(assumed, fmt.Sprintf(format, args...)) }
	list, scalar := program.ValueType{Kind: program.Int64, List: true}, program.ValueType{Kind: program.Float32}
	for name, c := range map[string]struct {
		got, want float64
	}{
		"cut":             {program.MeanElements(firstx.Op{N: 3}, 4.5, assume), 3},
		"not cut":         {program.MeanElements(firstx.Op{N: 9}, 4.5, assume), 4.5},
		"of one length":   {program.MeanElements(positivemodulus.Op{M: 5}, 4.5, assume), 4.5},
		"dense columns":   {program.MeanElements(onehot.Op{Classes: 7}, 1, assume), 7},
		"the most":        {program.MeanElements(halving{}, 6.5, assume), 3},
		"combined":        {program.MeanCombined(cartesian.Op{MaxLength: 5}, []float64{3, 2.5}, list, assume), 5},
		"the most of two": {program.MeanCombined(pairing{}, []float64{3, 2.5}, list, assume), 6},
		"a scalar":        {program.MeanCombined(computescore.Op{}, []float64{3, 2.5}, scalar, assume), 1},
	} {
		assert.InDelta(t, c.want, c.got, 0, name)
	}
	assert.ElementsMatch(t, []string{
		"lists have their mean length where they are cut: the first 9 of 4.5 ids are all of them",
		"positive_modulus makes as many ids as it can of lists of their mean length: 3",
		"cartesian makes as many ids as it can of lists of their mean length: 6",
	}, assumed)
}
