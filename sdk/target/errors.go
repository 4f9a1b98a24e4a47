package target

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// ErrEngine says that the engine refused a slice or answered against its contract: a fault of the software or of a
// damaged memory, never of the data. The error is an *EngineError.
var ErrEngine = errors.New("engine fault")

// EngineError is an answer of the engine that a host cannot act on. It wraps ErrEngine.
type EngineError struct {
	Partition string
	State     program.State
	Message   string
}

// Error names the partition, the state of the slice and the fault.
func (e *EngineError) Error() string {
	return fmt.Sprintf("%s: %v: %v: %s", e.Partition, ErrEngine, e.State, e.Message)
}

// Unwrap returns ErrEngine.
func (e *EngineError) Unwrap() error { return ErrEngine }

// UnreadBlockError is a move that failed because the drive could not read a block of its flash.
type UnreadBlockError struct {
	Device uint64 // byte of the drive at which the block begins
	LBA    uint64 // number of the block
	Err    error  // what the drive said
}

// Error names the block.
func (e *UnreadBlockError) Error() string { return fmt.Sprintf("block %d: %v", e.LBA, e.Err) }

// Unwrap returns the drive's error.
func (e *UnreadBlockError) Unwrap() error { return e.Err }
