package bucketize

import "math/bits"

// index finds how many thresholds are not above a key of 64 bits, as cells does for 32, with less care for speed.
//
// The range of coarse keys is cut into equal regions, and every region into equal cells: as many as it takes to leave
// at most one threshold in a cell, so that regions with dense borders are cut finer. A lookup clamps the coarse key
// to the thresholds' range, reads the region's entry, reads the cell's count of the thresholds in the cells before
// it, and compares with the one threshold that may lie in the cell. Because coarse keys keep the order of keys, a
// threshold in an earlier cell is not above the key, and a threshold in a later cell is.
type index struct {
	thresholds []uint64 // non-decreasing
	low, high  uint32
	shift      uint8    // log2 of the coarse keys in a region
	regions    []uint64 // where the region's cells begin, times 256, and log2 of the coarse keys in each of them
	counts16   []uint16 // thresholds in the cells before, and once more after the last cell
	counts32   []uint32 // the same where there are more than 65535 thresholds; then counts16 is nil
	crowded    bool     // a cell holds several thresholds: search between its count and the next
}

func newIndex(thresholds []uint64, coarse func(uint64) uint32) index {
	x := index{thresholds: thresholds}
	if len(thresholds) == 0 {
		return x
	}
	x.low, x.high = coarse(thresholds[0]), coarse(thresholds[len(thresholds)-1])
	for x.high>>x.shift-x.low>>x.shift >= regions {
		x.shift++
	}
	// low becomes the first region's first coarse key: keys below it are clamped to it and find no threshold.
	x.low = x.low >> x.shift << x.shift
	x.regions = make([]uint64, (x.high-x.low)>>x.shift+1)
	x.counts32 = make([]uint32, 0, 2*len(thresholds)+len(x.regions)+1)
	next := 0 // threshold
	for r := range x.regions {
		begin := uint64(x.low) + uint64(r)<<x.shift
		first := next
		for next < len(thresholds) && uint64(coarse(thresholds[next]))-begin < 1<<x.shift {
			next++
		}
		within := make([]uint32, 0, next-first) // coarse keys from the region's begin
		for _, t := range thresholds[first:next] {
			within = append(within, coarse(t)-uint32(begin))
		}
		shift, crowded := cellSize(within, x.shift)
		x.crowded = x.crowded || crowded
		x.regions[r] = uint64(len(x.counts32))<<8 | uint64(shift)
		before := 0
		for cell := range 1 << (x.shift - shift) {
			x.counts32 = append(x.counts32, uint32(first+before))
			for before < len(within) && within[before]>>shift == uint32(cell) {
				before++
			}
		}
	}
	x.counts32 = append(x.counts32, uint32(len(thresholds)))
	if len(thresholds) < 1<<16 {
		x.counts16 = make([]uint16, len(x.counts32))
		for i, n := range x.counts32 {
			x.counts16[i] = uint16(n)
		}
		x.counts32 = nil
	}
	return x
}

// cellSize returns log2 of the coarse keys in a cell of a region of 1<<region: the largest that leaves a threshold a
// cell, as long as there are no more than 16 cells a threshold; else about two cells a threshold, and crowded.
func cellSize(within []uint32, region uint8) (shift uint8, crowded bool) {
	n := len(within)
	if n == 0 {
		return region, false
	}
	least := min(uint8(bits.Len(uint(n-1))), region) // log2 of the cells, at least a cell a threshold
	for cells := least; cells <= min(least+4, region); cells++ {
		shift = region - cells
		crowded = false
		for i := 1; i < n && !crowded; i++ {
			crowded = within[i]>>shift == within[i-1]>>shift
		}
		if !crowded {
			return shift, false
		}
	}
	return region - min(least+1, region), true
}

// between finishes a search: the thresholds before lo are not above key, those from hi on are.
func between[K uint32 | uint64](thresholds []K, key K, lo, hi int) int {
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if thresholds[mid] <= key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
