package source

import (
	"context"
	"errors"
	"io"
)

// Source is the bytes of one partition, wherever they lie. The methods are safe for concurrent use.
type Source interface {
	// Name names the source in errors and reports: its URI without credentials and query, or its path.
	Name() string
	// Size returns the number of bytes.
	Size() int64
	// Identity returns the identity that was pinned when the source was opened.
	Identity() Identity
	// ReadAt fills b from byte off, as io.ReaderAt does, with at most one request. It fails with a *ChangedError when
	// the bytes are not those of the pinned identity. ReadAt does not retry: its caller does if Temporary reports true.
	ReadAt(ctx context.Context, b []byte, off int64) (int, error)
	// Close frees the resources of the source. No read may be under way.
	Close() error
}

// readFull reads all of b. Fewer bytes are an error that is not io.EOF: b lies inside the source.
func readFull(ctx context.Context, s Source, b []byte, off int64) (int, error) {
	n, err := s.ReadAt(ctx, b, off)
	if n == len(b) {
		return n, nil // io.ReaderAt allows io.EOF beside all bytes
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = &TruncatedError{Name: s.Name(), Offset: off, Want: int64(len(b)), Got: int64(n)}
	}
	return n, err
}

// Object is one entry of a listing.
type Object struct {
	Location Location
	Size     int64 // in bytes
}

// Opener opens sources and lists them. The methods are safe for concurrent use.
type Opener interface {
	// Open opens a source. If pinned is not zero, the object must have that identity; otherwise the error is a
	// *ChangedError.
	Open(ctx context.Context, at Location, pinned Identity) (Source, error)
	// List returns the objects that a pattern matches, sorted by name. In a pattern * does not cross a slash. A location
	// that ends in a slash is a folder, of which all objects directly below are returned. More than MaxListed objects
	// are an error.
	List(ctx context.Context, pattern Location) ([]Object, error)
}

// MaxListed is the greatest number of objects that one listing returns.
const MaxListed = 1 << 16
