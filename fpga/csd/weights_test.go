package csd

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
)

func TestWeightsAtTheirLimits(t *testing.T) {
	for name, test := range map[string]struct {
		o    Options
		says string // empty: the drive opens
	}{
		"two":                   {Options{RegionWeights: []int{1, 16}, SLMBytes: 17 * MinSLM}, ""},
		"too little memory":     {Options{RegionWeights: []int{1, 16}, SLMBytes: 17*MinSLM - 4096}, "region 0 has 61440"},
		"as many as regions":    {Options{RegionWeights: []int{2, 1}, Regions: 2}, ""},
		"fewer than regions":    {Options{RegionWeights: []int{2, 1}, Regions: 3}, "2 weights for 3 regions"},
		"one":                   {Options{RegionWeights: []int{1}}, "1 weights for 1 regions"},
		"none":                  {Options{RegionWeights: []int{}}, "0 weights for 1 regions"},
		"seven":                 {Options{RegionWeights: []int{1, 2, 1, 2, 1, 2, 1}}, ""},
		"eight":                 {Options{RegionWeights: []int{1, 1, 1, 1, 1, 1, 1, 1}}, "8 regions: want 1 to 7"},
		"nothing":               {Options{RegionWeights: []int{1, 0}}, "region 1 of weight 0"},
		"too much":              {Options{RegionWeights: []int{17, 1}}, "region 0 of weight 17"},
		"as many threads":       {Options{RegionWeights: []int{16, 1}, Threads: 16}, ""},
		"too many threads":      {Options{RegionWeights: []int{16, 1}, Threads: 17}, "272 engine threads in region 0"},
		"without computation":   {Options{RegionWeights: []int{2, 1}, Plain: true}, "does not compute"},
		"a drive without flash": {Options{RegionWeights: []int{2, 1}, Diskless: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if !test.o.Diskless {
				test.o.Size = 1 << 20
			}
			if test.o.SLMBytes == 0 {
				test.o.SLMBytes = 16 * testSLM
			}
			d, err := Open(test.o)
			if test.says != "" {
				require.ErrorContains(t, err, test.says)
				return
			}
			require.NoError(t, err)
			threads := 0
			for region, g := range d.Images().Regions {
				w := test.o.RegionWeights[region]
				assert.Equal(t, w*max(test.o.Threads, 1), g.Threads)
				assert.Equal(t, g.Threads, cap(d.comp.threads[region]))
				assert.Equal(t, d.Images().Regions[0].SLMBytes*uint64(w), g.SLMBytes*uint64(test.o.RegionWeights[0]))
				threads += g.Threads
			}
			c := connect(t, d)
			assert.EqualValues(t, threads, counted(t, c).Threads)
			require.NoError(t, c.Close())
			require.NoError(t, d.Close())
		})
	}
}

// TestWeightsAreKept until the drive has another number of regions or other weights.
func TestWeightsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	opened := func(o Options, version int, threads ...int) {
		t.Helper()
		o.Path = path
		session(t, o, func(d *Drive, _ nvme.Conn) {
			var got []int
			for _, g := range d.Images().Regions {
				got = append(got, g.Threads)
			}
			assert.Equal(t, threads, got)
		})
		assert.Equal(t, version, keptVersion(t, path))
	}
	opened(Options{Create: true, Size: 1 << 20, RegionWeights: []int{3, 1}}, 4, 3, 1)
	opened(Options{}, 4, 3, 1)
	opened(Options{Regions: 2, Threads: 2}, 4, 6, 2)
	opened(Options{RegionWeights: []int{1, 2, 1}}, 4, 1, 2, 1)
	opened(Options{Regions: 2}, 3, 1, 1)
	opened(Options{RegionWeights: []int{1, 2}}, 4, 1, 2)
	opened(Options{RegionWeights: []int{1, 1}}, 3, 1, 1)
}
