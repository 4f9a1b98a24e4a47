// Package memory maps the memory of a drive: the DRAM that hosts and engines share, and flash that lies in memory.
//
// # Overview
//
// [Map] maps bytes that take up room once they are written. [Zero] and [ClearUsed] make them zeros again: the first
// returns whole pages to the system, the second keeps the huge pages that were used for the next user. [Retire] is for
// the memory of a closed drive, of which a host in the process may still hold a view. [IsFault] tells a panic that such
// memory, or the mapping of a file, can cause from another.
//
// # Concurrency
//
// The functions keep nothing. Bytes that are being cleared are the caller's alone.
//
// # Errors
//
// Map fails if the system has no room for the addresses.
package memory

import "runtime"

// IsFault reports whether a panic is an access to memory that could not be read.
func IsFault(panicked any) bool {
	fault, ok := panicked.(interface {
		runtime.Error
		Addr() uintptr
	})
	return ok && fault.Addr() != 0
}
