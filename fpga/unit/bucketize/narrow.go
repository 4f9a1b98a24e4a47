package bucketize

import (
	"math"
	"math/bits"
	"slices"
)

const (
	// regions is the most entries that the first level has: few enough to stay in the first-level cache.
	regions = 512

	// mostSteps is how many thresholds a cell may hold before lookups search in it by halves. A kernel looks at up to
	// mostSteps thresholds, one after the other.
	mostSteps = 8

	// mostCells is what a region's entry has bits for; fitting are 256 KiB of them, a part of the second-level cache.
	mostCells = 1 << 26
	fitting   = 1 << 15
)

// budget is how many cells n thresholds may have: the more, the fewer steps, until they no longer fit a cache.
func budget(n int) int {
	return min(max(4*n, min(12*n, fitting))+2*regions, mostCells)
}

// cells finds how many thresholds are not above a key of 32 bits.
//
// The range of keys is cut into cells, so that few thresholds lie in each. Equal cells will do where borders are
// about evenly spaced in the order of keys, as log-spaced ones are. Otherwise the range is cut into equal regions and
// every region into equal cells, so that regions with dense borders are cut finer; an entry a region says where its
// cells are. A lookup clamps the key to the thresholds' range, finds the cell and reads it: the count of the
// thresholds in the cells before it and the first threshold in it, together in one word. The word is made so that
// adding the key carries into the count where the threshold is not above the key. Then it looks at the steps-1
// thresholds behind. Because cells keep the order of keys, a threshold in an earlier cell is not above the key, and a
// threshold in a later cell is.
type cells struct {
	thresholds []uint32 // non-decreasing, and mostSteps more that no number reaches
	low, high  uint32   // keys: where the first region (or cell) begins, and the last threshold
	shift      uint8    // log2 of the keys in a region, or in a cell where there are no regions
	regions    []uint32 // where the region's cells begin, times 32, and log2 of the keys in each of them; or nil
	// thresholds in the cells before, times 2^32, plus 2^32 less the cell's first threshold, if it has one
	cells []uint64
	steps int // the most thresholds in a cell; above mostSteps, a search by halves
}

func newCells(thresholds []uint32) cells {
	low, high := thresholds[0], thresholds[len(thresholds)-1]
	most := budget(len(thresholds))
	x := cells{thresholds: thresholds}
	for x.steps = 1; x.steps <= mostSteps; x.steps++ {
		if x.flat(low, high, most) || x.uneven(low, high, most) {
			break
		}
	}
	if x.steps > mostSteps {
		x.rough(low, high)
	}
	x.thresholds = append(thresholds, slices.Repeat([]uint32{math.MaxUint32}, mostSteps)...)
	return x
}

// flat makes equal cells if no more than most do.
func (x *cells) flat(low, high uint32, most int) bool {
	shift := uint8(0)
	for (high-low)>>shift >= uint32(most)-1 {
		shift++
	}
	if crowded(x.thresholds, shift, x.steps) {
		return false
	}
	for !crowded(x.thresholds, shift+1, x.steps) && shift < 31 {
		shift++
	}
	x.low, x.high, x.shift = low>>shift<<shift, high, shift
	x.fill([]uint8{shift}, int((high-x.low)>>shift)+1)
	return true
}

// regionsOf cuts the range of keys into regions and returns where each one's thresholds end.
func (x *cells) regionsOf(low, high uint32) (ends []int) {
	x.shift = 0
	for high>>x.shift-low>>x.shift >= regions {
		x.shift++
	}
	// low becomes the first region's first key: keys below it are clamped to it and find no threshold.
	x.low, x.high = low>>x.shift<<x.shift, high
	ends = make([]int, (high-x.low)>>x.shift+1)
	for i, t := range x.thresholds {
		ends[(t-x.low)>>x.shift] = i + 1
	}
	for r := 1; r < len(ends); r++ {
		ends[r] = max(ends[r], ends[r-1])
	}
	return ends
}

// uneven makes regions of unequal cells if no more than most cells do.
func (x *cells) uneven(low, high uint32, most int) bool {
	ends := x.regionsOf(low, high)
	shifts := make([]uint8, len(ends))
	total, begin := 0, 0
	for r, end := range ends {
		within := x.thresholds[begin:end]
		begin = end
		shifts[r] = x.shift
		for crowded(within, shifts[r], x.steps) {
			if shifts[r] == 0 || total > most {
				return false
			}
			shifts[r]--
		}
		total += 1 << (x.shift - shifts[r])
	}
	if total > most {
		return false
	}
	x.cut(shifts)
	return true
}

// rough makes regions of about one cell for each threshold, however many thresholds fall into a cell: for thresholds
// that are too uneven, or too many of them equal.
func (x *cells) rough(low, high uint32) {
	ends := x.regionsOf(low, high)
	shifts := make([]uint8, len(ends))
	begin := 0
	for r, end := range ends {
		shifts[r] = x.shift - min(uint8(bits.Len(uint((end-begin)/2))), x.shift, 16)
		begin = end
	}
	x.cut(shifts)
}

// cut makes regions with cells of 1<<shifts keys.
func (x *cells) cut(shifts []uint8) {
	x.regions = make([]uint32, len(shifts))
	total := 0
	for r, shift := range shifts {
		x.regions[r] = uint32(total)<<5 | uint32(shift)
		total += 1 << (x.shift - shift)
	}
	x.fill(shifts, total)
}

// crowded reports whether a cell of 1<<shift keys holds more than steps thresholds.
func crowded(within []uint32, shift uint8, steps int) bool {
	for i := steps; i < len(within); i++ {
		if within[i]>>shift == within[i-steps]>>shift {
			return true
		}
	}
	return false
}

// fill makes the cells, total of them, of 1<<shifts[r] keys in region r. There may be one shift for all.
func (x *cells) fill(shifts []uint8, total int) {
	x.cells = make([]uint64, total+1)
	next := 0
	end := uint64(x.low) // of the cell
	for c, r := 0, 0; c < total; c++ {
		if r+1 < len(shifts) && c == int(x.regions[r+1]>>5) {
			r++
		}
		end += 1 << shifts[r]
		cell := uint64(next) << 32
		if next < len(x.thresholds) && uint64(x.thresholds[next]) < end {
			cell += 1<<32 - uint64(x.thresholds[next])
		}
		for next < len(x.thresholds) && uint64(x.thresholds[next]) < end {
			next++
		}
		x.cells[c] = cell
	}
	x.cells[total] = uint64(next) << 32
}

// place returns the place of the cell that key lies in.
func (x *cells) place(key uint32) uint32 {
	k := min(max(key, x.low), x.high)
	at := (k - x.low) >> (x.shift & 31)
	if x.regions == nil {
		return at
	}
	r := x.regions[at]
	return r>>5 + k&(1<<(x.shift&31)-1)>>(r&31)
}

// search returns how many thresholds are not above key, which lies in the cell at a place, by halves.
func (x *cells) search(key, at uint32) uint64 {
	return uint64(between(x.thresholds, key, int(x.cells[at]>>32), int(x.cells[at+1]>>32)))
}
