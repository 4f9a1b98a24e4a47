package encoding

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &unpack32, "unpack32Generic", "unpack32AVX2", "unpack32AVX512", "unpack32NEON")
	proving.Picks(t, &unpack64, "unpack64Generic", "unpack64AVX2", "unpack64AVX2", "unpack64NEON")
	proving.Picks(t, &gather64, "gatherGeneric", "gather64AVX2", "gather64AVX512", "gather64OfNEON")
	proving.Picks(t, &gather32, "gatherGeneric", "gather32AVX2", "gather32AVX512", "gather32OfNEON")
	proving.Picks(t, &gatherSigned, "widenGeneric", "gatherSignedAVX2", "gatherSignedAVX512", "gatherSignedOfNEON")
	proving.Picks(t, &gatherUnsigned, "widenGeneric", "gatherUnsignedAVX2", "gatherUnsignedAVX512",
		"gatherUnsignedOfNEON")
	proving.Picks(t, &sum, "sumGeneric", "sumAVX2", "sumAVX512")
	proving.Picks(t, &join4, "join4Generic", "join4AVX2", "join4AVX512", "join4OfNEON")
	proving.Picks(t, &join8, "join8Generic", "join8AVX2", "join8AVX512", "join8OfNEON")
	proving.Picks(t, &spread64, "spreadGeneric", "spread64AVX2", "spread64AVX512")
	proving.Picks(t, &spread32, "spreadGeneric", "spread32AVX2", "spread32AVX512")
}

// bitsOneByOne is the definition: value i's bit k is bit (bit + i*width + k) of src, or 0 where there is none.
func bitsOneByOne(src []byte, bit int, width uint) (v uint64) {
	for k := range int(width) {
		if p := bit + k; p>>3 < len(src) {
			v |= uint64(src[p>>3]>>(p&7)&1) << k
		}
	}
	return v
}

// shortLengths are lengths around those of vectors.
var shortLengths = []int{0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100}

// inEveryPlace calls f with room for n values at both ends of fenced memory, and with sources of just the bytes that n
// values from bit number bit on take, fewer, and more, of which the one is bounded by fences too.
func inEveryPlace[T any](t *testing.T, r *rand.Rand, width uint, f func(dst []T, src []byte, bit int)) {
	to, from := proving.NewFence(t, 8*proving.Lengths+64), proving.NewFence(t, 8*proving.Lengths+128)
	try := func(n, bit, more int) {
		size := max((bit+n*int(width)+7)/8+more, 0)
		for _, src := range [][]byte{proving.End[byte](from, size), proving.Start[byte](from, r.Intn(64), size)} {
			r.Read(src)
			f(proving.End[T](to, n), src, bit)
			f(proving.Start[T](to, r.Intn(8), n), src, bit)
		}
	}
	for _, n := range shortLengths {
		for bit := range 9 {
			try(n, bit, 0)
		}
		try(n, 3, 1+r.Intn(64))
		try(n, 5, -1-r.Intn(16))
	}
	for range 4 {
		try(r.Intn(proving.Lengths), r.Intn(8), 0)
	}
	try(proving.Lengths-1, 0, 0)
}

func TestUnpack32(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewSource(1))
		for width := range uint(32 + 1) {
			inEveryPlace(t, r, width, func(dst []uint32, src []byte, bit int) {
				Unpack32(dst, src, bit, width)
				for i, x := range dst {
					if want := bitsOneByOne(src, bit+i*int(width), width); uint64(x) != want {
						t.Fatalf("width %d, bit %d, value %d of %d in %d bytes: %x, want %x", width, bit, i, len(dst),
							len(src), x, want)
					}
				}
			})
		}
	})
}

func TestUnpack64(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewSource(2))
		for width := range uint(65) {
			inEveryPlace(t, r, width, func(dst []int64, src []byte, bit int) {
				Unpack64(dst, src, bit, width)
				for i, x := range dst {
					if want := bitsOneByOne(src, bit+i*int(width), width); uint64(x) != want {
						t.Fatalf("width %d, bit %d, value %d of %d in %d bytes: %x, want %x", width, bit, i, len(dst),
							len(src), x, want)
					}
				}
			})
		}
	})
}

// TestKernelsUnpackWholeVectors proves that the kernels that leave an end to the plain path do the rest.
func TestKernelsUnpackWholeVectors(t *testing.T) {
	src, dst, wide := make([]byte, 4096), make([]uint32, 256), make([]int64, 256)
	level, kernels := wholeVectors(dst, wide, src)
	if level == simd.Generic {
		t.Skip("there are no such kernels on this architecture, or without assembly")
	}
	for width, kernel := range kernels {
		proving.Whole(t, level, len(dst), func() int { return kernel(width) })
	}
	require.NotEmpty(t, kernels)
}

