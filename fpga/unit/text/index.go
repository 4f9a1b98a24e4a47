package text

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// indexWindow is how much of a partition NewIndex holds at a time.
const indexWindow = 1 << 20

// Index says where the rows of a partition of text lie.
type Index struct {
	Rows   int64 // well-formed rows, and under Null malformed ones too: what a Decoder yields
	Bytes  int64
	Every  int64      // rows between two entries of At; 0 if none were asked for
	At     []Position // At[k] is a boundary from which row k*Every is the first that a Decoder yields
	Counts            // Counts are those of the whole partition.
}

// NewIndex reads a partition of text to its end and counts its rows under o exactly as a Decoder would yield them. With
// every > 0 it also notes a position each every rows. Under Fail the first malformed row is the error.
func NewIndex(r io.Reader, o Options, every int64) (*Index, error) {
	d, err := NewDecoder(o)
	if err != nil {
		return nil, err
	}
	x := &Index{Every: max(every, 0)}
	var none Columns
	buf := make([]byte, indexWindow)
	held, final := 0, false
	for !final {
		n, err := io.ReadFull(r, buf[held:])
		held += n
		x.Bytes += int64(n)
		final = err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !final {
			return nil, fmt.Errorf("index criteo text at byte %d: %w", x.Bytes, err)
		}
		used := 0
		for {
			want, mark := int64(math.MaxInt), false
			if x.Every > 0 {
				want = x.Every - x.Rows%x.Every
				mark = want == x.Every
			}
			at := d.Position()
			res, err := d.Decode(&none, 0, int(want), buf[used:held], final)
			if err != nil {
				return nil, fmt.Errorf("index criteo text: %w", err)
			}
			if mark && res.Rows > 0 {
				x.At = append(x.At, at)
			}
			used += res.Consumed
			x.Rows += int64(res.Rows)
			x.Dropped += res.Dropped
			x.Blank += res.Blank
			x.Nulled += res.Nulled
			if int64(res.Rows) < want {
				break
			}
		}
		held = copy(buf, buf[used:held])
	}
	return x, nil
}
