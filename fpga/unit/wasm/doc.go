// Package wasm computes operators of one's own: functions of a WebAssembly module that take numbers of a row and yield
// one.
//
// # Overview
//
// [Compile] makes a [Function] of an exported function; [Function.Run] computes it for the rows of columns. The value
// of a row depends on the row's inputs only: memory and globals are what the module says before every row, as the
// rewriting of package format has it, so that a function cannot see how rows are cut into blocks, slices and
// mini-batches. [Reference] calls the function in a new instance for every row, by an interpreter.
//
// The runtime is wazero: its compiler on amd64 and arm64, its interpreter elsewhere, with the same bits. A row with a
// null among its inputs is null, and the function is not called for it.
//
// # Bounds
//
// A module has at most format.MaxModule bytes and format.MaxPages pages of memory, which does not grow. A row has
// format.Fuel; the code of a call that runs out of it traps at the same row everywhere. There are no calls out of the
// module. The runtime gets the rewritten module only, which takes it at most format.MaxWork steps to compile: it cannot
// be stopped while it compiles.
//
// # Concurrency
//
// A Function may run any number of blocks at once. Each takes an instance of the module, with memory of its own; idle
// instances are kept, and Function.mu guards them. A Function has no Close: what the compiler made is freed with the
// garbage.
//
// # Errors
//
// A module that is refused is a *format.ModuleError. A row that traps is a *format.TrapError.
package wasm
