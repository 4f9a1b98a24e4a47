package regions

import (
	"math/bits"
	"time"
)

// histogramBits is the logarithm of the number of steps between a time and its double: 64 steps, so that a quantile is
// at most a sixty-fourth too high.
const histogramBits = 6

// histogram counts times in steps that grow with them. Its memory does not grow with the number of times.
type histogram struct {
	counts [(64 - histogramBits + 1) << histogramBits]uint64
	total  uint64
	most   time.Duration
}

// stepOf returns the number of a time's step.
func stepOf(d time.Duration) int {
	ns := uint64(max(d, 0))
	shift := max(bits.Len64(ns)-histogramBits-1, 0)
	return shift<<histogramBits + int(ns>>shift)
}

// longestOfStep returns the longest time of a step.
func longestOfStep(i int) time.Duration {
	shift := max(i>>histogramBits-1, 0)
	first := uint64(i-shift<<histogramBits) << shift
	return time.Duration(first + 1<<shift - 1)
}

// countTime counts a time.
func (h *histogram) countTime(d time.Duration) {
	h.counts[stepOf(d)]++
	h.total++
	h.most = max(h.most, d)
}

// addTimesOf counts the times of another histogram.
func (h *histogram) addTimesOf(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.most = max(h.most, other.most)
}

// quantile returns the end of the step that holds the quantile, or the longest time if that is less.
func (h *histogram) quantile(share float64) time.Duration {
	var seen uint64
	for i, n := range h.counts {
		if seen += n; n > 0 && float64(seen) >= share*float64(h.total) {
			return min(longestOfStep(i), h.most)
		}
	}
	return h.most
}

// quantiles returns the quantiles of all times, nil if there are none.
func (h *histogram) quantiles() *Quantiles {
	if h.total == 0 {
		return nil
	}
	return &Quantiles{P50: h.quantile(0.5).Seconds(), P99: h.quantile(0.99).Seconds(), Max: h.most.Seconds()}
}
