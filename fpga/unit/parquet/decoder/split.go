package decoder

import (
	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/encoding"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// split reads BYTE_STREAM_SPLIT: byte k of every value in stream k, the streams one behind the other.
type split struct {
	src []byte
	n   int // values, so bytes of a stream
	at  int // values taken
}

// newSplit begins a section of values of size bytes.
func newSplit(src []byte, size int) (split, error) {
	if len(src)%size != 0 {
		return split{}, format.Corrupt("%d bytes of split values of %d bytes each", len(src), size)
	}
	return split{src: src, n: len(src) / size}, nil
}

// take moves past n values and returns the place of the first.
func (s *split) take(n int) (int, error) {
	if n > s.n-s.at {
		return 0, errValuesEnd()
	}
	s.at += n
	return s.at - n, nil
}

// stream is byte k of the n values from value at on.
func (s *split) stream(k, at, n int) []byte { return s.src[k*s.n+at:][:n] }

// words4 puts values of four bytes together.
func (s *split) words4(dst []uint32) error {
	n := len(dst)
	at, err := s.take(n)
	if err != nil {
		return err
	}
	encoding.Join4(dst, s.src[at:], s.n)
	return nil
}

// words8 puts values of eight bytes together.
func (s *split) words8(dst []uint64) error {
	n := len(dst)
	at, err := s.take(n)
	if err != nil {
		return err
	}
	encoding.Join8(dst, s.src[at:], s.n)
	return nil
}

// ints decodes integers of four or eight bytes, the former by way of some.
func (s *split) ints(dst []int64, ct *format.ColumnType, some []uint32) error {
	if ct.Physical == format.Int64 {
		return s.words8(bitsOf[uint64](dst))
	}
	for len(dst) > 0 {
		k := min(len(dst), len(some))
		if err := s.words4(some[:k]); err != nil {
			return err
		}
		if ct.Unsigned {
			convert.Uint32ToInt64(dst[:k], rawBytes(some[:k]))
		} else {
			convert.Int32ToInt64(dst[:k], rawBytes(some[:k]))
		}
		dst = dst[k:]
	}
	return nil
}

// bytes puts values of any width together at dst, one behind the other.
func (s *split) bytes(dst []byte, n, size int) error {
	at, err := s.take(n)
	if err != nil {
		return err
	}
	for k := range size {
		for i, c := range s.stream(k, at, n) {
			dst[i*size+k] = c
		}
	}
	return nil
}
