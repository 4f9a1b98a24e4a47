package cosim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/rowmajor"
)

// tile is a section of unit row_packer.
type tile struct {
	values  []float32 // column by column
	damaged bool
}

// drawValues draws floats of any bits, the hard ones among them.
func drawValues(draw *rand.Rand, n int) []float32 {
	hard := hardFloats()
	values := make([]float32, n)
	for i := range values {
		bits := draw.Uint32()
		if draw.IntN(4) == 0 {
			bits = uint32(hard[draw.IntN(len(hard))])
		}
		values[i] = math.Float32frombits(bits)
	}
	return values
}

// tilesOf cuts a dense tensor of some rows, which lies column by column, into tiles.
func tilesOf(values []float32, rows int) []tile {
	var tiles []tile
	for columns := range slices.Chunk(values, rowmajor.Columns*rows) {
		tiles = append(tiles, tile{values: columns})
	}
	return tiles
}

// rowCases pack dense tensors of up to 512 rows and of any number of columns. Then they pack tiles of which some end
// within a column or have a column too many.
func rowCases(t *testing.T, draw *rand.Rand, count int) []unitCase {
	var cases []unitCase
	shapes := [][2]int{{1, 1}, {1, 16}, {1, 17}, {2, 3}, {3, 39}, {5, 33}, {63, 15}, {64, 16}, {511, 16}, {512, 17},
		{512, 40}}
	if short := 1000; count < short {
		shapes = shapes[:5]
	}
	for _, shape := range shapes {
		rows, columns := shape[0], shape[1]
		tiles := tilesOf(drawValues(draw, rows*columns), rows)
		c := rowCase(t, fmt.Sprintf("row_packer: %d rows of %d columns", rows, columns), rows, tiles)
		c.kernel = func(*testing.T, Stream) []uint64 { return denseKernel(tiles, rows, columns) }
		c.reference = func(Stream) []uint64 { return denseReference(tiles, rows, columns) }
		c.read = func(results []uint64) ([]uint64, error) { return denseOf(results, rows, columns) }
		cases = append(cases, c)
	}
	for _, rows := range []int{1, 2, 7, 512} {
		var tiles []tile
		for range 2 + count/512 {
			columns := 1 + draw.IntN(rowmajor.Columns)
			good := tile{values: drawValues(draw, rows*columns)}
			long := tile{values: drawValues(draw, rows*rowmajor.Columns+1+draw.IntN(2*rows)), damaged: true}
			tiles = append(tiles, good, long)
			if rows > 1 {
				within := rows*draw.IntN(rowmajor.Columns) + 1 + draw.IntN(rows-1)
				tiles = append(tiles, tile{values: drawValues(draw, within), damaged: true}, good)
			}
		}
		if short := 1000; count < short && rows == 512 {
			continue
		}
		c := rowCase(t, fmt.Sprintf("row_packer: %d tiles of %d rows", len(tiles), rows), rows, tiles)
		c.kernel = func(*testing.T, Stream) []uint64 { return eachTile(tiles, rows, denseKernel) }
		c.reference = func(Stream) []uint64 { return eachTile(tiles, rows, denseReference) }
		c.read = eachSection("row_packer", func(results []uint64) ([]uint64, error) {
			row, _, damaged := rtl.PackedRow(results)
			if damaged {
				return []uint64{sectionIsDamaged}, untidy(results)
			}
			return denseOf(results, rows, len(row))
		})
		cases = append(cases, c)
	}
	return cases
}

// rowCase returns a case of tiles that follow one another, without what is said of them.
func rowCase(t *testing.T, name string, rows int, tiles []tile) unitCase {
	setup, err := rtl.RowPacker(rows)
	require.NoError(t, err)
	c := unitCase{name: name, setup: setup, cycles: rowCycles(tiles, rows)}
	for _, tile := range tiles {
		c.stream.Words = append(c.stream.Words, rtl.ColumnTransfers(tile.values)...)
	}
	return c
}

