package text

import "errors"

// DecodeBinary decodes up to n binary rows of window into rows first, first+1, ... of c. window begins at position at,
// which errors name; final says that the partition ends with it: bytes that are no whole row are ErrPartialRow then.
func DecodeBinary(c *Columns, first, n int, window []byte, at Position, final bool) (Result, error) {
	return Result{}, errors.New("text: not written yet")
}
