package cs

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRegionWindows(t *testing.T) {
	for _, weights := range [][]int{nil, {1}, {MaxRegionWeight}} {
		assert.Equal(t, Range{Len: 4097}, RegionWindow(4097, weights, 0), "the only region has all of the memory")
	}
	for _, weights := range [][]int{{1, 1}, {1, 1, 1, 1, 1, 1, 1}, {2, 1, 1}, {1, 16}, {16, 16, 16, 16, 16, 16, 16}} {
		const size = 512<<20 + 4095
		var last Range
		total := 0
		for region, weight := range weights {
			w := RegionWindow(size, weights, region)
			assert.Zero(t, w.Addr%ReserveGranularity)
			assert.Equal(t, RegionWindow(size, weights, 0).Len*uint64(weight), w.Len*uint64(weights[0]))
			assert.Zero(t, w.Len%ReserveGranularity)
			assert.Equal(t, last.Addr+last.Len, w.Addr, "behind the one before")
			last = w
			total += weight
		}
		end := last.Addr + last.Len
		assert.LessOrEqual(t, end, uint64(size))
		assert.Less(t, uint64(size)-end, uint64(total*ReserveGranularity+ReserveGranularity))
	}
}

func TestARangeContainsAnother(t *testing.T) {
	r := Range{Addr: 100, Len: 10}
	for o, want := range map[Range]bool{
		{100, 10}: true, {100, 0}: true, {110, 0}: true, {109, 1}: true, {99, 1}: false, {99, 12}: false, {109, 2}: false,
		{110, 1}: false, {111, 0}: false,
	} {
		assert.Equal(t, want, r.Contains(o), "%v", o)
	}
}

func TestTheRegionOfAVendorCommand(t *testing.T) {
	for name, c := range map[string]struct{ with, without [64]byte }{
		"preprocess": {InRegion(PreprocessCommand(64), 6), PreprocessCommand(64)},
		"activate":   {InRegion(ImageActivate(2), 6), ImageActivate(2)},
		"reserve":    {InRegion(SLMReserve(4096, 8192), 6), SLMReserve(4096, 8192)},
	} {
		want := c.without
		want[56] = 6
		assert.Equal(t, want, c.with, "%s: dword 14 alone", name)
	}
}
