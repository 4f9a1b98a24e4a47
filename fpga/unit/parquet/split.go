package parquet

// split reads BYTE_STREAM_SPLIT: byte k of every value in stream k, the streams one behind the other.
type split struct {
	src []byte
	n   int // values, so bytes of a stream
	at  int // values taken
}

// newSplit begins a section of values of size bytes.
func newSplit(src []byte, size int) (split, error) {
	if len(src)%size != 0 {
		return split{}, corrupt("%d bytes of split values of %d bytes each", len(src), size)
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
	b0, b1, b2, b3 := s.stream(0, at, n), s.stream(1, at, n), s.stream(2, at, n), s.stream(3, at, n)
	for i := range dst {
		dst[i] = uint32(b0[i]) | uint32(b1[i])<<8 | uint32(b2[i])<<16 | uint32(b3[i])<<24
	}
	return nil
}

// words8 puts values of eight bytes together.
func (s *split) words8(dst []uint64) error {
	n := len(dst)
	at, err := s.take(n)
	if err != nil {
		return err
	}
	clear(dst)
	for k := range 8 {
		for i, c := range s.stream(k, at, n) {
			dst[i] |= uint64(c) << (8 * k)
		}
	}
	return nil
}

// ints decodes integers of four or eight bytes.
func (s *split) ints(dst []int64, ct *ColumnType) error {
	if ct.Physical == Int64 {
		return s.words8(bitsOf[uint64](dst))
	}
	n := len(dst)
	at, err := s.take(n)
	if err != nil {
		return err
	}
	b0, b1, b2, b3 := s.stream(0, at, n), s.stream(1, at, n), s.stream(2, at, n), s.stream(3, at, n)
	for i := range dst {
		x := uint32(b0[i]) | uint32(b1[i])<<8 | uint32(b2[i])<<16 | uint32(b3[i])<<24
		dst[i] = int64(int32(x))
		if ct.Unsigned {
			dst[i] = int64(x)
		}
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
