package bytecolumn

import (
	"errors"
	"fmt"
)

// ErrNull says that a text is empty in a column that has no validity to note the null in.
var ErrNull = errors.New("empty text in a column without validity")

// maxShown bounds the bytes of a text that an error shows.
const maxShown = 64

// TextError names a text of which a unit makes no integer.
type TextError struct {
	Unit  string // The unit's name.
	Index int    // Index is the text's place in the column, from 0.
	Text  []byte // At most the first 64 bytes of the text.
	Err   error  // ErrNull, or what the unit's function returned.
}

// Error implements error.
func (e *TextError) Error() string {
	return fmt.Sprintf("%s: %q: %v", e.Unit, e.Text, e.Err)
}

// ValueIndex returns the text's place in the column, from 0.
func (e *TextError) ValueIndex() int { return e.Index }

// Unwrap returns the reason.
func (e *TextError) Unwrap() error { return e.Err }

// Integers sets dst[i] to what read makes of text i of a column, which is data[offsets[i]:offsets[i+1]]. An empty text
// becomes a null: its byte of valid becomes 0. The dst of a null is 0. valid is nil, or has a byte a text; read is not
// called for a null. On an error, which wraps ErrShape or is a [TextError], dst and valid are undefined.
func Integers(unit string, dst []int64, offsets []uint32, data, valid []byte,
	read func(text []byte) (int64, error)) error {
	if err := Check(len(dst), offsets, len(data), valid); err != nil {
		return fmt.Errorf("%s: %w", unit, err)
	}
	for i := range dst {
		text := data[offsets[i]:offsets[i+1]]
		if valid != nil && (valid[i] == 0 || len(text) == 0) {
			valid[i], dst[i] = 0, 0
			continue
		}
		var err error
		if len(text) == 0 {
			err = ErrNull
		} else if dst[i], err = read(text); err == nil {
			continue
		}
		return &TextError{Unit: unit, Index: i, Text: append([]byte(nil), text[:min(len(text), maxShown)]...), Err: err}
	}
	return nil
}
