package hashbytes

import (
	"errors"
	"fmt"
)

// Function names a hash function.
type Function uint8

// The hash functions.
const (
	XXH3     Function = 0 // XXH3_64bits, seed 0
	Murmur3  Function = 1 // Murmur3_x86_32 as Apache Spark's hash has it, seed 42
	FarmHash Function = 2 // FarmHash's Fingerprint64
)

var (
	// ErrOffsets says that a column's offsets decrease, leave its bytes, or are not one more than its rows.
	ErrOffsets = errors.New("hash_bytes: offsets do not describe the bytes")
	// ErrFunction says that no hash function has the number.
	ErrFunction = errors.New("hash_bytes: unknown hash function")
)

// Hash hashes a column of len(dst) values, value i being data[offsets[i]:offsets[i+1]], into ids. valid, when not nil,
// has a byte a row, and a row of 0 is a null, whose dst is 0. On an error dst is undefined.
func Hash(dst []int64, offsets []uint32, data, valid []byte, function Function) error {
	if len(offsets) != len(dst)+1 {
		return fmt.Errorf("%d offsets for %d rows: %w", len(offsets), len(dst), ErrOffsets)
	}
	if valid != nil && len(valid) < len(dst) {
		return fmt.Errorf("%d bytes of validity for %d rows: %w", len(valid), len(dst), ErrOffsets)
	}
	if err := checkOffsets(offsets, len(data)); err != nil {
		return err
	}
	switch function {
	case XXH3:
		for i := range dst {
			dst[i] = int64(xxh3(data[offsets[i]:offsets[i+1]]))
		}
	case Murmur3:
		for i := range dst {
			dst[i] = int64(int32(murmur3(data[offsets[i]:offsets[i+1]])))
		}
	case FarmHash:
		for i := range dst {
			dst[i] = int64(farmHash(data[offsets[i]:offsets[i+1]]))
		}
	default:
		return fmt.Errorf("function %d: %w", function, ErrFunction)
	}
	if valid != nil {
		for i := range dst {
			if valid[i] == 0 {
				dst[i] = 0
			}
		}
	}
	return nil
}

// checkOffsets returns an error unless the offsets rise, or stay, within size bytes.
func checkOffsets(offsets []uint32, size int) error {
	for i, to := range offsets[1:] {
		if from := offsets[i]; from > to || uint64(to) > uint64(size) {
			return fmt.Errorf("row %d is bytes %d to %d of %d: %w", i, from, to, size, ErrOffsets)
		}
	}
	return nil
}
