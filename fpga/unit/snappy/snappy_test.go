package snappy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	library "github.com/klauspost/compress/snappy"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// plainDecode decodes a block byte by byte, as the format's description reads. It returns nil for a wrong block.
func plainDecode(block []byte) []byte {
	size, n := binary.Uvarint(block)
	out, rest := make([]byte, 0, size), block[n:]
	number := func(bytes int) (x int) {
		for i := range bytes {
			x |= int(rest[i]) << (8 * i)
		}
		rest = rest[bytes:]
		return x
	}
	for len(rest) > 0 {
		tag := int(rest[0])
		rest = rest[1:]
		length, offset := tag>>2+1, 0
		if need := [4]int{max(0, length-60), 1, 2, 4}[tag&3]; len(rest) < need {
			return nil
		}
		switch tag & 3 {
		case 0:
			if length > 60 {
				length = number(length-60) + 1
			}
			if length > len(rest) {
				return nil
			}
			out, rest = append(out, rest[:length]...), rest[length:]
			continue
		case 1:
			length, offset = tag>>2&7+4, tag>>5<<8|number(1)
		case 2:
			offset = number(2)
		case 3:
			offset = number(4)
		}
		if offset == 0 || offset > len(out) {
			return nil
		}
		for range length {
			out = append(out, out[len(out)-offset])
		}
	}
	if len(out) != int(size) {
		return nil
	}
	return out
}

// randomBlock returns a block of elements of every kind, most of them with at most longest bytes.
func randomBlock(r *rand.Rand, elements, longest int) []byte {
	var body []byte
	size := 0
	for range elements {
		length := 1 + r.Intn(longest)
		if r.Intn(50) == 0 {
			length = 1 + r.Intn(64)
		}
		kind := r.Intn(4)
		if size == 0 {
			kind = literal
		}
		offset := 1 + r.Intn(max(1, min(size, 1<<(1+r.Intn(18)))))
		switch {
		case kind == copy1 && offset < 1<<11:
			length = 4 + r.Intn(8)
			body = append(body, byte(offset>>8<<5|(length-4)<<2|copy1), byte(offset))
		case kind >= copy2 && offset < 1<<16 && r.Intn(4) > 0:
			body = append(body, byte((length-1)<<2|copy2), byte(offset), byte(offset>>8))
		case kind != literal:
			body = binary.LittleEndian.AppendUint32(append(body, byte((length-1)<<2|copy4)), uint32(offset))
		default:
			if r.Intn(100) == 0 {
				length = 1 + r.Intn(3000)
			}
			switch extra := r.Intn(40); {
			case length > 256 || extra == 0:
				body = append(body, 61<<2, byte(length-1), byte((length-1)>>8))
			case length > 60 || extra == 1:
				body = append(body, 60<<2, byte(length-1))
			case extra == 2:
				body = append(body, 62<<2, byte(length-1), 0, 0)
			case extra == 3:
				body = append(body, 63<<2, byte(length-1), 0, 0, 0)
			default:
				body = append(body, byte(length-1)<<2)
			}
			for range length {
				body = append(body, byte(r.Intn(256)))
			}
		}
		size += length
	}
	return append(binary.AppendUvarint(nil, uint64(size)), body...)
}

// decodeInFences decodes a block that ends where readable memory ends, to bytes that end where writable memory ends.
type decodeInFences struct{ dst, src *proving.Fence }

func newFences(t testing.TB) decodeInFences {
	return decodeInFences{proving.NewFence(t, 1<<20), proving.NewFence(t, 1<<20)}
}

// guard is what lies before a destination.
var guard = bytes.Repeat([]byte{0xa5}, 256)

// decode returns nil if the block is wrong, and demands that no byte before the destination changes.
func (f decodeInFences) decode(t testing.TB, size int, block []byte) []byte {
	all := proving.End[byte](f.dst, len(guard)+size)
	for i := range all {
		all[i] = 0xa5
	}
	src := proving.End[byte](f.src, len(block))
	copy(src, block)
	n, err := Decode(all[len(guard):], src)
	if !bytes.Equal(guard, all[:len(guard)]) {
		require.Equal(t, guard, all[:len(guard)])
	}
	if err != nil || n != size {
		return nil
	}
	return all[len(guard):]
}

// TestElements decodes blocks of all kinds of elements, of every size up to some hundred elements and of some thousand.
func TestElements(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		r, fences := rand.New(rand.NewSource(1)), newFences(t)
		for i := range 3000 {
			elements := i % 300
			if i%50 == 0 {
				elements = 3000 + r.Intn(3000)
			}
			block := randomBlock(r, elements, []int{4, 8, 16, 17, 60, 64}[i%6])
			want := plainDecode(block)
			require.NotNil(t, want)
			require.True(t, bytes.Equal(want, fences.decode(t, len(want), block)), "block %d", i)
			if k := kernelsOfLevel(); k != noKernels {
				require.True(t, decode(make([]byte, len(want)), block, k), "block %d: the library is not needed", i)
			}
		}
	})
}

