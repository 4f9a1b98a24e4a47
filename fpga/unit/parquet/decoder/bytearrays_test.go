package decoder

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// plainArrays returns n PLAIN byte arrays: runs of arrays of one length, and arrays of lengths at random.
func plainArrays(rng *rand.Rand, n int) (src []byte, arrays [][]byte) {
	for len(arrays) < n {
		size, run := rng.IntN(20), 1
		if rng.IntN(3) == 0 {
			run = 1 + rng.IntN(40)
			if rng.IntN(2) == 0 {
				size = 8
			}
		}
		for range min(run, n-len(arrays)) {
			array := make([]byte, size)
			for i := range array {
				array[i] = byte(rng.Uint32())
			}
			src = append(binary.LittleEndian.AppendUint32(src, uint32(size)), array...)
			arrays = append(arrays, array)
		}
	}
	return src, arrays
}

// TestByteArraysInRuns decodes and skips byte arrays whose lengths are equal for a while, from every array on.
func TestByteArraysInRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		src, arrays := plainArrays(rng, 1+rng.IntN(150))
		skipped := rng.IntN(len(arrays) + 1)
		rest, err := skipByteArrays(src, skipped)
		require.NoError(t, err)
		v := valueReader{src: rest}
		b := Block{Offsets: []uint32{0}}
		n := rng.IntN(len(arrays) - skipped + 1)
		want := 0
		for _, array := range arrays[skipped : skipped+n] {
			want += len(array)
		}
		require.NoError(t, v.appendPlainBytes(&b, n, want), "no more bytes than the limit")
		for i, array := range arrays[skipped : skipped+n] {
			require.Equal(t, string(array), string(b.Data[b.Offsets[i]:b.Offsets[i+1]]))
		}
		after, err := skipByteArrays(src, skipped+n)
		require.NoError(t, err)
		assert.Len(t, v.src, len(after))
		if want > 0 {
			v = valueReader{src: rest}
			b = Block{Offsets: []uint32{0}}
			require.ErrorIs(t, v.appendPlainBytes(&b, n, want-1), format.ErrLimit)
		}
	}
}

// TestByteArraysThatEndEarly cuts a page of alike arrays at every byte, and gives one array a length beyond the page.
func TestByteArraysThatEndEarly(t *testing.T) {
	const n = 20
	var src []byte
	for range n {
		src = append(binary.LittleEndian.AppendUint32(src, 8), "0123abcd"...)
	}
	for cut := range src {
		_, err := skipByteArrays(src[:cut], n)
		require.ErrorIs(t, err, format.ErrCorrupt, cut)
		v := valueReader{src: src[:cut:cut]}
		require.ErrorIs(t, v.appendPlainBytes(&Block{Offsets: []uint32{0}}, n, 1<<20), format.ErrCorrupt, cut)
	}
	rest, err := skipByteArrays(src, n)
	require.NoError(t, err)
	assert.Empty(t, rest)
	for i := range n {
		for _, size := range []uint32{9, 1 << 20, 1<<32 - 1} {
			bad := append([]byte(nil), src...)
			binary.LittleEndian.PutUint32(bad[12*i:], size)
			_, err := skipByteArrays(bad, n)
			require.ErrorIs(t, err, format.ErrCorrupt)
			v := valueReader{src: bad}
			require.ErrorIs(t, v.appendPlainBytes(&Block{Offsets: []uint32{0}}, n, 1<<20), format.ErrCorrupt)
		}
	}
}

func BenchmarkByteArrays(b *testing.B) {
	const n = 8192
	for name, size := range map[string]func(i int) int{
		"alike":  func(int) int { return 8 },
		"unlike": func(i int) int { return 5 + i*7%11 },
	} {
		var src []byte
		for i := range n {
			src = append(binary.LittleEndian.AppendUint32(src, uint32(size(i))), make([]byte, size(i))...)
		}
		b.Run("skip/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := skipByteArrays(src, n); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
		b.Run("append/"+name, func(b *testing.B) {
			block := Block{Offsets: make([]uint32, 1, n+1), Data: make([]byte, 0, 1<<20)}
			for b.Loop() {
				v := valueReader{src: src}
				block.Offsets, block.Data = block.Offsets[:1], block.Data[:0]
				if err := v.appendPlainBytes(&block, n, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
	}
}
