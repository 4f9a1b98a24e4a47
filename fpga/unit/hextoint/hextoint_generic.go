package hextoint

import "fmt"

// hexGeneric is the path of plain Go, and the oracle of the others.
func hexGeneric(dst []int64, offsets []uint32, data []byte, valid []byte) error {
	return parse(dst, offsets, data, valid, 0, len(dst))
}

// parse parses the tokens of rows first to end-1.
func parse(dst []int64, offsets []uint32, data []byte, valid []byte, first, end int) error {
	from := offsets[first]
	for i := first; i < end; i++ {
		to := offsets[i+1]
		if from > to || uint64(to) > uint64(len(data)) {
			return fmt.Errorf("row %d is bytes %d to %d of %d: %w", i, from, to, len(data), ErrOffsets)
		}
		token := data[from:to]
		from = to
		if valid != nil && (valid[i] == 0 || len(token) == 0) {
			valid[i], dst[i] = 0, 0
			continue
		}
		v, ok := Parse(token)
		if !ok {
			return tokenError(i, token)
		}
		dst[i] = int64(v)
	}
	return nil
}
