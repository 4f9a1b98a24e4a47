package processor

import "errors"

// ErrClosed says that a processor was closed before a stream was opened on it.
var ErrClosed = errors.New("processor is closed")

// errStreamClosed ends the work of a stream that was closed.
var errStreamClosed = errors.New("stream is closed")
