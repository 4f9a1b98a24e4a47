package rtl

import (
	"fmt"
	"math"
)

// The tile of unit row_packer.
const (
	packedRows    = 512
	packedColumns = 16
)

// RowPacker returns the setup of unit row_packer for columns of some rows.
func RowPacker(rows int) (Setup, error) {
	if rows < 1 || rows > packedRows {
		return Setup{}, &NotInRTLError{Unit: "row_packer",
			What: fmt.Sprintf("packs 1 to %d rows at a time, and not %d", packedRows, rows)}
	}
	return Setup{Unit: "row_packer", Writes: []Write{{Address: 0, Data: uint64(rows)}}}, nil
}

// ColumnTransfers returns the words of the transfers of columns to unit row_packer: the columns' values, one column
// behind the other. Columns without values make no transfer.
func ColumnTransfers(columns []float32) []uint64 {
	const lastBit = 1 << 32
	words := make([]uint64, len(columns))
	for i, value := range columns {
		words[i] = uint64(math.Float32bits(value))
	}
	if len(words) > 0 {
		words[len(words)-1] |= lastBit
	}
	return words
}

// PackedRow returns the values in the words of a result of unit row_packer, one of each column, and whether the result
// is the last of its section and the section is damaged.
func PackedRow(result []uint64) (row []float32, last, damaged bool) {
	tags := result[packedColumns/2]
	for column := range min(tags&31, packedColumns) {
		row = append(row, math.Float32frombits(uint32(result[column/2]>>(32*(column%2)))))
	}
	return row, tags&(1<<5) != 0, tags&(1<<6) != 0
}
