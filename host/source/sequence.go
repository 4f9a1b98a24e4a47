package source

import (
	"context"
	"io"
)

// Sequence reads a source from its first byte to its last one, in reads of LongestRead bytes. It retries temporary
// failures. It may be used from one goroutine at a time.
type Sequence struct {
	ctx    context.Context
	source Source
	retry  Retry
	at     int64  // The bytes of the source that were read end here.
	piece  []byte // bytes that were read and not returned
	buffer []byte
	err    error // A read failed with this error; it stays.
}

// NewSequence returns a reader of the source's bytes. It ends with ctx, and does not close the source.
func NewSequence(ctx context.Context, s Source, retry Retry) *Sequence {
	return &Sequence{ctx: ctx, source: s, retry: retry}
}

// Read implements io.Reader.
func (s *Sequence) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if len(s.piece) == 0 {
		if err := s.readPiece(); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.piece)
	s.piece = s.piece[n:]
	return n, nil
}

// readPiece reads the next bytes of the source.
func (s *Sequence) readPiece() error {
	if s.err != nil {
		return s.err
	}
	if err := context.Cause(s.ctx); err != nil {
		return err
	}
	size := min(s.source.Size()-s.at, LongestRead)
	if size <= 0 {
		return io.EOF
	}
	if int64(len(s.buffer)) < size {
		s.buffer = make([]byte, size)
	}
	s.err = s.retry.Do(s.ctx, s.source.Name(), func(ctx context.Context) error {
		_, err := readFull(ctx, s.source, s.buffer[:size], s.at)
		return err
	})
	if s.err != nil {
		return s.err
	}
	s.at, s.piece = s.at+size, s.buffer[:size]
	return nil
}
