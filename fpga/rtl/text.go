package rtl

import (
	"github.com/millrace/millrace/fpga/unit/text"
)

// A transfer of unit text_decoder holds 4 bytes, each of which may end a cell.
const textBytes = 4

// TextDecoder returns the setup of unit text_decoder for a section of text, which begins at the start of a line. begins
// says that its partition begins there, where a byte order mark is skipped.
func TextDecoder(labelAbsent, begins bool) Setup {
	setup := Setup{Unit: "text_decoder", Writes: []Write{{Address: 0}, {Address: 1}}}
	if labelAbsent {
		setup.Writes[0].Data = 1
	}
	if begins {
		setup.Writes[1].Data = 1
	}
	return setup
}

// TextTransfers returns the words of the transfers of a section of text to unit text_decoder.
func TextTransfers(section []byte) []uint64 {
	const (
		countPlace = 8 * textBytes
		lastBit    = 1 << (countPlace + 3)
	)
	words := make([]uint64, 0, len(section)/textBytes+1)
	for {
		n := min(textBytes, len(section))
		word := uint64(n) << countPlace
		for i, character := range section[:n] {
			word |= uint64(character) << (8 * i)
		}
		if section = section[n:]; len(section) == 0 {
			return append(words, word|lastBit)
		}
		words = append(words, word)
	}
}

// TextLineEnd is what unit text_decoder says of a line, with the byte that ends it.
type TextLineEnd uint8

// The ends of lines.
const (
	TextLineGoesOn TextLineEnd = iota // the cell is not the line's last one
	TextLineGood
	TextLineMalformedCell
	TextLineFieldCount
	TextLineTooLong
	TextLineEmpty
)

// TextCell is a cell of a result of unit text_decoder.
type TextCell struct {
	Kept      bool // the byte ends a cell
	Value     uint32
	Present   bool
	Malformed bool
	Field     int // the label is 0 also where lines have none; textFields: behind the last field
	End       TextLineEnd
}

// textFields is the number of fields of a line with a label.
const textFields = 1 + text.Dense + text.Sparse

// TextResult is a result of unit text_decoder: what each byte of a transfer ends.
type TextResult struct {
	Cells   [textBytes]TextCell
	Skipped bool // the first 3 bytes are a byte order mark
	Last    bool // the section ends
}

// TextCells reads the words of a result of unit text_decoder.
func TextCells(words []uint64) TextResult {
	tags := words[2]
	r := TextResult{Skipped: tags>>48&1 == 1, Last: tags>>49&1 == 1}
	for i := range r.Cells {
		r.Cells[i] = TextCell{
			Kept: tags>>i&1 == 1, Present: tags>>(4+i)&1 == 1, Malformed: tags>>(8+i)&1 == 1,
			Value: uint32(words[i/2] >> (32 * (i % 2))),
			Field: int(tags >> (12 + 6*i) & 63), End: TextLineEnd(tags >> (36 + 3*i) & 7),
		}
	}
	return r
}
