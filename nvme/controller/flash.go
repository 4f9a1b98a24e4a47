package controller

// Flash is the storage under namespace 1. Methods are safe for concurrent use; the controller checks ranges and never
// asks for bytes past Size. Calls cover whole logical blocks. ReadAt and WriteAt return how many bytes from the first
// on they have read or written; any error, and fewer bytes than len(p), fail the command.
type Flash interface {
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	Sync() error                // everything written before the call is on stable storage when it returns
	Size() int64                // bytes, constant
	Discard(off, n int64) error // bytes [off, off+n) read as zeros afterwards and need no space
	ReadOnly() bool             // constant; the controller refuses writes before they get here
}
