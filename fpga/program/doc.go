// Package program holds the device program, the wire form of a lowered feature pipeline, and the slice, one unit of
// its execution.
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
// All numbers are little-endian, all structures are multiples of 8 bytes, reserved bytes are zero and checked.
// A program is a header, then sections; see wire.go for the fields.
//
//	header   magic "MILLPROG", major, minor, length of the whole, CRC32C of all other bytes
//	section  id, flags (bit 0: required), length of the payload; payload, padded to 8
//
// A reader skips an unknown section that is not required and refuses an unknown section that is required. Operators are
// (unit, version, parameters); an unknown unit or version is refused. A slice is a header of 128 bytes and 128 bytes
// for each task; a result is a header of 128 bytes, 64 bytes for each task, and a message. They carry no checksum: they
// live as long as one command, whose transport has its own.
//
// [Program.Marshal], [Slice.AppendTo] and [Result.AppendTo] write; [Unmarshal], [Slice.DecodeFrom] and
// [Result.DecodeFrom] read. AppendTo and DecodeFrom of slices and results reuse what they are given and allocate
// nothing once it has grown.
//
// # Concurrency
//
// All types are plain data. A Program may be read by any number of goroutines once built.
//
// # Errors
//
// [Unmarshal] refuses a required field that it does not know ([ErrUnknown], with an [UnknownError] that names the
// field), damaged bytes ([ErrCorrupt]), bytes that another major version wrote ([ErrVersion]), and a program that
// contradicts itself ([ErrInvalid], see [Program.Validate]). Counts are checked against the bytes that are left
// before anything is allocated.
//
// # Debugging
//
// [Program.String] renders a program as text, one line a sink.
package program
