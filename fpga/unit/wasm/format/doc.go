// Package format reads WebAssembly modules with operators of one's own, and rewrites a function of a module so that it
// computes the same bits wherever it runs.
//
// # Overview
//
// An operator is an exported function of numbers, as (int64, float64) -> int64. It is a function of one row: [Rewrite]
// makes a module that calls it once for every row of a block, and before each call memory and globals are what they
// were when the module was instantiated. So no row sees another, and no cut of the rows can show. The rewritten module
//
//   - makes the NaN of every float operation the canonical one (7fc00000h, 7ff8000000000000h). Moves keep bits, as do
//     abs, neg and copysign, which become operations of integers;
//   - counts work in fuel: the length of a function when it is entered, the length of a loop at each turn. A call that
//     needs more than [Fuel] traps, on every machine at the same row;
//   - has the module's own memory behind the block's columns, so that an address outside it is outside all memory;
//   - notes which bytes the function writes, and restores them before the next row;
//   - has a memory that does not grow: memory.grow yields -1, and memory.size the pages that the module declares.
//
// Functions that the operator does not reach are left out.
//
// # Limits
//
// limits.go has every limit. All are held before a runtime gets a byte of the module: the locals of every body, and for
// an operator the steps of compiling it. A runtime's compiler may take time and memory of a power of what is in a
// function, so that some kilobytes cost gigabytes; effort.go counts what it multiplies.
//
// # What is refused
//
// Imports, a start function, calls through tables, recursion, more than one memory, shared memory, passive data,
// vectors, references, bulk memory, several results, and whatever passes the limits of limits.go. A module that clang
// builds with "--target=wasm32 -O2 -mno-bulk-memory -nostdlib -Wl,--no-entry" has none of these, unless the source
// does.
//
// # Concurrency
//
// All types are plain data, which nothing changes once it is made.
//
// # Errors
//
// [Parse] and [Rewrite] return a *[ModuleError], which names the byte and unwraps to [ErrModule]. The package checks
// what the rewriting depends on: indices, immediates, nesting. Types are left to the runtime's validation of the
// rewritten module.
package format
