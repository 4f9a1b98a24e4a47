//go:build cgo

package main

/*
// Two functions of DuckDB's C interface that its Go bindings leave out, declared as duckdb.h does: without them DuckDB
// gathers a whole result before its first row can be read.
#cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-all
extern int duckdb_pending_prepared_streaming(void *prepared_statement, void **out_result);
*/
import "C"

import (
	"unsafe"

	"github.com/duckdb/duckdb-go/mapping"
)

// pendingStreaming begins a statement whose chunks are computed as they are fetched.
func pendingStreaming(s mapping.PreparedStatement, out *mapping.PendingResult) bool {
	var p unsafe.Pointer
	state := C.duckdb_pending_prepared_streaming(s.Ptr, &p)
	out.Ptr = p
	return state == 0
}
