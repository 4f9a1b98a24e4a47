package localhour_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/localhour"
)

func TestHours(t *testing.T) {
	fixed := func(offset int64) ([]int64, []int64) { return []int64{math.MinInt64}, []int64{offset} }
	for _, c := range []struct {
		name            string
		time, offset, h int64
	}{
		{"epoch", 0, 0, 0},
		{"the second before", -1, 0, 23},
		{"last second of an hour", 3599, 0, 0},
		{"first second of an hour", 3600, 0, 1},
		{"last second of a day", 86399, 0, 23},
		{"first second of a day", 86400, 0, 0},
		{"offset across midnight", 86399, 1, 0},
		{"offset back across midnight", 0, -1, 23},
		{"least time and offset", math.MinInt64, -localhour.MaxOffset, 8},
		{"least time", math.MinInt64, 0, 8},
		{"greatest time", math.MaxInt64, 0, 15},
		{"greatest time and offset", math.MaxInt64, localhour.MaxOffset, 15},
	} {
		t.Run(c.name, func(t *testing.T) {
			starts, offsets := fixed(c.offset)
			zone, err := localhour.New(starts, offsets)
			require.NoError(t, err)
			got := []int64{c.time}
			zone.Hours(got, got)
			require.Equal(t, localhour.Reference(c.time, starts, offsets), got[0], "reference")
			require.Equal(t, c.h, got[0])
		})
	}
}

func TestIntervalsEnd(t *testing.T) {
	starts, offsets := []int64{math.MinInt64, -100, 0, math.MaxInt64}, []int64{0, 3600, 7200, 10800}
	zone, err := localhour.New(starts, offsets)
	require.NoError(t, err)
	src := []int64{-101, -100, -1, 0, math.MaxInt64 - 1, math.MaxInt64, math.MinInt64, 0, -1, -100, -101}
	dst := make([]int64, len(src)+1)
	dst[len(src)] = -7
	zone.Hours(dst, src)
	for i, x := range src {
		require.Equal(t, localhour.Reference(x, starts, offsets), dst[i], "at %d", x)
	}
	require.Equal(t, int64(-7), dst[len(src)], "past the end")
	zone.Hours(nil, nil)
}

func TestTablesThatAreRefused(t *testing.T) {
	least := int64(math.MinInt64)
	for name, c := range map[string]struct{ starts, offsets []int64 }{
		"nothing":         {nil, nil},
		"no offset":       {[]int64{least}, nil},
		"two offsets":     {[]int64{least}, []int64{0, 1}},
		"a late begin":    {[]int64{least + 1}, []int64{0}},
		"equal times":     {[]int64{least, 5, 5}, []int64{0, 1, 2}},
		"times descend":   {[]int64{least, 5, 4}, []int64{0, 1, 2}},
		"a day ahead":     {[]int64{least}, []int64{localhour.MaxOffset + 1}},
		"a day behind":    {[]int64{least}, []int64{-localhour.MaxOffset - 1}},
		"the least again": {[]int64{least, least}, []int64{0, 1}},
	} {
		_, err := localhour.New(c.starts, c.offsets)
		require.ErrorIs(t, err, localhour.ErrTable, name)
	}
	for _, offset := range []int64{localhour.MaxOffset, -localhour.MaxOffset} {
		_, err := localhour.New([]int64{least}, []int64{offset})
		require.NoError(t, err)
	}
}

// drawZone draws a table whose times lie near each other or anywhere.
func drawZone(t *rapid.T) (starts, offsets []int64) {
	offset := rapid.Int64Range(-localhour.MaxOffset, localhour.MaxOffset)
	starts, offsets = []int64{math.MinInt64}, []int64{offset.Draw(t, "first offset")}
	at := rapid.Int64Range(-1<<62, 1<<30).Draw(t, "first change")
	for range rapid.IntRange(0, 20).Draw(t, "changes") {
		starts, offsets = append(starts, at), append(offsets, offset.Draw(t, "offset"))
		at += rapid.Int64Range(1, 1<<40).Draw(t, "until the next")
	}
	return starts, offsets
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		starts, offsets := drawZone(t)
		zone, err := localhour.New(starts, offsets)
		require.NoError(t, err)
		anywhere := rapid.OneOf(rapid.Int64(), rapid.Custom(func(t *rapid.T) int64 {
			return rapid.SampledFrom(starts).Draw(t, "near") + rapid.Int64Range(-1, 1).Draw(t, "step")
		}))
		src := rapid.SliceOf(anywhere).Draw(t, "times")
		dst := make([]int64, len(src))
		zone.Hours(dst, src)
		for i, x := range src {
			require.Equal(t, localhour.Reference(x, starts, offsets), dst[i], "at %d", x)
		}
	})
}

func BenchmarkHours(b *testing.B) {
	starts, offsets := []int64{math.MinInt64}, []int64{3600}
	for i := range int64(400) {
		starts, offsets = append(starts, i*15811200), append(offsets, 3600+3600*(i%2))
	}
	zone, err := localhour.New(starts, offsets)
	require.NoError(b, err)
	for name, spread := range map[string]int64{"one day": 86400, "two hundred years": 400 * 15811200} {
		src, dst := make([]int64, 2048), make([]int64, 2048)
		for i := range src {
			src[i] = 1700000000 + int64(uint64(i)*0x9e3779b97f4a7c15>>1)%spread
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				zone.Hours(dst, src)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(src)), "ns/value")
		})
	}
}
