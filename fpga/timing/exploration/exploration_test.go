package exploration

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/timing"
)

// handmade are elements of round figures: 2 lanes of a decoder, and no latencies.
func handmade() elements {
	unit := func(lanes, interval int, a Area) element {
		return element{timing.Elements{Count: 1, Lanes: lanes, Interval: interval}, a}
	}
	return elements{
		decode: unit(2, 1, Area{LUT: 300}), bucketize: unit(1, 1, Area{LUT: 50, BRAM18: 8, URAM: 1}),
		hash: unit(1, 1, Area{LUT: 100, DSP: 20}), log: unit(1, 2, Area{LUT: 100, DSP: 10}),
	}
}

// handBoard is an FPGA of which the platform takes a tenth.
func handBoard() Board {
	return Board{
		Name:   "by hand",
		Device: timing.Device{P2P: 1e9, DDR: 100e9, Output: 1e9, Chained: true, Overlap: true},
		FPGA:   Area{10_000, 200, 10, 400}, Platform: Area{1000, 20, 1, 40},
	}
}

// handWork is a row of 2 dense values and 3 ids: 2 * 4 + 3 * 8 + 4 bytes.
func handWork() timing.Workload {
	return timing.Workload{Dense: 2, Sparse: 3, Mean: 1, Fixed: true, IDBytes: 8}
}

// TestDesignsByHand explores one to three elements of three units at 10 and 20 MHz.
func TestDesignsByHand(t *testing.T) {
	o, err := Options{Board: handBoard(), Workload: handWork(), Rows: 1000, Elements: 3,
		Clocks: []int{20_000, 10_000, 20_000}}.withDefaults()
	require.NoError(t, err)
	r, err := o.explore(handmade(), "by hand")
	require.NoError(t, err)
	// 70 %, 80 %, 80 % and 80 % of the FPGA, less the platform.
	assert.Equal(t, Area{6000, 140, 7, 280}, r.Limit)
	assert.Equal(t, 2*3*3*3, r.Designs, "bucketize has nothing to do, so there is none")
	assert.Equal(t, r.Designs, r.Fitting)

	// Cycles a row: decode 5/2, hash 3, log 2*2, each over the elements. Moving takes 36 ns, that is 0.72 cycles of
	// 20 MHz, so with three elements of each unit log binds with 4/3 cycles: 15 M rows/s. The decoder needs
	// 5/2 <= 4/3 * n, so 2 elements, and hash 3 <= 4/3 * n, so 3 elements.
	best := r.Best
	assert.Equal(t, Elements{Decode: 2, Hash: 3, Log: 3}, best.Elements)
	assert.Equal(t, 20_000, best.ClockKHz)
	assert.InEpsilon(t, 15e6, best.RowsPerSecond, 1e-9)
	assert.Equal(t, timing.StageLog, best.Bottleneck)
	assert.Equal(t, &Area{LUT: 2*300 + 3*100 + 3*100, DSP: 3*20 + 3*10}, best.Area)
	// 1200 of 9000 LUT, and 90 of 360 DSP.
	assert.InDelta(t, 1200.0/9000, best.Shares.LUT, 1e-12)
	assert.InDelta(t, 0.25, best.LargestShare, 1e-12)

	// The smallest design has one element of each: 500 of 9000 LUT and 30 of 360 DSP, 4 cycles a row.
	first := r.Frontier[0]
	assert.Equal(t, Elements{Decode: 1, Hash: 1, Log: 1}, first.Elements)
	assert.Equal(t, 20_000, first.ClockKHz)
	assert.InEpsilon(t, 5e6, first.RowsPerSecond, 1e-9)
	for i := range r.Frontier[1:] {
		assert.Greater(t, r.Frontier[i+1].RowsPerSecond, r.Frontier[i].RowsPerSecond)
		assert.Greater(t, r.Frontier[i+1].LargestShare, r.Frontier[i].LargestShare)
	}
	again, err := o.explore(handmade(), "by hand")
	require.NoError(t, err)
	assert.Equal(t, r, again)
	assert.Equal(t, r.Picture("a <title>"), again.Picture("a <title>"))
}

// TestTheSlowestClockThatSuffices: where moving binds, the best design has no more than it needs.
func TestTheSlowestClockThatSuffices(t *testing.T) {
	b := handBoard()
	b.Device.P2P = 36e6 // 1 M rows/s: 10 cycles of 10 MHz a row
	o, err := Options{Board: b, Workload: handWork(), Rows: 1000, Elements: 3,
		Clocks: []int{10_000, 20_000}}.withDefaults()
	require.NoError(t, err)
	r, err := o.explore(handmade(), "by hand")
	require.NoError(t, err)
	assert.Equal(t, Elements{Decode: 1, Hash: 1, Log: 1}, r.Best.Elements)
	assert.Equal(t, 10_000, r.Best.ClockKHz)
	assert.Equal(t, timing.StageMove, r.Best.Bottleneck)
	assert.InEpsilon(t, 1e6, r.Best.RowsPerSecond, 1e-9)
	assert.Len(t, r.Frontier, 1)
}

