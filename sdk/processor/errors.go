package processor

import "errors"

// ErrClosed says that a processor was closed before a stream was opened on it.
var ErrClosed = errors.New("processor is closed")

// ErrFirstBatch says that a run's first mini-batch is out of range: see Run.FirstBatch.
var ErrFirstBatch = errors.New("a first mini-batch out of range")

// errStreamClosed ends the work of a stream that was closed.
var errStreamClosed = errors.New("stream is closed")