// indices sets idx to indices below size, the last being size-1. Now and then some of them count up.
func indices(r *rand.Rand, idx []uint32, size int) {
	for i := range idx {
		idx[i] = uint32(r.Intn(size))
	}
	for i := 0; i < len(idx); i += 1 + r.Intn(40) {
		first := r.Intn(size)
		for k := range min(r.Intn(60), len(idx)-i, size-first) {
			idx[i+k] = uint32(first + k)
		}
	}
	if n := len(idx); n > 0 {
		idx[n-1] = uint32(size - 1)
	}
}

// tryGather tries every length at the ends of fenced memory, with good indices and with one that is not at every place.
func tryGather[D, S Word](t *testing.T, value func(i int) S, want func(x S) D,
	gather func(dst []D, dict []S, idx []uint32) int) {
	proving.EachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewSource(3))
		to, from, of := proving.NewFence(t, 8*proving.Lengths), proving.NewFence(t,
			4*proving.Lengths), proving.NewFence(t, 8*300)
		for n := range proving.Lengths {
			size := []int{1, 2, 255, 300}[n%4]
			dict := proving.End[S](of, size)
			for i := range dict {
				dict[i] = value(i)
			}
			dst, idx := proving.End[D](to, n), proving.End[uint32](from, n)
			indices(r, idx, size)
			require.Equal(t, n, gather(dst, dict, idx))
			for i, x := range idx {
				require.Equal(t, want(dict[x]), dst[i])
			}
			if n == 0 {
				continue
			}
			at := r.Intn(n)
			for _, bad := range []uint32{uint32(size), uint32(size) + 1, 1 << 31, 1<<32 - 1} {
				idx[at] = bad
				require.Equal(t, at, gather(dst, dict, idx), "index %d of %d at %d of %d", bad, size, at, n)
			}
			for i, x := range idx[:at] {
				require.Equal(t, want(dict[x]), dst[i])
			}
		}
		require.Equal(t, 0, gather(make([]D, 20), nil, make([]uint32, 20)), "an empty dictionary")
	})
}

func TestGather(t *testing.T) {
	tryGather(t, func(i int) int64 { return int64(i) * -0x123456789abcdef }, func(x int64) int64 { return x },
		Gather[int64])
	tryGather(t, func(i int) float32 { return float32(i) / 7 }, func(x float32) float32 { return x }, Gather[float32])
	tryGather(t, func(i int) float64 { return float64(i) / 7 }, func(x float64) float64 { return x }, Gather[float64])
	tryGather(t, func(i int) int32 { return int32(i) * 0x7654321 }, func(x int32) int64 { return int64(x) },
		GatherNarrow[int32])
	tryGather(t, func(i int) uint32 { return uint32(i) * 0x87654321 }, func(x uint32) int64 { return int64(x) },
		GatherNarrow[uint32])
}

func TestSum(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewSource(4))
		fence := proving.NewFence(t, 8*proving.Lengths+64)
		for n := range proving.Lengths {
			for _, v := range [][]int64{proving.End[int64](fence, n), proving.Start[int64](fence, n%8, n)} {
				least, last := int64(r.Uint64()), int64(r.Uint64())
				want, sum := make([]int64, n), last
				for i := range v {
					v[i] = int64(r.Uint64()) >> r.Intn(64)
					sum += v[i] + least
					want[i] = sum
				}
				Sum(v, least, last)
				require.Equal(t, want, append([]int64{}, v...))
			}
		}
	})
}

func TestJoin(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewSource(5))
		to, from := proving.NewFence(t, 8*proving.Lengths), proving.NewFence(t, 16*proving.Lengths)
		for n := range proving.Lengths {
			stride := n + n%3
			narrow, wide := proving.End[uint32](to, n), make([]uint64, n)
			src := proving.End[byte](from, max(3*stride+n, 0))
			r.Read(src)
			Join4(narrow, src, stride)
			for i, x := range narrow {
				for k := range 4 {
					require.Equal(t, src[k*stride+i], byte(x>>(8*k)), "byte %d of value %d of %d", k, i, n)
				}
			}
			src = proving.End[byte](from, 7*stride+n)
			r.Read(src)
			Join8(wide, src, stride)
			copy(proving.End[uint64](to, n), wide)
			Join8(proving.End[uint64](to, n), src, stride)
			for i, x := range wide {
				require.Equal(t, x, proving.End[uint64](to, n)[i])
				for k := range 8 {
					require.Equal(t, src[k*stride+i], byte(x>>(8*k)), "byte %d of value %d of %d", k, i, n)
				}
			}
		}
	})
}

