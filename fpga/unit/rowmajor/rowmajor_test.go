package rowmajor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/bfloat16"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &writeRows, "writeGeneric", "writeAVX2", "writeAVX512", "writeNEON")
	proving.Picks(t, &writeBFloatRows, "writeBFloatGeneric", "writeBFloatAVX2", "writeBFloatAVX512", "writeBFloatNEON")
}

// filled is a tile in which every value names its place, NaNs and zeros among them.
func filled() *Tile {
	t := new(Tile)
	for c := range Columns {
		for r := range Rows {
			t[c*Stride+r] = math.Float32frombits(uint32(c)<<28 ^ uint32(r)*0x9e3779b1)
		}
	}
	return t
}

// TestWriteInEveryPlace writes all numbers of columns and rows, the rows far apart and close, up to the fence, and
// looks at what lies between rows too.
func TestWriteInEveryPlace(t *testing.T) {
	tile := filled()
	proving.EachLevel(t, func(t *testing.T) {
		for _, stride := range []int{64, 68, 64 * 3, 2016} {
			fence := proving.NewFence(t, 70*stride+64)
			for _, columns := range []int{1, 2, 3, 4, 5, 7, 14, 15, 16} {
				for rows := range 70 {
					size := max(0, (rows-1)*stride+4*columns)
					dst := proving.End[byte](fence, size)
					for i := range dst {
						dst[i] = 0xa5
					}
					tile.Write(dst, stride, columns, rows)
					want := make([]byte, size)
					for i := range want {
						want[i] = 0xa5
					}
					for r := range rows {
						for c := range columns {
							binary.LittleEndian.PutUint32(want[r*stride+4*c:], math.Float32bits(tile[c*Stride+r]))
						}
					}
					if !bytes.Equal(want, dst) {
						require.Equal(t, want, dst, "stride %d, %d columns, %d rows", stride, columns, rows)
					}
				}
			}
		}
	})
}

// TestWriteBFloat16InEveryPlace does the same for bfloat16, and compares each value with the reference of its package.
func TestWriteBFloat16InEveryPlace(t *testing.T) {
	tile := filled()
	proving.EachLevel(t, func(t *testing.T) {
		for _, stride := range []int{32, 34, 32 * 3, 1008} {
			fence := proving.NewFence(t, 70*stride+32)
			for _, columns := range []int{1, 2, 3, 4, 5, 7, 14, 15, 16} {
				for rows := range 70 {
					size := max(0, (rows-1)*stride+2*columns)
					dst := proving.End[byte](fence, size)
					for i := range dst {
						dst[i] = 0xa5
					}
					tile.WriteBFloat16(dst, stride, columns, rows)
					want := bytes.Repeat([]byte{0xa5}, size)
					for r := range rows {
						for c := range columns {
							rounded := bfloat16.ReferenceRound(tile[c*Stride+r])
							binary.LittleEndian.PutUint16(want[r*stride+2*c:], rounded)
						}
					}
					if !bytes.Equal(want, dst) {
						require.Equal(t, want, dst, "stride %d, %d columns, %d rows", stride, columns, rows)
					}
				}
			}
		}
	})
}

// TestRoundingOfEveryUpperHalf compares the paths with Round for every upper half of a float32, with the lower halves
// around the ties.
func TestRoundingOfEveryUpperHalf(t *testing.T) {
	tile := new(Tile)
	proving.EachLevel(t, func(t *testing.T) {
		got, want := make([]byte, Rows*2*Columns), make([]byte, Rows*2*Columns)
		for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			for from := uint32(0); from < 1<<16; from += Rows * Columns {
				for i := range Columns {
					for r := range Rows {
						c := (i + r) % Columns // so that even and odd halves follow each other in a column
						tile[c*Stride+r] = math.Float32frombits((from+uint32(r*Columns+i))<<16 | lower)
						binary.LittleEndian.PutUint16(want[2*(r*Columns+c):], bfloat16.Round(tile[c*Stride+r]))
					}
				}
				tile.WriteBFloat16(got, 2*Columns, Columns, Rows)
				require.True(t, bytes.Equal(want, got), "lower half %04x", lower)
			}
		}
		require.Zero(t, testing.AllocsPerRun(5, func() { tile.WriteBFloat16(got, 32, Columns, 100) }))
		require.Panics(t, func() { tile.WriteBFloat16(got[:32], 32, Columns, 2) })
		tile.WriteBFloat16(nil, 32, Columns, 0)
	})
}

func TestWholeTile(t *testing.T) {
	tile := filled()
	want := make([]byte, Rows*64)
	writeGeneric(want, 64, tile, Columns, 0, Rows)
	proving.EachLevel(t, func(t *testing.T) {
		got := make([]byte, Rows*64)
		tile.Write(got, 64, Columns, Rows)
		require.Equal(t, want, got)
		tile.Write(nil, 64, Columns, 0)
		require.Zero(t, testing.AllocsPerRun(5, func() { tile.Write(got, 64, Columns, 100) }))
		require.Panics(t, func() { tile.Write(got[:64], 64, Columns, 2) })
	})
}

func BenchmarkWrite(b *testing.B) {
	tile := filled()
	dst := make([]byte, 1024*2016)
	for _, columns := range []int{16, 13} {
		b.Run(fmt.Sprint(columns), func(b *testing.B) {
			proving.BenchmarkEachLevel(b, 1024*columns, func() { tile.Write(dst, 2016, columns, 1024) })
		})
		b.Run(fmt.Sprint(columns, " bfloat16"), func(b *testing.B) {
			proving.BenchmarkEachLevel(b, 1024*columns, func() { tile.WriteBFloat16(dst, 1008, columns, 1024) })
		})
	}
}
