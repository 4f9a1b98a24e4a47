package httpbody

import (
	"fmt"
	"io"
)

// Bytes that are read at a time, at first and later.
const (
	firstChunk = 4 << 10
	chunk      = 256 << 10
)

// readAll reads in to its end. Before every read it takes from the budget, beside base, twice the bytes that it will
// have read, since it joins the pieces in the end. It fails with ErrTooLarge where in has more than most bytes.
func readAll(in io.Reader, h *hold, base, most int64) ([]byte, error) {
	var pieces [][]byte
	total := int64(0)
	for size, ended := int64(firstChunk), false; !ended; size = chunk {
		if err := h.atLeast(base + 2*(total+size)); err != nil {
			return nil, err
		}
		b := make([]byte, size)
		n := 0
		for n < len(b) && !ended {
			k, err := in.Read(b[n:])
			n += k
			switch {
			case err == io.EOF:
				ended = true
			case err != nil:
				return nil, err
			}
		}
		if total += int64(n); total > most {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, most)
		}
		pieces = append(pieces, b[:n])
	}
	if len(pieces) == 1 {
		return pieces[0], nil
	}
	all := make([]byte, 0, total)
	for _, b := range pieces {
		all = append(all, b...)
	}
	return all, nil
}

// ratioReader fails with ErrRatio where far more comes out of it than went in.
type ratioReader struct {
	in          io.Reader
	packed, out int64
}

// Bounds of packed messages. Honest messages reach a tenth of maxRatio; gzip can reach ten times maxRatio.
const (
	maxRatio  = 100
	ratioFrom = 1 << 20 // bytes from which on the ratio counts
)

func (r *ratioReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if r.out += int64(n); r.out > ratioFrom && r.out > maxRatio*r.packed {
		return n, fmt.Errorf("%w: %d bytes became more than %d, want %d to one at most: send it unpacked", ErrRatio,
			r.packed, r.out, maxRatio)
	}
	return n, err
}

// whole is a body that is in memory, and let go of once it was read.
type whole struct{ rest []byte }

func (b *whole) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		b.rest = nil
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (b *whole) Close() error {
	b.rest = nil
	return nil
}
