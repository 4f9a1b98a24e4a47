package engine

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// wasmCombiner is the operator wasm.
type wasmCombiner struct {
	function *wasm.Function
	named    string
	out      program.Kind
}

// wasmCombiner makes a function of a module ready, once for all steps that call it.
func (p *preparedTables) wasmCombiner(o program.Wasm) (combiner, error) {
	return prepareOnce(p.functions, o, func() (combiner, error) {
		module, ok := p.modules[o.Module]
		if !ok {
			return nil, fmt.Errorf("wasm: module %v is not here: activate an image that holds it, or name its file", o.Module)
		}
		var signature format.Signature
		for _, k := range o.Inputs() {
			signature.In = append(signature.In, wasmKind(k))
		}
		signature.Out = wasmKind(o.Out)
		function, err := wasm.Compile(p.ctx, module, o.Function, signature, wasm.Options{})
		if err != nil {
			return nil, fmt.Errorf("module %.12v: %w", o.Module, err)
		}
		if err := p.wasm.Add(function.Rewritten()); err != nil {
			return nil, err
		}
		return &wasmCombiner{function: function, named: o.Function, out: o.Out}, nil
	})
}

// wasmKind returns the unit's name of a kind.
func wasmKind(k program.Kind) format.Kind {
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

// mostElements implements combiner.
func (*wasmCombiner) mostElements([]int64) int64 { return 1 }

// combine implements combiner.
func (c *wasmCombiner) combine(to *graphValue, inputs []*chainValues, rows int) error {
	var from [program.MaxInputs]wasm.Column
	for i, in := range inputs {
		switch in.kind {
		case program.Int64:
			from[i].Int64s = in.int64s
		case program.Float32:
			from[i].Float32s = in.float32s
		case program.Float64:
			from[i].Float64s = in.float64s
		}
	}
	to.beginScalars(rows, inputs...)
	v := &to.view
	v.kind = c.out
	var column wasm.Column
	switch c.out {
	case program.Float32:
		to.float32s = resize(&to.float32s, rows)
		v.int64s, v.float32s, column.Float32s = nil, to.float32s, to.float32s
	case program.Float64:
		to.float64s = resize(&to.float64s, rows)
		v.int64s, v.float64s, column.Float64s = nil, to.float64s, to.float64s
	default:
		column.Int64s = to.int64s
	}
	if err := c.function.Run(column, from[:len(inputs)], rows, v.valid); err != nil {
		return fmt.Errorf("function %q: %w", c.named, err)
	}
	return nil
}
