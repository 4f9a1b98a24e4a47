package capacity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units of ParseBytes, longest suffix first where one ends another.
var units = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}, {"B", 1}, {"", 1},
}

// ParseBytes reads a size as planners write it: 500TB, 11.95PB, 1.5PiB.
func ParseBytes(s string) (float64, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(v >= 0) || math.IsInf(v*u.bytes, 0) {
			break
		}
		return v * u.bytes, nil
	}
	return 0, fmt.Errorf("%w: %q is no size: write 500TB, 11.95PB or 1.5PiB", ErrNeed, s)
}
