package cosim

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/bucketize"
)

// TestEveryFloat32 compares the units that take a float32 with their kernels: over all 2^32 inputs for
// `make rtl-exhaustive`, which takes some minutes a case and processor, else over one in 8191 of them, with all those
// around zero, around 1 and at the ends.
func TestEveryFloat32(t *testing.T) {
	whole := os.Getenv("MILLRACE_RTL_EXHAUSTIVE") == "1"
	buckets := bucketize.Params{Borders: spacedBorders(rand.New(rand.NewPCG(5, 7)), 4096, true)}
	table, err := bucketize.New(buckets)
	require.NoError(t, err)
	bucketSetup, err := rtl.Bucketize(buckets)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		setup  rtl.Setup
		kernel func(stream Stream) []uint64
	}{
		"log of the number": {rtl.Log(0), func(stream Stream) []uint64 { return logKernel(stream, 0) }},
		"log of the sum":    {rtl.Log(1), func(stream Stream) []uint64 { return logKernel(stream, 1) }},
		"bucketize": {bucketSetup, func(stream Stream) []uint64 {
			found := make([]int64, len(stream.Words))
			require.NoError(t, table.Float32(found, floats(stream)))
			return integers(Stream{Words: make([]uint64, len(found))}, func(dst, _ []int64) { copy(dst, found) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if whole {
				t.Parallel()
			}
			unit, simulator := start(t, c.setup.Unit)
			require.NoError(t, simulator.Configure(c.setup))
			compare := func(first, step, count uint64) {
				const chunk = 1 << 18
				for done := uint64(0); done < count; {
					var stream Stream
					for ; done < count && len(stream.Words) < chunk; done++ {
						stream.Words = append(stream.Words, uint64(uint32(first+done*step)))
					}
					results, cycles, err := simulator.Run(stream)
					require.NoError(t, err)
					require.EqualValues(t, len(stream.Words)+unit.Latency, cycles)
					for i, want := range c.kernel(stream) {
						if results[i] != want {
							require.Equal(t, want, results[i], "%s of %08x", name, stream.Words[i])
						}
					}
				}
			}
			if whole {
				compare(0, 1, 1<<32)
				return
			}
			compare(0, 8191, 1<<32/8191)
			for _, around := range []uint32{0, 1 << 31, math.Float32bits(1), math.Float32bits(2), 0x7f800000, 0xff800000} {
				compare(uint64(around-1<<13), 1, 1<<14)
			}
		})
	}
}
