package unpack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

// float32Bytes is the size of a number.
const float32Bytes = 4

// header begins a file of NumPy (numpy.lib.format).
const header = "\x93NUMPY"

var (
	// ErrLength says that a length is not that of an array.
	ErrLength = errors.New("want a multiple of 4, the bytes of float32 numbers")
	// ErrHeader says that a value has a header before its numbers.
	ErrHeader = errors.New("begins as a file of NumPy (numpy.save, Petastorm's NdarrayCodec): write the numbers alone, " +
		"with ndarray.tobytes, or as a list")
)

// ValueError names a value that is not an array.
type ValueError struct {
	Index int // Index is the value's place in the column, from 0.
	Size  int // Size is the number of its bytes.
	Err   error
}

// Error implements error.
func (e *ValueError) Error() string { return fmt.Sprintf("a value of %d bytes: %v", e.Size, e.Err) }

// Unwrap returns ErrLength or ErrHeader.
func (e *ValueError) Unwrap() error { return e.Err }

// Lists are lists of numbers.
type Lists struct {
	Lengths []int32
	Values  []float32
}

// Float32s makes a list of each value, which is data[offsets[i]:offsets[i+1]], in the memory of l. valid is nil or has
// a byte a value, 0 for a null. After an error the lists are undefined.
func (l *Lists) Float32s(offsets []uint32, data, valid []byte) error {
	n := max(len(offsets), 1) - 1
	if err := bytecolumn.Check(n, offsets, len(data), valid); err != nil && n > 0 {
		return err
	}
	l.Lengths, l.Values = l.Lengths[:0], l.Values[:0]
	for i := range n {
		value := data[offsets[i]:offsets[i+1]]
		if valid != nil && valid[i] == 0 {
			value = nil
		}
		if len(value)%float32Bytes != 0 {
			return &ValueError{i, len(value), ErrLength}
		}
		if bytes.HasPrefix(value, []byte(header)) {
			return &ValueError{i, len(value), ErrHeader}
		}
		l.Lengths = append(l.Lengths, int32(len(value)/float32Bytes))
		for ; len(value) > 0; value = value[float32Bytes:] {
			l.Values = append(l.Values, math.Float32frombits(binary.LittleEndian.Uint32(value)))
		}
	}
	return nil
}
