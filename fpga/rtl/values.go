package rtl

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// dictionarySize is the number of values that the dictionary of unit dictionary_gather holds at most.
const dictionarySize = 1 << 14

// PlainDecoder returns the setup of unit plain_decoder for a section of count values of a column.
func PlainDecoder(ct format.ColumnType, count uint32) (Setup, error) {
	var wide, signed uint64
	switch ct.Physical {
	case format.Int64, format.Double:
		wide = 1
	case format.Int32:
		if !ct.Unsigned {
			signed = 1
		}
	case format.Float:
	default:
		return Setup{}, &NotInRTLError{Unit: "plain_decoder",
			What: fmt.Sprintf("takes INT32, INT64, FLOAT and DOUBLE, and not %v", ct.Physical)}
	}
	return Setup{Unit: "plain_decoder", Writes: []Write{{Address: 0, Data: wide}, {Address: 1, Data: signed},
		{Address: 2, Data: uint64(count)}}}, nil
}

// DictionaryGather returns the setup of unit dictionary_gather for a dictionary, whose values are in the form in which
// unit plain_decoder makes them.
func DictionaryGather(values []uint64) (Setup, error) {
	if len(values) > dictionarySize {
		return Setup{}, &NotInRTLError{Unit: "dictionary_gather",
			What: fmt.Sprintf("has dictionaries of up to %d values, and not of %d", dictionarySize, len(values))}
	}
	setup := Setup{Unit: "dictionary_gather"}
	for i, value := range values {
		setup.Writes = append(setup.Writes, Write{Address: uint16(i), Data: value})
	}
	setup.Writes = append(setup.Writes, Write{Address: dictionarySize, Data: uint64(len(values))})
	return setup, nil
}

// IndexTransfers returns the words of the transfers of a section's indices to unit dictionary_gather, in the form in
// which unit hybrid_decoder makes them. size is asked for the indices of each transfer, 0 to 8, of which the last may
// have fewer.
func IndexTransfers(indices []uint32, size func() int) []uint64 {
	const lastBit = 1 << 4 // behind the count
	var words []uint64
	for {
		var transfer [5]uint64
		n := min(size(), len(indices))
		for i, index := range indices[:n] {
			transfer[i/2] |= uint64(index) << (32 * (i % 2))
		}
		transfer[4] = uint64(n)
		if indices = indices[n:]; len(indices) == 0 {
			transfer[4] |= lastBit
			return append(words, transfer[:]...)
		}
		words = append(words, transfer[:]...)
	}
}

// WideValues returns the values in the words of a result of units plain_decoder and dictionary_gather, and whether the
// result is the last of its section and the section is damaged so far.
func WideValues(result []uint64) (values []uint64, last, damaged bool) {
	tags := result[4]
	return result[:min(tags&7, 4)], tags&(1<<3) != 0, tags&(1<<4) != 0
}