// rowCycles returns the cycles until the last row of tiles is read. A tile comes when the tile two before it has left,
// and a tile leaves behind the one before it.
func rowCycles(tiles []tile, rows int) int {
	var came, left [2]int // of the last tile and the one before
	for _, tile := range tiles {
		results := rows
		if tile.damaged {
			results = 1
		}
		came[0], came[1] = came[1], max(came[1], left[0])+len(tile.values)
		left[0], left[1] = left[1], max(left[1], came[1])+results
	}
	return left[1]
}

// eachTile returns what a kernel or reference says of tiles, each a tensor of its own.
func eachTile(tiles []tile, rows int, say func(tiles []tile, rows, columns int) []uint64) []uint64 {
	var said []uint64
	for _, one := range tiles {
		if one.damaged {
			said = append(said, sectionIsDamaged)
			continue
		}
		said = append(said, say([]tile{one}, rows, len(one.values)/rows)...)
	}
	return said
}

// denseKernel has the drive's kernel write tiles to a tensor, and returns the bits of its values.
func denseKernel(tiles []tile, rows, columns int) []uint64 {
	const size = 4 // bytes of a float32
	dst := make([]byte, size*rows*columns)
	memory := new(rowmajor.Tile)
	for n, tile := range tiles {
		c := 0
		for column := range slices.Chunk(tile.values, rows) {
			copy(memory.Column(c), column)
			c++
		}
		memory.Write(dst[size*rowmajor.Columns*n:], size*columns, c, rows)
	}
	var bits []uint64
	for value := range slices.Chunk(dst, size) {
		bits = append(bits, uint64(binary.LittleEndian.Uint32(value)))
	}
	return bits
}

// denseReference returns the same, value by value.
func denseReference(tiles []tile, rows, columns int) []uint64 {
	bits := make([]uint64, rows*columns)
	column := 0
	for _, tile := range tiles {
		for i, value := range tile.values {
			bits[i%rows*columns+column+i/rows] = uint64(math.Float32bits(value))
		}
		column += len(tile.values) / rows
	}
	return bits
}

// denseOf writes the rows of tiles in the results of unit row_packer to a tensor, of which it returns the bits. The
// error says how the results contradict themselves.
func denseOf(results []uint64, rows, columns int) ([]uint64, error) {
	unit, err := rtl.Named("row_packer")
	if err != nil {
		return nil, err
	}
	bits := make([]uint64, rows*columns)
	at := 0 // the tile's first column
	for n, section := range splitSections(unit, results) {
		if len(section) != rows*rtl.TransferWords(unit.Output) {
			return nil, fmt.Errorf("tile %d has %d words of results, and not those of %d rows", n, len(section), rows)
		}
		if err := untidy(section); err != nil {
			return nil, fmt.Errorf("tile %d: %w", n, err)
		}
		width := min(rowmajor.Columns, columns-at)
		r := 0
		for result := range slices.Chunk(section, rtl.TransferWords(unit.Output)) {
			row, last, damaged := rtl.PackedRow(result)
			if len(row) != width || damaged || last != (r == rows-1) {
				return nil, fmt.Errorf("tile %d, row %d: %d values, last %v, damaged %v", n, r, len(row), last, damaged)
			}
			for c, value := range row {
				bits[r*columns+at+c] = uint64(math.Float32bits(value))
			}
			r++
		}
		at += width
	}
	if at != columns {
		return nil, fmt.Errorf("the tiles have %d columns, and the tensor %d", at, columns)
	}
	return bits, nil
}

// untidy returns an error if the results of one tile hold anything behind the values that count, or if the result of a
// damaged one is not alone and without values.
func untidy(results []uint64) error {
	const words = rowmajor.Columns/2 + 1
	for result := range slices.Chunk(results, words) {
		row, last, damaged := rtl.PackedRow(result)
		if result[words-1]&31 != uint64(len(row)) {
			return fmt.Errorf("a row of %d values", result[words-1]&31)
		}
		for column := len(row); column < rowmajor.Columns; column++ {
			if uint32(result[column/2]>>(32*(column%2))) != 0 {
				return fmt.Errorf("column %d behind those of the tile is not 0", column)
			}
		}
		if damaged && (len(row) > 0 || !last || len(results) != words) {
			return fmt.Errorf("a damaged tile with %d values, last %v, %d words", len(row), last, len(results))
		}
	}
	return nil
}