// TestEveryElementAtEveryPlace decodes each tag at distances from the block's beginning and end around those at which
// the kernel takes over from Go and hands back, and a fifth of these cases with -short.
func TestEveryElementAtEveryPlace(t *testing.T) { proving.EachLevel(t, everyElementAtEveryPlace) }

func everyElementAtEveryPlace(t *testing.T) {
	fences := newFences(t)
	for tag := range 256 {
		if isLongLiteral(byte(tag)) {
			continue
		}
		for _, before := range []int{0, 1, 63, 64, 65, 127, 128, 129, 200} {
			for _, after := range []int{0, 1, 2, 20, 63, 64, 65, 127, 128, 129, 191, 192, 193, 300} {
				if testing.Short() && (tag+before+after)%5 != 0 {
					continue
				}
				for _, offset := range []int{1, 7, 8, 15, 16, 17, 63, 64, 65, before, before + 1} {
					var body []byte
					for i := range before {
						body = append(body, 0, byte(i*7+1)) // literals of a byte
					}
					body = append(body, byte(tag))
					length := tag>>2 + 1
					switch tag & 3 {
					case literal:
						body = append(body, bytes.Repeat([]byte{9}, length)...)
					case copy1:
						body, length = append(body, byte(offset)), tag>>2&7+4
					case copy2:
						body = append(body, byte(offset), 0)
					case copy4:
						body = append(body, byte(offset), 0, 0, 0)
					}
					for i := range after {
						body = append(body, 0, byte(i*3+2))
					}
					block := append(binary.AppendUvarint(nil, uint64(before+length+after)), body...)
					got := fences.decode(t, before+length+after, block)
					if want := plainDecode(block); !bytes.Equal(want, got) || (want == nil) != (got == nil) {
						t.Fatalf("tag %#x, offset %d, %d before and %d after: %v, want %v", tag, offset, before, after,
							got, want)
					}
				}
			}
		}
	}
}

// pages are contents as pages of a file have them, with the encoders of the library.
func pages() map[string][]byte {
	r := rand.New(rand.NewSource(2))
	ids, sorted, floats := []byte{}, []byte{}, []byte{}
	for i := range 30_000 {
		ids = binary.LittleEndian.AppendUint64(ids, uint64(r.Intn(1<<(4+r.Intn(22)))))
		sorted = binary.LittleEndian.AppendUint64(sorted, uint64(i*3+r.Intn(3)))
		floats = binary.LittleEndian.AppendUint32(floats, r.Uint32())
	}
	var text strings.Builder
	for range 30_000 {
		fmt.Fprintf(&text, "%x\t%d,", r.Intn(5000), r.Intn(100))
	}
	return map[string][]byte{"ids": ids, "sorted": sorted, "floats": floats, "text": []byte(text.String()),
		"zeros": make([]byte, 100_000), "mixed": append(append(append([]byte{}, ids[:9999]...), floats[:70001]...),
			text.String()[:5555]...), "short": ids[:80], "empty": {}}
}

func packed(page []byte) [][]byte {
	return [][]byte{library.Encode(nil, page), s2.EncodeSnappyBetter(nil, page), s2.EncodeSnappyBest(nil, page)}
}

func TestPages(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		fences := newFences(t)
		for name, page := range pages() {
			for i, block := range packed(page) {
				require.True(t, bytes.Equal(page, fences.decode(t, len(page), block)), "%s, encoder %d", name, i)
			}
		}
	})
}

// TestWrongBlocks gives blocks with errors the verdict of the library, whether the kernel meets them or Go does.
func TestWrongBlocks(t *testing.T) { proving.EachLevel(t, wrongBlocks) }

func wrongBlocks(t *testing.T) {
	fences := newFences(t)
	r := rand.New(rand.NewSource(3))
	same := func(block []byte) (refused bool) {
		size, err := library.DecodedLen(block)
		if err != nil || size > 1<<19 {
			return true
		}
		want, err := library.Decode(make([]byte, size), block)
		got := fences.decode(t, size, block)
		require.Equal(t, err != nil, got == nil)
		require.True(t, err != nil || bytes.Equal(want, got))
		return err != nil
	}
	refused := 0
	for i := range 20_000 {
		block := randomBlock(r, 1+r.Intn(400), 16)
		for range 1 + r.Intn(2) {
			block[r.Intn(len(block))] ^= 1 << r.Intn(8)
		}
		if i%4 == 0 {
			block = block[:1+r.Intn(len(block))]
		}
		if same(block) {
			refused++
		}
	}
	require.Greater(t, refused, 1000)
	require.Less(t, refused, 19_000)
}

// TestSizesThatDiffer refuses a block whose own length is not the destination's, from both sides, and writes nothing.
func TestSizesThatDiffer(t *testing.T) {
	page := pages()["ids"]
	block := library.Encode(nil, page)
	for _, size := range []int{0, len(page) - 1, len(page) + 1} {
		dst := make([]byte, size)
		n, err := Decode(dst, block)
		require.NoError(t, err)
		require.Equal(t, len(page), n)
		require.Equal(t, make([]byte, size), dst)
	}
	_, err := Decode(nil, nil)
	require.ErrorIs(t, err, library.ErrCorrupt)
}

