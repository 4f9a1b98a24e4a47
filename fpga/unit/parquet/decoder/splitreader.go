package decoder

import (
	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/encoding"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// splitReader reads BYTE_STREAM_SPLIT: byte k of every value lies in stream k, and the streams lie one behind the
// other.
type splitReader struct {
	src   []byte
	count int // values of the section, which is also the bytes of a stream
	used  int // values read
}

// newSplitReader begins a section of values of size bytes.
func newSplitReader(src []byte, size int) (splitReader, error) {
	if len(src)%size != 0 {
		return splitReader{}, format.Corrupt("%d bytes of split values of %d bytes each", len(src), size)
	}
	return splitReader{src: src, count: len(src) / size}, nil
}

// advance moves past n values and returns the place of the first.
func (s *splitReader) advance(n int) (int, error) {
	if n > s.count-s.used {
		return 0, valuesEndError()
	}
	s.used += n
	return s.used - n, nil
}

// stream returns byte k of the n values from value at on.
func (s *splitReader) stream(k, at, n int) []byte { return s.src[k*s.count+at:][:n] }

// readWords32 decodes values of four bytes.
func (s *splitReader) readWords32(dst []uint32) error {
	n := len(dst)
	at, err := s.advance(n)
	if err != nil {
		return err
	}
	encoding.Join4(dst, s.src[at:], s.count)
	return nil
}

// readWords64 decodes values of eight bytes.
func (s *splitReader) readWords64(dst []uint64) error {
	n := len(dst)
	at, err := s.advance(n)
	if err != nil {
		return err
	}
	encoding.Join8(dst, s.src[at:], s.count)
	return nil
}

// readInts decodes integers of four or eight bytes. Those of four bytes pass through the buffer some.
func (s *splitReader) readInts(dst []int64, ct *format.ColumnType, some []uint32) error {
	if ct.Physical == format.Int64 {
		return s.readWords64(sameBits[uint64](dst))
	}
	for len(dst) > 0 {
		k := min(len(dst), len(some))
		if err := s.readWords32(some[:k]); err != nil {
			return err
		}
		if ct.Unsigned {
			convert.Uint32ToInt64(dst[:k], bytesOf(some[:k]))
		} else {
			convert.Int32ToInt64(dst[:k], bytesOf(some[:k]))
		}
		dst = dst[k:]
	}
	return nil
}

// readBytes decodes n values of size bytes to dst, one behind the other.
func (s *splitReader) readBytes(dst []byte, n, size int) error {
	at, err := s.advance(n)
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
