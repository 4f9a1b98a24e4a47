package cs

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRegionWindows(t *testing.T) {
	assert.Equal(t, Range{Len: 4097}, RegionWindow(4097, 1, 0), "the only region has all of the memory")
	for regions := 2; regions <= MaxRegions; regions++ {
		const size = 512<<20 + 4095
		var last Range
		for region := range regions {
			w := RegionWindow(size, regions, region)
			assert.Zero(t, w.Addr%ReserveGranularity)
			assert.Zero(t, w.Len%ReserveGranularity)
			assert.Equal(t, last.Addr+last.Len, w.Addr, "behind the one before")
			last = w
		}
		end := last.Addr + last.Len
		assert.LessOrEqual(t, end, uint64(size))
		assert.Less(t, uint64(size)-end, uint64(regions*ReserveGranularity+ReserveGranularity))
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