// TestLiteral finds the blocks that are one literal, with every length of its number, and no others.
func TestLiteral(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	page := make([]byte, 70_000)
	r.Read(page)
	for _, size := range []int{1, 59, 60, 61, 255, 256, 257, 65535, 65536, 65537} {
		for extra := range 5 {
			if extra == 0 && size > 60 || extra > 0 && extra < 4 && size > 1<<(8*extra) {
				continue
			}
			block := binary.AppendUvarint(nil, uint64(size))
			if extra == 0 {
				block = append(block, byte(size-1)<<2)
			} else {
				number := binary.LittleEndian.AppendUint32([]byte{byte(59+extra) << 2}, uint32(size-1))
				block = append(block, number[:1+extra]...)
			}
			block = append(block, page[:size]...)
			got, ok := Literal(block)
			require.True(t, ok, "%d bytes, %d of length", size, extra)
			require.Equal(t, page[:size], got)
			want, err := library.Decode(nil, block)
			require.NoError(t, err)
			require.Equal(t, want, got)
			for _, other := range [][]byte{block[:len(block)-1], append(block[:len(block):len(block)], 0), block[1:], nil} {
				_, ok := Literal(other)
				require.False(t, ok)
			}
		}
	}
	for _, block := range [][]byte{{0}, {0, 0}, {4, 3 << 2, 1, 2, 3}, {4, 2<<2 | 1, 1, 2, 3, 4}, {3, 1 << 2, 1, 2, 3},
		{0xff}, {3, 0, 1, 1 << 2, 2, 3}} {
		_, ok := Literal(block)
		require.False(t, ok, "%v", block)
	}
}

// TestRepeatCodes decodes a copy with offset 0, which S2 knows and Snappy does not, as the library does.
func TestRepeatCodes(t *testing.T) {
	body := []byte{19 << 2}
	body = append(body, "abcdefghijklmnopqrst"...)
	body = append(body, copy1, 8, copy1, 0)
	for range 300 {
		body = append(body, 0, 'x')
	}
	block := append(binary.AppendUvarint(nil, 20+4+4+300), body...)
	want, err := library.Decode(nil, block)
	require.NoError(t, err)
	require.Equal(t, want, newFences(t).decode(t, len(want), block))
}

// TestPath proves which kernels run, that they decode what they are for, and that nothing is allocated.
func TestPath(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		k := kernelsOfLevel()
		switch {
		case simd.VBMI():
			require.Equal(t, twoByTwo, k)
		case simd.Current() == simd.AVX2 || simd.Current() == simd.AVX512:
			require.Equal(t, oneByOne, k)
		default:
			require.Equal(t, noKernels, k)
			return
		}
		page := pages()["ids"]
		block := library.Encode(nil, page)
		_, begin := binary.Uvarint(block)
		var sizes [2][span]byte
		k.elementSizes(&sizes, &block[begin], span)
		dst := make([]byte, len(page))
		d, p := k.walk(dst, 0, block[begin:], 0, span, &sizes)
		for steps := 0; p < span; steps++ { // the first values have nothing to be copied from
			require.Less(t, steps, 100)
			d, p, _ = decodeElement(dst, d, block[begin:], p)
			d, p = k.walk(dst, d, block[begin:], p, span, &sizes)
		}
		require.Equal(t, page[:d], dst[:d])
		require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = Decode(dst, block) }))
	})
}

// FuzzDecode compares every level's kernels and Go with the library on any bytes.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewSource(4))
	for i := range 20 {
		f.Add(randomBlock(r, 20*i, 1+3*i))
	}
	for _, page := range pages() {
		f.Add(library.Encode(nil, page[:min(len(page), 4000)]))
	}
	fences := newFences(f)
	f.Fuzz(func(t *testing.T, block []byte) {
		size, err := library.DecodedLen(block)
		if err != nil || size > 1<<19 || len(block) > 1<<19 {
			return
		}
		want, err := library.Decode(make([]byte, size), block)
		if page, ok := Literal(block); ok && (err != nil || !bytes.Equal(want, page)) {
			t.Fatalf("%x: literal %x, want %x (%v)", block, page, want, err)
		}
		for _, level := range simd.Levels() {
			restore := simd.Force(level)
			got := fences.decode(t, size, block)
			restore()
			if (err == nil) != (got != nil) || err == nil && !bytes.Equal(want, got) {
				t.Fatalf("%x: %x, want %x (%v) with %v", block, got, want, err, level)
			}
		}
	})
}

// BenchmarkDecode decodes pages of the library's encoders; compare the levels.
func BenchmarkDecode(b *testing.B) {
	for name, page := range pages() {
		block := s2.EncodeSnappyBetter(nil, page)
		b.Run(name, func(b *testing.B) {
			dst := make([]byte, len(page))
			proving.BenchmarkEachLevel(b, max(1, len(page)), func() { _, _ = Decode(dst, block) })
		})
	}
}
