package text

import "errors"

// Decoder decodes windows of one partition of text.
type Decoder struct {
	o  Options
	at Position
}

// NewDecoder returns a decoder at the partition's start.
func NewDecoder(o Options) (*Decoder, error) { return &Decoder{o: o}, nil }

// Reset moves the decoder to a row boundary of a partition, as Position or an Index named it.
func (d *Decoder) Reset(at Position) { d.at = at }

// Position returns the row boundary that the decoder stands at: after every row of the calls so far.
func (d *Decoder) Position() Position { return d.at }

// Decode decodes up to n rows of window into rows first, first+1, ... of c. window begins at the decoder's position;
// final says that the partition ends with it. Rows before an error are decoded, and the Result counts them.
func (d *Decoder) Decode(c *Columns, first, n int, window []byte, final bool) (Result, error) {
	return Result{}, errors.New("text: not written yet")
}