// TestEachResourceBounds: a design at the limit fits, and one above it does not.
func TestEachResourceBounds(t *testing.T) {
	w := handWork()
	w.Generated, w.Borders = 1, 10
	for name, c := range map[string]struct {
		shrink func(*Area)
		fit    int // designs
	}{
		"everything fits":       {func(*Area) {}, 16},
		"LUT: 550 fit":          {func(a *Area) { a.LUT = 2215 }, 1}, // 70 % less the platform: 550 (one of each)
		"LUT: 549 do not":       {func(a *Area) { a.LUT = 2213 }, 0},
		"block RAM: 8":          {func(a *Area) { a.BRAM18 = 35 }, 8},
		"UltraRAM: 1":           {func(a *Area) { a.URAM = 3 }, 8},
		"DSP: 30, one each":     {func(a *Area) { a.DSP = 88 }, 4},
		"DSP: 29 are too few":   {func(a *Area) { a.DSP = 86 }, 0},
		"no platform, no limit": {func(a *Area) { a.URAM = 2 }, 0},
	} {
		b := handBoard()
		c.shrink(&b.FPGA)
		o, err := Options{Board: b, Workload: w, Rows: 1000, Elements: 2, Clocks: []int{10_000}}.withDefaults()
		require.NoError(t, err)
		r, err := o.explore(handmade(), "by hand")
		assert.Equal(t, 16, r.Designs, name)
		assert.Equal(t, c.fit, r.Fitting, name)
		assert.Equal(t, c.fit == 0, errors.Is(err, ErrOptions), name)
	}
}

// TestElementsAreThoseOfTheRTL: sums of what the synthesis has, and nothing else.
func TestElementsAreThoseOfTheRTL(t *testing.T) {
	s, err := rtl.ReadSynthesis()
	require.NoError(t, err)
	e, tool, err := describedElements(true)
	require.NoError(t, err)
	assert.Equal(t, s.Tool, tool)
	for _, c := range []struct {
		element element
		lanes   int
		units   []string
	}{
		{e.decode, 8, []string{"hybrid_decoder", "list_lengths"}}, {e.bucketize, 1, []string{"bucketize", "fill_null"}},
		{e.hash, 1, []string{"sigrid_hash", "fill_null"}}, {e.log, 1, []string{"log", "fill_null", "clamp"}},
	} {
		var area Area
		latency := 0
		for _, name := range c.units {
			r, err := s.Named(name)
			require.NoError(t, err)
			u, err := rtl.Named(name)
			require.NoError(t, err)
			area.LUT += r.LUT + r.SRL + r.LUTRAM
			area.BRAM18 += r.BRAM18
			area.URAM += r.URAM
			area.DSP += r.DSP
			latency += u.Latency
		}
		assert.Equal(t, area, c.element.area, c.units)
		assert.Equal(t, timing.Elements{Count: 1, Lanes: c.lanes, Interval: 1, Latency: latency}, c.element.timing)
	}
	_, err = s.Named("divider")
	require.ErrorContains(t, err, "make rtl")
}

// TestRM5: PreSto's design and the best one are both bound by moving, and the model's rows/s are those of a plan.
func TestRM5(t *testing.T) {
	w := timing.Workload{Dense: 504, Sparse: 42, Mean: 20, Generated: 42, Borders: 4096, IDBytes: 8}
	r, err := Explore(Options{Board: SmartSSD(), Workload: w, Rows: 8192, Elements: 4})
	require.NoError(t, err)
	want := timing.SmartSSD().Batch(w, 8192).RowsPerSecond(false)
	assert.InEpsilon(t, want, r.PreSto.RowsPerSecond, 1e-12)
	assert.InEpsilon(t, want, r.Counted.RowsPerSecond, 1e-12)
	assert.InEpsilon(t, want, r.Best.RowsPerSecond, 1e-12)
	assert.Equal(t, timing.StageMove, r.Best.Bottleneck)
	assert.Less(t, r.Best.LargestShare, r.Counted.LargestShare)
	assert.Nil(t, r.PreSto.Area)
	assert.InDelta(t, 0.5402, r.PreSto.LargestShare, 1e-9)
	assert.Equal(t, Elements{Decode: 1, Bucketize: 8, Hash: 8, Log: 8}, r.Counted.Elements)
	picture := r.Picture("RM5 & <more>")
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err = d.Token(); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, io.EOF)
	assert.Contains(t, picture, "RM5 &amp; &lt;more&gt;")
	assert.Equal(t, 3, strings.Count(picture, "<circle"))
}

// TestOptions: each bound from both sides.
func TestOptions(t *testing.T) {
	good := func() Options {
		return Options{Board: SmartSSD(), Workload: handWork(), Rows: 1, Elements: 1, Clocks: []int{1000, 1_000_000}}
	}
	_, err := Explore(good())
	require.NoError(t, err)
	_, err = Options{Rows: 1, Elements: MaxElements}.withDefaults()
	require.NoError(t, err)
	for says, change := range map[string]func(*Options){
		"33 elements":    func(o *Options) { o.Elements = MaxElements + 1 },
		"-1 elements":    func(o *Options) { o.Elements = -1 },
		"999 to":         func(o *Options) { o.Clocks[0] = 999 },
		"to 1000001 kHz": func(o *Options) { o.Clocks[1] = 1_000_001 },
		"of 0 rows":      func(o *Options) { o.Rows = 0 },
		"17 clocks": func(o *Options) {
			o.Clocks = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}
		},
		"no design fits":   func(o *Options) { o.Board.FPGA.DSP = 0 },
		"want 1000 to 100": func(o *Options) { o.Clocks = []int{0} },
	} {
		o := good()
		change(&o)
		_, err := Explore(o)
		require.ErrorIs(t, err, ErrOptions, says)
		require.ErrorContains(t, err, says)
	}
}

// TestAxesEndAtRoundNumbers: 1, 2 and 5 times powers of ten.
func TestAxesEndAtRoundNumbers(t *testing.T) {
	for v, want := range map[float64]float64{0.1: 0.1, 0.11: 0.2, 0.2: 0.2, 0.54: 1, 3: 5, 5.1: 10, 1.2e7: 2e7} {
		assert.InEpsilon(t, want, roundUp(v), 1e-9)
	}
	assert.Equal(t, []string{"12 M", "337 k", "5"}, []string{shortRate(12e6), shortRate(337e3), shortRate(5)})
}