func trySpread[T Word](t *testing.T, value func(i int) T) {
	proving.EachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewSource(6))
		fence, flags := proving.NewFence(t, 8*proving.Lengths+64), proving.NewFence(t, proving.Lengths+64)
		for n := range proving.Lengths {
			for _, share := range []int{0, 1, 50, 99, 100} {
				v, valid := proving.End[T](fence, n), proving.End[byte](flags, n)
				if n%2 == 1 {
					v, valid = proving.Start[T](fence, n%8, n), proving.Start[byte](flags, n%64, n)
				}
				want, there := make([]T, n), 0
				for i := range valid {
					valid[i] = 0
					if r.Intn(100) < share {
						valid[i] = 1
						want[i] = value(there + 1)
						there++
					}
				}
				for i := range v {
					v[i] = value(1000 + i) // is left of another block
				}
				for i := range there {
					v[i] = value(i + 1)
				}
				Spread(v, valid, there)
				require.Equal(t, want, append([]T{}, v...), "%d of %d", there, n)
			}
		}
	})
}

func TestSpread(t *testing.T) {
	trySpread(t, func(i int) int64 { return int64(i) << 33 })
	trySpread(t, func(i int) float64 { return float64(i) })
	trySpread(t, func(i int) float32 { return float32(i) })
}

func TestNothingIsAllocated(t *testing.T) {
	src, idx, v32, v64, valid := make([]byte, 1000), make([]uint32, 100), make([]uint32, 100), make([]int64,
		100), bytes.Repeat([]byte{1}, 100)
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() {
			Unpack32(idx, src, 3, 5)
			Unpack64(v64, src, 3, 5)
			Gather(v32, v32, idx)
			GatherNarrow(v64, v32, idx)
			Sum(v64, 1, 2)
			Join4(v32, src, 100)
			Join8(words[uint64](v64), src, 100)
			Spread(v32, valid, 100)
			Spread(v64, valid, 100)
		}))
	})
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("bits, the lowest first, of any width"), uint8(17), uint8(3), uint8(9))
	f.Add([]byte("and of more than a word has room for"), uint8(63), uint8(7), uint8(200))
	f.Fuzz(func(t *testing.T, src []byte, width, bit, n uint8) {
		w := uint(width) % 65
		got, want := make([]int64, n), make([]int64, n)
		for i := range want {
			want[i] = int64(bitsOneByOne(src, int(bit)+i*int(w), w))
		}
		for _, l := range simd.Levels() {
			restore := simd.Force(l)
			Unpack64(got, src, int(bit), w)
			narrow := make([]uint32, n)
			if w <= 32 {
				Unpack32(narrow, src, int(bit), w)
			}
			restore()
			require.Equal(t, want, got, "%v", l)
			if w <= 32 {
				for i, x := range narrow {
					require.Equal(t, uint32(want[i]), x, "%v", l)
				}
			}
		}
	})
}

func FuzzGather(f *testing.F) {
	f.Add([]byte("indices of which some are none"), uint16(200))
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		dict, narrow := make([]int64, size), make([]int32, size)
		for i := range dict {
			narrow[i] = int32(i) * -0x12345
			dict[i] = int64(narrow[i])
		}
		idx := make([]uint32, len(data))
		for i, c := range data {
			idx[i] = uint32(c)
		}
		want := make([]int64, len(idx))
		done := gatherGeneric(want, dict, idx)
		for _, l := range simd.Levels() {
			restore := simd.Force(l)
			a, b := make([]int64, len(idx)), make([]int64, len(idx))
			n, m := Gather(a, dict, idx), GatherNarrow(b, narrow, idx)
			restore()
			require.Equal(t, done, n)
			require.Equal(t, done, m)
			require.Equal(t, want[:done], a[:done])
			require.Equal(t, want[:done], b[:done])
		}
	})
}

