package localhour

import (
	"errors"
	"fmt"
	"math"
	"sort"
)

// MaxOffset is the greatest distance of a zone's clocks from UTC, in seconds: less than a day.
const MaxOffset = day - 1

const (
	day  = 24 * 60 * 60
	hour = 60 * 60
)

// ErrTable says that a table is not a zone.
var ErrTable = errors.New("get_local_hour: no table of a zone")

// Zone is a place's clocks.
type Zone struct {
	starts, offsets []int64
}

// New returns the zone whose clocks are offsets[i] seconds ahead of UTC from starts[i] on. starts begins with the least
// int64 and ascends.
func New(starts, offsets []int64) (*Zone, error) {
	switch {
	case len(starts) == 0 || len(starts) != len(offsets):
		return nil, fmt.Errorf("%w: %d times and %d offsets", ErrTable, len(starts), len(offsets))
	case starts[0] != math.MinInt64:
		return nil, fmt.Errorf("%w: it begins at %d, which is not the least int64", ErrTable, starts[0])
	}
	for i, offset := range offsets {
		if offset < -MaxOffset || offset > MaxOffset {
			return nil, fmt.Errorf("%w: offset %d is %d, want less than a day", ErrTable, i, offset)
		}
		if i > 0 && starts[i] <= starts[i-1] {
			return nil, fmt.Errorf("%w: time %d does not lie behind time %d", ErrTable, i, i-1)
		}
	}
	return &Zone{starts: starts, offsets: offsets}, nil
}

// interval returns the first and the last second of the offset that holds at time t, and the offset.
func (z *Zone) interval(t int64) (first, last, offset int64) {
	next := sort.Search(len(z.starts), func(i int) bool { return z.starts[i] > t })
	last = math.MaxInt64
	if next < len(z.starts) {
		last = z.starts[next] - 1
	}
	return z.starts[next-1], last, z.offsets[next-1]
}

// Hours sets dst[i] to the hour at time src[i] for every i of src. dst must be at least as long as src and may be src.
func (z *Zone) Hours(dst, src []int64) {
	if len(src) == 0 {
		return
	}
	dst = dst[:len(src)]
	first, last, offset := z.interval(src[0])
	for i, t := range src {
		if t < first || t > last {
			first, last, offset = z.interval(t)
		}
		second := uint32(t%day + offset + 2*day) // above 0 and below four days
		dst[i] = int64(second / hour % 24)
	}
}
