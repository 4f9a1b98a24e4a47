// Package reference computes wasm by its definition.
package reference

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	unit "github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// Unit is the operator's unit.
const Unit = wasm.Unit

// kinds has the unit's numbers of the kinds.
var kinds = map[program.Kind]format.Kind{program.Int64: format.Int64, program.Float32: format.Float32,
	program.Float64: format.Float64}

// New implements [rowvalue.Constructor].
func New(op rowvalue.Operator, _ []program.ValueType, env *rowvalue.Environment) (rowvalue.Reference, error) {
	o := op.(wasm.Op)
	module, ok := env.Modules[o.Module]
	if !ok {
		return nil, fmt.Errorf("module %v is not here: name its file", o.Module)
	}
	var signature format.Signature
	for _, k := range o.Inputs() {
		signature.In = append(signature.In, kinds[k])
	}
	signature.Out = kinds[o.Out]
	f, err := unit.NewReference(module, o.Function, signature)
	if err != nil {
		return nil, err
	}
	return func(inputs []any) (any, error) {
		for _, in := range inputs {
			if in == nil {
				return nil, nil
			}
		}
		value, err := f.Call(inputs)
		var trap *format.TrapError
		if errors.As(err, &trap) {
			return nil, fmt.Errorf("%w: function %q: %s", rowvalue.ErrData, o.Function, trap.Reason)
		}
		return value, err
	}, nil
}
