package bfloat16

import (
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoundAtTheEdges holds the bits of float32 and of the bfloat16 that they are rounded to, each with the rule
// that decides.
func TestRoundAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		rule string
		from uint32
		to   uint16
	}{
		{"zero", 0x00000000, 0x0000},
		{"negative zero", 0x80000000, 0x8000},
		{"exact", 0x3f800000, 0x3f80},
		{"just below a tie", 0x3f807fff, 0x3f80},
		{"a tie goes to the even place, down", 0x3f808000, 0x3f80},
		{"just above a tie", 0x3f808001, 0x3f81},
		{"a tie goes to the even place, up", 0x3f818000, 0x3f82},
		{"a carry into the exponent", 0x3fffc000, 0x4000},
		{"the smallest denormal is nearer to zero", 0x00000001, 0x0000},
		{"half of the smallest bfloat16 is a tie with zero", 0x00008000, 0x0000},
		{"more than half of the smallest bfloat16", 0x00008001, 0x0001},
		{"a denormal is kept", 0x00010000, 0x0001},
		{"a negative denormal is kept", 0x80030000, 0x8003},
		{"the largest denormal becomes the smallest normal number", 0x007fffff, 0x0080},
		{"the largest bfloat16", 0x7f7f0000, 0x7f7f},
		{"below the tie with infinity", 0x7f7f7fff, 0x7f7f},
		{"the tie with infinity goes to infinity, whose last bit is 0", 0x7f7f8000, 0x7f80},
		{"the largest float32", 0x7f7fffff, 0x7f80},
		{"the largest negative float32", 0xff7fffff, 0xff80},
		{"infinity", 0x7f800000, 0x7f80},
		{"negative infinity", 0xff800000, 0xff80},
		{"a quiet NaN", 0x7fc00000, 0x7fc0},
		{"a negative NaN loses its sign", 0xffc00000, 0x7fc0},
		{"a signalling NaN whose payload is in the lower half", 0x7f800001, 0x7fc0},
		{"a NaN whose bits a carry would turn into 0", 0x7fffffff, 0x7fc0},
		{"a negative NaN of the same kind", 0xffffffff, 0x7fc0},
	} {
		x := math.Float32frombits(c.from)
		require.Equal(t, c.to, ReferenceRound(x), "reference: %s: %08x", c.rule, c.from)
		require.Equal(t, c.to, Round(x), "%s: %08x", c.rule, c.from)
	}
}

// TestRoundIsReference compares both for every upper half, with the lower halves that lie around the ties.
func TestRoundIsReference(t *testing.T) {
	for upper := range uint32(1 << 16) {
		for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			requireReference(t, upper<<16|lower)
		}
	}
}

// TestSweep compares all 2^32 inputs: MILLRACE_SWEEP=1 go test ./fpga/unit/bfloat16 -run TestSweep -timeout 2h.
// It takes about a quarter of a CPU hour, over all processors.
func TestSweep(t *testing.T) {
	if os.Getenv("MILLRACE_SWEEP") == "" {
		t.Skip("set MILLRACE_SWEEP=1 to check all 2^32 inputs")
	}
	var next atomic.Uint64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for upper := next.Add(1) - 1; upper < 1<<16 && !t.Failed(); upper = next.Add(1) - 1 {
				for lower := range uint32(1 << 16) {
					bits := uint32(upper)<<16 | lower
					x := math.Float32frombits(bits)
					if Round(x) != ReferenceRound(x) {
						t.Errorf("%08x: %04x, the reference says %04x", bits, Round(x), ReferenceRound(x))
						return
					}
				}
			}
		})
	}
	wait.Wait()
}

func requireReference(t *testing.T, bits uint32) {
	x := math.Float32frombits(bits)
	if want, got := ReferenceRound(x), Round(x); want != got {
		require.Equal(t, want, got, "%08x", bits)
	}
}
