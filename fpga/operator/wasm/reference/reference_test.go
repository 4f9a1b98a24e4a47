package reference

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
	"github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

func TestKnownAnswers(t *testing.T) {
	// The function divides its first input by the second.
	module := wasmtest.Module{Pages: 1, Functions: []wasmtest.Function{{Name: "f",
		Params: []byte{wasmtest.I64, wasmtest.I64}, Results: []byte{wasmtest.I64},
		Code: wasmtest.Code(wasmtest.Get(0), wasmtest.Get(1), wasmtest.Op(0x7f))}}}.Bytes()
	op := wasm.Op{Module: sha256.Sum256(module), Function: "f",
		In: [program.MaxInputs]program.Kind{program.Int64, program.Int64}, Out: program.Int64}
	env := rowvalue.NewEnvironment(&program.Program{Modules: program.Modules{op.Module: module}})
	rowvaluetest.CheckIn(t, env, New, []rowvalue.Answer{
		{Op: op, Inputs: []any{int64(30), int64(4)}, Want: int64(7)},
		{Op: op, Inputs: []any{int64(30), int64(0)}, Fails: true},
		{Op: op, Inputs: []any{int64(30), nil}, Want: nil},
	})
	_, err := New(op, nil, rowvalue.NewEnvironment(&program.Program{}))
	require.ErrorContains(t, err, "is not here: name its file")
}
