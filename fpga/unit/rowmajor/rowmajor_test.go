package rowmajor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &writeRows, "writeGeneric", "writeGeneric", "writeAVX512")
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
			for _, columns := range []int{1, 2, 7, 15, 16} {
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
	}
}
