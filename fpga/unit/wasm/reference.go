package wasm

import (
	"context"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero"

	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// Reference computes an operator by its definition: the function is called in a new instance for every row, by the
// runtime's interpreter.
type Reference struct {
	module   *format.Rewritten
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

// NewReference makes the reference of an exported function.
func NewReference(module []byte, name string, of format.Signature) (*Reference, error) {
	rewritten, err := format.Rewrite(module, name, of)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	r := &Reference{module: rewritten,
		runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())}
	if r.compiled, err = r.runtime.CompileModule(ctx, rewritten.Bytes); err != nil {
		return nil, &format.ModuleError{Offset: -1, Detail: err.Error()}
	}
	return r, nil
}

// Call returns the value of a row: an int64, a float32 or a float64, of the kinds of the inputs. A function that traps
// is a *format.TrapError of row 0.
func (r *Reference) Call(inputs []any) (any, error) {
	ctx := context.Background()
	m, err := r.runtime.InstantiateModule(ctx, r.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("wasm reference: %w", err)
	}
	defer m.Close(ctx)
	var parameters []uint64
	for _, in := range inputs {
		switch x := in.(type) {
		case int64:
			parameters = append(parameters, uint64(x))
		case float32:
			parameters = append(parameters, uint64(math.Float32bits(x)))
		case float64:
			parameters = append(parameters, math.Float64bits(x))
		}
	}
	got, err := m.ExportedFunction(format.ExportCall).Call(ctx, parameters...)
	if err != nil {
		return nil, &format.TrapError{Reason: format.TrapReason(err, int64(m.ExportedGlobal(format.ExportFuel).Get()))}
	}
	switch r.module.Signature.Out {
	case format.Float32:
		return math.Float32frombits(uint32(got[0])), nil
	case format.Float64:
		return math.Float64frombits(got[0]), nil
	}
	return int64(got[0]), nil
}
