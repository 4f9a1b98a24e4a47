// Package program holds the device program, which is a lowered feature pipeline, and the slice, one unit of its
// execution.
//
// # Overview
//
// A host lowers a pipeline (sdk/pipeline/lowering) to a [Program], writes its bytes once per job into the drive's
// memory (SLM), and then runs it slice by slice. A [Slice] is a run of rows of one mini-batch times a run of columns.
// The engine (fpga/engine) answers every slice with a [Result].
//
//	Program   columns in order of execution; each column is read once and feeds one or more sinks
//	  Column  a leaf column: name, kind of value, scalar or list
//	    Sink  where the values go (label, dense column j, key f) and the chain of operators on the way
//	Slice     rows of the mini-batch, where its tensors lie in the output range, and the tasks
//	  Task    one column, some rows, one window of its column chunk, a cursor
//	Result    per task: rows done, the cursor to continue at, what was missing
//
// A map of the source is two or three columns that are read together ([Part]); a sink of its values takes the value
// of one key ([Pick]). A slice has a task for each of them, one behind the other, for the same rows.
//
// A [Graph] makes values of several columns, which are read together too, a row of each beside the same row of the
// others. Its steps take columns and earlier steps; a step of several inputs has a [Combiner]. Chains of one input
// are sinks of their column, as without graphs.
//
// A program names units with a version and is matched against the image's list. It is never stored and never part
// of a job's identity, so its layout may change with the major version; minor versions only add optional sections.
//
// # Memory
//
// Everything inside a slice is an offset into one of seven memory ranges; nothing is an address. The ranges, in this
// order: 0 program, 1 input, 2 dictionaries, 3 scratch, 4 output, 5 result, 6 tables. The last one holds the lookup
// tables of vocabularies ([LookupTable]), which are too large for the program's bytes; a program without any needs six.
//
// # Wire form
//
// Package wire writes and reads the bytes of programs, slices and results. Numbers of enumerations are part of the wire
// form.
//
// # Concurrency
//
// All types are plain data. A Program may be read by any number of goroutines once built.
//
// # Errors
//
// A program that contradicts itself or passes a limit is refused with [ErrInvalid], see [Program.Validate].
//
// # Debugging
//
// [Program.String] renders a program as text, one line a sink.
package program
