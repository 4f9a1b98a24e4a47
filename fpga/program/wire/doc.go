// Package wire writes and reads the bytes of programs, slices and results (package program).
//
// # Wire form
//
// All numbers are little-endian, all structures are multiples of 8 bytes, reserved bytes are zero and checked.
// A program is a header, then sections; see form.go for the fields.
//
//	header   magic "MILLPROG", major, minor, length of the whole, CRC32C of all other bytes
//	section  id, flags (bit 0: required), length of the payload; payload, padded to 8
//
// A reader skips an unknown section that is not required and refuses an unknown section that is required. Operators are
// (unit, version, parameters); an unknown unit or version is refused. A slice is a header of 128 bytes and 128 bytes
// for each task; a result is a header of 128 bytes, 64 bytes for each task, and a message. They carry no checksum: they
// live as long as one command, whose transport has its own.
//
// [Marshal], [AppendSlice] and [AppendResult] write; [Unmarshal], [DecodeSlice] and [DecodeResult] read. The functions
// for slices and results reuse what they are given and allocate nothing once it has grown.
//
// # Concurrency
//
// The package keeps no state. Any number of goroutines may call it, with values that no other goroutine changes.
//
// # Errors
//
// [Unmarshal] refuses a required field that it does not know ([ErrUnknown], with an [UnknownError] that names the
// field), damaged bytes ([ErrCorrupt]), bytes that another major version wrote ([ErrVersion]), and a program that
// contradicts itself (program.ErrInvalid, see program.Program.Validate). Counts are checked against the bytes that are
// left before anything is allocated.
package wire
