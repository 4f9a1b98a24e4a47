package reference

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// callFunction returns what a function of a module makes of a row's values: nothing if one is null.
func (e *evaluator) callFunction(o program.Wasm, inputs []any) (any, error) {
	for _, in := range inputs {
		if in == nil {
			return nil, nil
		}
	}
	f := e.functions[o]
	if f == nil {
		module, ok := e.modules[o.Module]
		if !ok {
			return nil, fmt.Errorf("module %v is not here: name its file", o.Module)
		}
		var signature format.Signature
		for _, k := range o.Inputs() {
			signature.In = append(signature.In, functionKind(k))
		}
		signature.Out = functionKind(o.Out)
		var err error
		if f, err = wasm.NewReference(module, o.Function, signature); err != nil {
			return nil, err
		}
		e.functions[o] = f
	}
	value, err := f.Call(inputs)
	var trap *format.TrapError
	if errors.As(err, &trap) {
		return nil, fmt.Errorf("%w: function %q: %s", ErrData, o.Function, trap.Reason)
	}
	return value, err
}

// functionKind returns the unit's name of a kind.
func functionKind(k program.Kind) format.Kind {
	return map[program.Kind]format.Kind{program.Int64: format.Int64, program.Float32: format.Float32,
		program.Float64: format.Float64}[k]
}