func FuzzSumAndSpread(f *testing.F) {
	f.Add([]byte("deltas, and flags of what is there"), int64(3), int64(-1))
	f.Fuzz(func(t *testing.T, data []byte, least, last int64) {
		deltas, valid, there := make([]int64, len(data)), make([]byte, len(data)), 0
		for i, c := range data {
			deltas[i] = int64(int8(c)) << (c & 31)
			valid[i] = c & 1
			there += int(c & 1)
		}
		sums, spreads := append([]int64{}, deltas...), append([]int64{}, deltas...)
		sumGeneric(sums, least, last)
		spreadGeneric(words[uint64](spreads), valid, there)
		narrow := make([]uint32, len(deltas))
		for i, x := range deltas {
			narrow[i] = uint32(x)
		}
		narrowSpreads := append([]uint32{}, narrow...)
		spreadGeneric(narrowSpreads, valid, there)
		for _, l := range simd.Levels() {
			restore := simd.Force(l)
			a, b := append([]int64{}, deltas...), append([]int64{}, deltas...)
			Sum(a, least, last)
			Spread(b, valid, there)
			c := append([]uint32{}, narrow...)
			Spread(c, valid, there)
			restore()
			require.Equal(t, narrowSpreads, c)
			require.Equal(t, sums, a)
			require.Equal(t, spreads, b)
		}
	})
}

func FuzzJoin(f *testing.F) {
	f.Add([]byte("bytes of the values, the lowest of all of them first"), uint8(5), uint8(1))
	f.Add(bytes.Repeat([]byte("the streams of more than one vector, "), 20), uint8(77), uint8(3))
	f.Fuzz(func(t *testing.T, src []byte, n, apart uint8) {
		stride := int(n) + int(apart)
		if int(n) == 0 || len(src) < 7*stride+int(n) {
			return
		}
		narrow, wide := make([]uint32, n), make([]uint64, n)
		join4Generic(narrow, src, stride)
		join8Generic(wide, src, stride)
		for _, l := range simd.Levels() {
			restore := simd.Force(l)
			a, b := make([]uint32, n), make([]uint64, n)
			Join4(a, src, stride)
			Join8(b, src, stride)
			restore()
			require.Equal(t, narrow, a, "%v", l)
			require.Equal(t, wide, b, "%v", l)
		}
	})
}

func BenchmarkEncoding(b *testing.B) {
	const n = 2048
	r := rand.New(rand.NewSource(1))
	src, idx, v32, v64 := make([]byte, 16*n), make([]uint32, n), make([]uint32, n), make([]int64, n)
	r.Read(src)
	for _, c := range []struct {
		name  string
		width uint
	}{{"3 bits", 3}, {"12 bits", 12}, {"17 bits", 17}, {"24 bits", 24}} {
		b.Run("unpack/"+c.name, func(b *testing.B) {
			proving.BenchmarkEachLevel(b, n, func() { Unpack32(idx, src, 0, c.width) })
		})
	}
	for _, width := range []uint{24, 50, 64} {
		b.Run(fmt.Sprintf("unpack 64/%d bits", width), func(b *testing.B) {
			proving.BenchmarkEachLevel(b, n, func() { Unpack64(v64, src, 0, width) })
		})
	}
	for _, size := range []int{1000, 100_000} {
		dict, narrow := make([]int64, size), make([]int32, size)
		for i := range idx {
			idx[i] = uint32(r.Intn(size))
		}
		name := map[int]string{1000: "1,000", 100_000: "100,000"}[size]
		b.Run("gather int64/"+name, func(b *testing.B) {
			proving.BenchmarkEachLevel(b, n, func() { Gather(v64, dict, idx) })
		})
		up := make([]uint32, n)
		for i := range up {
			up[i] = uint32(i % size)
		}
		b.Run("gather int64 next to each other/"+name, func(b *testing.B) {
			proving.BenchmarkEachLevel(b, n, func() { Gather(v64, dict, up) })
		})
		b.Run("gather int32 to int64/"+name, func(b *testing.B) {
			proving.BenchmarkEachLevel(b, n, func() { GatherNarrow(v64, narrow, idx) })
		})
	}
	b.Run("sum", func(b *testing.B) { proving.BenchmarkEachLevel(b, n, func() { Sum(v64, 1, 2) }) })
	b.Run("join4", func(b *testing.B) { proving.BenchmarkEachLevel(b, n, func() { Join4(v32, src, n) }) })
	b.Run("join8", func(b *testing.B) {
		proving.BenchmarkEachLevel(b, n,
			func() { Join8(words[uint64](v64), src, n) })
	})
	valid, there := make([]byte, n), 0
	for i := range valid {
		valid[i] = byte(r.Intn(3)+1) / 2
		there += int(valid[i])
	}
	b.Run("spread", func(b *testing.B) { proving.BenchmarkEachLevel(b, n, func() { Spread(v64, valid, there) }) })
}
