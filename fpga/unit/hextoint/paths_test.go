package hextoint

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &hex, "hexGeneric", "hexAVX2", "hexAVX512")
}

// column returns n tokens of eight digits, in which one of every odd tokens is replaced by a token of at.
func column(n, odd int, at func(i int) string) (offsets []uint32, data []byte, valid []byte) {
	offsets = []uint32{0}
	for i := range n {
		token := fmt.Sprintf("%08x", uint32(i+1)*2654435761)
		if i%2 == 0 {
			token = fmt.Sprintf("%08X", uint32(i+1)*2654435761)
		}
		if odd > 0 && i%odd == odd-1 {
			token = at(i)
		}
		data = append(data, token...)
		offsets = append(offsets, uint32(len(data)))
		valid = append(valid, byte(i%3+1))
	}
	return offsets, data, valid
}

// Every path on copies of a column that end at fences: results, validity and errors are the plain path's.
func same(t *testing.T, offsets []uint32, data, valid []byte) {
	n := len(offsets) - 1
	want, wantValid := make([]int64, n), slices.Clone(valid)
	wantErr := hexGeneric(want, offsets, data, wantValid)
	dst := proving.End[int64](proving.NewFence(t, 8*n), n)
	at := proving.End[uint32](proving.NewFence(t, 4*n+4), n+1)
	copy(at, offsets)
	text := proving.End[byte](proving.NewFence(t, len(data)), len(data))
	copy(text, data)
	flags := valid
	if valid != nil {
		flags = proving.End[byte](proving.NewFence(t, n), n)
		copy(flags, valid)
	}
	err := Hex(dst, at, text, flags)
	require.Equal(t, wantErr, err)
	if err == nil {
		require.Equal(t, want, dst)
		require.True(t, slices.Equal(wantValid, flags))
	}
}

func TestEveryPathInEveryPlace(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		for n := range proving.Lengths {
			offsets, data, valid := column(n, 0, nil)
			same(t, offsets, data, nil)
			same(t, offsets, data, valid)
		}
		for name, odd := range map[string]func(i int) string{
			"empty":          func(int) string { return "" },
			"short":          func(i int) string { return "0123456"[:1+i%7] },
			"long":           func(int) string { return "123456789" },
			"not hex":        func(i int) string { return string([]byte("01234567"))[:i%8] + "g" + "01234567"[i%8+1:] },
			"nine and seven": func(i int) string { return "123456789"[:9-i%2*2] },
		} {
			for _, every := range []int{1, 2, 3, 7, 9, 17, 50} {
				for _, n := range []int{1, 4, 8, 9, 64, 99} {
					offsets, data, valid := column(n, every, odd)
					t.Run(fmt.Sprintf("%s/%d of %d", name, every, n), func(t *testing.T) {
						same(t, offsets, data, nil)
						same(t, offsets, data, valid)
						for i := range valid {
							if i%every == 0 {
								valid[i] = 0
							}
						}
						same(t, offsets, data, valid)
					})
				}
			}
		}
	})
}

// Every byte at every place of a token, in the first and the last token of a block.
func TestEveryByteInEveryPath(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		offsets, data, _ := column(8, 0, nil)
		dst, want := make([]int64, 8), make([]int64, 8)
		for _, at := range []int{0, 3, 7, 31, 32, 56, 63} {
			keep := data[at]
			for b := range 256 {
				data[at] = byte(b)
				wantErr := hexGeneric(want, offsets, data, nil)
				err := Hex(dst, offsets, data, nil)
				require.Equal(t, wantErr, err, "byte %02x at %d", b, at)
				if err == nil {
					require.Equal(t, want, dst, "byte %02x at %d", b, at)
				}
			}
			data[at] = keep
		}
	})
}

// Offsets that wrap around, or leave the data, look like tokens of eight bytes to a difference.
func TestOffsetsThatOnlyDifferByEight(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		data := []byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
		for _, first := range []uint32{1, 8, 1<<32 - 64, 1<<32 - 32, 1<<32 - 8, 1<<31 - 8} {
			offsets := make([]uint32, 9)
			for i := range offsets {
				offsets[i] = first + uint32(8*i)
			}
			require.ErrorIs(t, Hex(make([]int64, 8), offsets, data, nil), ErrOffsets, "%d", first)
		}
	})
}

func TestHexAllocatesNothing(t *testing.T) {
	offsets, data, valid := column(100, 9, func(int) string { return "" })
	dst := make([]int64, 100)
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() { _ = Hex(dst, offsets, data, valid) }))
	})
}

func FuzzPaths(f *testing.F) {
	f.Add([]byte("0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdefABCDEF"), []byte{},
		uint16(0))
	f.Add([]byte("0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdefABCDEF"),
		[]byte{20, 1, 30}, uint16(7))
	f.Fuzz(func(t *testing.T, data, cuts []byte, null uint16) {
		offsets, valid := []uint32{0}, []byte{}
		for at := 0; at+8 <= len(data); {
			at += 8
			if i := len(offsets); i < len(cuts) && cuts[i] < 8 {
				at -= int(cuts[i])
			}
			offsets = append(offsets, uint32(at))
			valid = append(valid, 1)
		}
		if n := int(null); n < len(valid) {
			valid[n] = 0
		}
		for _, flags := range [][]byte{nil, valid} {
			n := len(valid)
			want, got, wantFlags, gotFlags := make([]int64, n), make([]int64,
				n), slices.Clone(flags), slices.Clone(flags)
			wantErr, err := hexGeneric(want, offsets, data, wantFlags), Hex(got, offsets, data, gotFlags)
			require.Equal(t, wantErr, err)
			if err == nil {
				require.Equal(t, want, got)
				require.Equal(t, wantFlags, gotFlags)
			}
		}
	})
}
