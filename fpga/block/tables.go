package block

import (
	"context"

	"github.com/millrace/millrace/fpga/program"
)

// Tables are what the operators of a program made of its tables, each once: many operators may share a table, and the
// memory of a program must not grow with the operators that use one. They are used while a program is compiled.
type Tables struct {
	// Context ends when nobody waits for the program any more.
	Context context.Context
	// Modules are the WebAssembly modules of the engine.
	Modules program.Modules
	// ThreadBytes is what the program's operators hold for each thread, beside blocks.
	ThreadBytes uint64

	made map[any]any
}

// NewTables returns the tables of a program of which no operator is ready.
func NewTables(ctx context.Context, modules program.Modules) *Tables {
	return &Tables{Context: ctx, Modules: modules, made: map[any]any{}}
}

// Once returns the value of a key, which prepare makes if there is none. The type of the key must belong to one
// operator, which has values of one type for it.
func Once[V any](t *Tables, key any, prepare func() (V, error)) (V, error) {
	if v, ok := t.made[key].(V); ok {
		return v, nil
	}
	v, err := prepare()
	if err == nil {
		t.made[key] = v
	}
	return v, err
}
