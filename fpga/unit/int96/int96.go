package int96

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

// Size is the length of an INT96 in bytes.
const Size = 12

// unixDay is the Julian day number of 1970-01-01.
const unixDay = 2440588

// Unit is what a result counts.
type Unit uint8

// The units.
const (
	Seconds Unit = 0
	Days    Unit = 1
)

const (
	secondsOfDay        = 86400
	nanosecondsOfSecond = 1_000_000_000
)

var (
	// ErrLength says that a value does not have 12 bytes.
	ErrLength = errors.New("int96_time: a value is not 12 bytes long")
	// ErrUnit says that no unit has the number.
	ErrUnit = errors.New("int96_time: unknown unit")
)

// ToTime converts a column of len(dst) values, value i being data[offsets[i]:offsets[i+1]]. valid is nil, or has a byte
// a value; a value of validity 0 is a null, whose dst is 0. On an error dst is undefined.
func ToTime(dst []int64, offsets []uint32, data, valid []byte, unit Unit) error {
	if unit > Days {
		return fmt.Errorf("unit %d: %w", unit, ErrUnit)
	}
	if err := bytecolumn.Check(len(dst), offsets, len(data), valid); err != nil {
		return fmt.Errorf("int96_time: %w", err)
	}
	for i := range dst {
		if valid != nil && valid[i] == 0 {
			dst[i] = 0
			continue
		}
		value := data[offsets[i]:offsets[i+1]]
		if len(value) != Size {
			return fmt.Errorf("row %d has %d bytes: %w", i, len(value), ErrLength)
		}
		nanoseconds := int64(binary.LittleEndian.Uint64(value))
		day := int64(int32(binary.LittleEndian.Uint32(value[8:]))) - unixDay
		seconds := nanoseconds / nanosecondsOfSecond
		if nanoseconds%nanosecondsOfSecond < 0 {
			seconds--
		}
		if unit == Seconds {
			dst[i] = day*secondsOfDay + seconds
			continue
		}
		days := seconds / secondsOfDay
		if seconds%secondsOfDay < 0 {
			days--
		}
		dst[i] = day + days
	}
	return nil
}
