package rtl

import (
	"fmt"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// levelPairs is the number of pairs of levels in a transfer of unit list_lengths.
const levelPairs = 8

// ListLengths returns the setup of unit list_lengths for a column, of lists or flat.
func ListLengths(ct format.ColumnType) (Setup, error) {
	if ct.MaxRep > 1 {
		return Setup{}, &NotInRTLError{Unit: "list_lengths",
			What: fmt.Sprintf("takes repetition levels of 0 and 1, and not of %d", ct.MaxRep)}
	}
	return Setup{Unit: "list_lengths",
		Writes: []Write{{Address: 0, Data: uint64(ct.RepDef)}, {Address: 1, Data: uint64(ct.MaxDef)}}}, nil
}

// LevelTransfers returns the words of the transfers of a section's levels to unit list_lengths. size is asked for the
// pairs of each transfer, 0 to 8, of which the last may have fewer.
func LevelTransfers(repetitions, definitions []uint8, size func() int) []uint64 {
	const (
		definitionBits  = 6
		definitionPlace = levelPairs
		countPlace      = definitionPlace + levelPairs*definitionBits
		lastBit         = 1 << (countPlace + 4)
	)
	var words []uint64
	for {
		n := min(size(), len(repetitions))
		word := uint64(n) << countPlace
		for i := range n {
			word |= uint64(repetitions[i])<<i | uint64(definitions[i])<<(definitionPlace+definitionBits*i)
		}
		repetitions, definitions = repetitions[n:], definitions[n:]
		if len(repetitions) == 0 {
			return append(words, word|lastBit)
		}
		words = append(words, word)
	}
}

// ListResult is a result of unit list_lengths.
type ListResult struct {
	Lengths    []uint32 // elements of the rows that end
	RowPresent []bool   // whether each of these rows is not null
	Present    []bool   // whether each element of the transfer is not null
	Last       bool     // the section's rows end
	Damaged    bool     // the pairs up to here are no lists
	Tidy       bool     // everything behind the rows and elements that count is 0
}

// ListRows reads the words of a result of unit list_lengths.
func ListRows(words []uint64) ListResult {
	const (
		lengthBits    = 4
		rowsPresentAt = 32 + (levelPairs-1)*lengthBits // this field and those behind it begin in the first word's bit 60
	)
	tail := words[0]>>rowsPresentAt | words[1]<<(64-rowsPresentAt)
	rowsPresent, rows := tail&0xff, tail>>8&0xf
	present, elements := tail>>12&0xff, tail>>20&0xf
	r := ListResult{Last: tail>>24&1 == 1, Damaged: tail>>25&1 == 1}
	lengths := words[0] >> 32 & (1<<((levelPairs-1)*lengthBits) - 1)
	for row := range min(rows, levelPairs) {
		length := uint32(words[0])
		if row > 0 {
			length = uint32(lengths >> (lengthBits * (row - 1)) & 0xf)
		}
		r.Lengths = append(r.Lengths, length)
		r.RowPresent = append(r.RowPresent, rowsPresent>>row&1 == 1)
	}
	for element := range min(elements, levelPairs) {
		r.Present = append(r.Present, present>>element&1 == 1)
	}
	lengthsThere := lengthBits * (max(rows, 1) - 1)
	r.Tidy = rows <= levelPairs && elements <= levelPairs && uint64(bits.Len64(rowsPresent)) <= rows &&
		uint64(bits.Len64(present)) <= elements && lengths>>lengthsThere == 0 && (rows > 0 || uint32(words[0]) == 0)
	return r
}
