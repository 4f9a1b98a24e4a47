// Package kernel makes the operator wasm, a function of a module, ready to run over blocks.
package kernel

import (
	"fmt"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// Unit is the unit that computes the operator.
const Unit = wasm.Unit

// combiner calls the function for every row.
type combiner struct {
	function *unit.Function
	named    string
	out      program.Kind
}

// totalKey is the key of what the functions of a program take together.
type totalKey struct{}

// CompileCombiner makes the function ready, once for all steps that call it.
func CompileCombiner(c program.Combiner, t *block.Tables) (block.Combiner, error) {
	o := c.(wasm.Op)
	return block.Once(t, o, func() (block.Combiner, error) {
		module, ok := t.Modules[o.Module]
		if !ok {
			return nil, fmt.Errorf("wasm: module %v is not here: activate an image that holds it, or name its file",
				o.Module)
		}
		var signature format.Signature
		for _, k := range o.Inputs() {
			signature.In = append(signature.In, kindOf(k))
		}
		signature.Out = kindOf(o.Out)
		function, err := unit.Compile(t.Context, module, o.Function, signature, unit.Options{})
		if err != nil {
			return nil, fmt.Errorf("module %.12v: %w", o.Module, err)
		}
		total, _ := block.Once(t, totalKey{}, func() (*format.Total, error) { return new(format.Total), nil })
		if err := total.Add(function.Rewritten()); err != nil {
			return nil, err
		}
		t.ThreadBytes = total.Bytes()
		return &combiner{function: function, named: o.Function, out: o.Out}, nil
	})
}

// kindOf returns the unit's name of a kind.
func kindOf(k program.Kind) format.Kind {
	switch k {
	case program.Int64:
		return format.Int64
	case program.Float32:
		return format.Float32
	case program.Float64:
		return format.Float64
	}
	return 0
}

// Combine implements block.Combiner.
func (c *combiner) Combine(to *block.GraphValue, inputs []*block.Values, rows int) error {
	var from [program.MaxInputs]unit.Column
	for i, in := range inputs {
		switch in.Kind {
		case program.Int64:
			from[i].Int64s = in.Int64s
		case program.Float32:
			from[i].Float32s = in.Float32s
		case program.Float64:
			from[i].Float64s = in.Float64s
		}
	}
	to.BeginScalars(rows, inputs...)
	v := &to.View
	v.Kind = c.out
	var column unit.Column
	switch c.out {
	case program.Float32:
		to.Float32s = block.Resize(&to.Float32s, rows)
		v.Int64s, v.Float32s, column.Float32s = nil, to.Float32s, to.Float32s
	case program.Float64:
		to.Float64s = block.Resize(&to.Float64s, rows)
		v.Int64s, v.Float64s, column.Float64s = nil, to.Float64s, to.Float64s
	default:
		column.Int64s = to.Int64s
	}
	if err := c.function.Run(column, from[:len(inputs)], rows, v.Valid); err != nil {
		return fmt.Errorf("function %q: %w", c.named, err)
	}
	return nil
}
