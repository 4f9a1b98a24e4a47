package checksum

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

// random are n bytes that repeat nothing.
func random(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{5})
	_, _ = rng.Read(b)
	return b
}

// The check value that every catalogue has, and the ends of the scale.
func TestKnownAnswers(t *testing.T) {
	require.EqualValues(t, 0xcbf43926, Page([]byte("123456789")))
	require.Zero(t, Page(nil))
	require.EqualValues(t, 0x2144df1c, Page(make([]byte, 4)))
	require.EqualValues(t, 0xffffffff, Page([]byte{0xff, 0xff, 0xff, 0xff}))
	for _, n := range []int{0, 1, 63, 1024, 5000} {
		b := random(n)
		require.Equal(t, Reference(b), Page(b), "%d bytes", n)
		require.Equal(t, Reference(b), crc32.ChecksumIEEE(b), "%d bytes, the standard library", n)
	}
}

// Pages of every length begin at every place of a line, and end where the next byte may not be read.
func TestEveryLengthAndPlace(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		const most = 5000
		f := proving.NewFence(t, most+64)
		copy(proving.Start[byte](f, 0, most), random(most))
		last := proving.End[byte](f, most)
		copy(last, random(most))
		for n := range most + 1 {
			at := proving.Start[byte](f, n%64, n)
			require.Equal(t, crc32.ChecksumIEEE(at), Page(at), "%d bytes at %d", n, n%64)
			end := last[most-n:]
			require.Equal(t, crc32.ChecksumIEEE(end), Page(end), "%d bytes before the end", n)
		}
	})
}

// However a page is cut, its checksum is the same.
func TestPieces(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		b := random(1 << 16)
		want := Page(b)
		rng := rand.New(rand.NewPCG(1, 2))
		for range 30 {
			sum := uint32(0)
			for rest := b; len(rest) > 0; {
				n := min(1+rng.IntN(1<<rng.IntN(16)), len(rest))
				sum = Update(sum, rest[:n])
				rest = rest[n:]
			}
			require.Equal(t, want, sum)
		}
	})
}

func TestEveryBitCounts(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		b := random(1024 + 256 + 77)
		want := Page(b)
		for i := range 8 * len(b) {
			b[i/8] ^= 1 << (i % 8)
			require.NotEqual(t, want, Page(b), "bit %d", i)
			b[i/8] ^= 1 << (i % 8)
		}
	})
}

func TestPageAllocatesNothing(t *testing.T) {
	b := random(3000)
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() { Page(b) }))
	})
}

func FuzzPage(f *testing.F) {
	f.Add(random(3000), uint8(1))
	f.Add([]byte("bytes that are seldom so many that the kernel is used"), uint8(90))
	f.Fuzz(func(t *testing.T, b []byte, times uint8) {
		for n := len(b); times > 0 && len(b) < 1<<14; times-- { // fuzzers like short inputs
			b = append(b, b[:n]...)
		}
		require.Equal(t, crc32.ChecksumIEEE(b), Page(b))
	})
}

// Pages in the second-level cache, and pages in memory.
func BenchmarkPage(b *testing.B) {
	for name, n := range map[string]int{"64KiB": 64 << 10, "64MiB": 64 << 20} {
		page := random(n)
		b.Run(name, func(b *testing.B) {
			proving.BenchmarkEachLevel(b, n, func() { Page(page) })
		})
	}
}
