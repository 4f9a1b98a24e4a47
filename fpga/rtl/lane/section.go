package lane

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// The words of a result of units hybrid_decoder, plain_decoder and dictionary_gather, list_lengths, row_packer, and
// lane.
const (
	hybridWords = 5
	wideWords   = 5
	listWords   = 2
	packedWords = 9
	laneWords   = 2
)

// fullTransfers has every transfer carry 8 indices or pairs of levels.
func fullTransfers() int { return 8 }

// decodeHybrid decodes a section of count values of width bits, each at most limit.
func (s *unitSet) decodeHybrid(section []byte, width uint, limit, count uint32) ([]uint32, error) {
	setup, err := rtl.HybridDecoder(width, limit, count)
	if err != nil {
		return nil, err
	}
	return s.runHybrid(setup, section, int(count))
}

// runHybrid decodes a section of count values with a setup of unit hybrid_decoder.
func (s *unitSet) runHybrid(setup rtl.Setup, section []byte, count int) ([]uint32, error) {
	results, err := s.run(setup, rtl.SectionTransfers(section))
	if err != nil {
		return nil, err
	}
	values := make([]uint32, 0, count)
	damage := false
	for result := range slices.Chunk(results, hybridWords) {
		some, _, damaged := rtl.HybridValues(result)
		values, damage = append(values, some...), damage || damaged
	}
	if damage || len(values) != count {
		return nil, format.Corrupt("hybrid_decoder: runs end before their values, or a value is above the limit")
	}
	return values, nil
}

// decodePlain decodes a section of count PLAIN values.
func (s *unitSet) decodePlain(section []byte, ct format.ColumnType, count uint32) ([]uint64, error) {
	setup, err := rtl.PlainDecoder(ct, count)
	if err != nil {
		return nil, err
	}
	results, err := s.run(setup, rtl.SectionTransfers(section))
	if err != nil {
		return nil, err
	}
	values, damage := wideValues(results)
	if damage || len(values) != int(count) {
		return nil, format.Corrupt("plain_decoder: a section of %d bytes ends before value %d", len(section), count)
	}
	return values, nil
}

// gather looks indices up in a dictionary.
func (s *unitSet) gather(dictionary rtl.Setup, indices []uint32) ([]uint64, error) {
	results, err := s.run(dictionary, rtl.IndexTransfers(indices, fullTransfers))
	if err != nil {
		return nil, err
	}
	values, damage := wideValues(results)
	if damage || len(values) != len(indices) {
		return nil, format.Corrupt("dictionary_gather: an index is behind the dictionary")
	}
	return values, nil
}

// wideValues returns the values of a section, and whether it is damaged.
func wideValues(results []uint64) (values []uint64, damage bool) {
	for result := range slices.Chunk(results, wideWords) {
		some, _, damaged := rtl.WideValues(result)
		values, damage = append(values, some...), damage || damaged
	}
	return values, damage
}

// rowsOf makes rows of a chunk's levels.
func (s *unitSet) rowsOf(ct format.ColumnType, repetitions, definitions []uint8) (chunkRows, error) {
	var rows chunkRows
	setup, err := rtl.ListLengths(ct)
	if err != nil {
		return rows, err
	}
	results, err := s.run(setup, rtl.LevelTransfers(repetitions, definitions, fullTransfers))
	if err != nil {
		return rows, err
	}
	for words := range slices.Chunk(results, listWords) {
		r := rtl.ListRows(words)
		if r.Damaged {
			return rows, format.Corrupt("list_lengths: the levels are no lists")
		}
		rows.lengths, rows.rowPresent = append(rows.lengths, r.Lengths...), append(rows.rowPresent, r.RowPresent...)
		rows.present = append(rows.present, r.Present...)
	}
	return rows, nil
}

// compute streams values through the unit of one step, which makes one result of each.
func (s *unitSet) compute(setup rtl.Setup, words []uint64, count int) ([]uint64, error) {
	if count == 0 {
		return nil, nil
	}
	results, err := s.run(setup, words)
	if err == nil && len(results) != count {
		err = fmt.Errorf("unit %s made %d results of %d values", setup.Unit, len(results), count)
	}
	return results, err
}

// packRows transposes columns of up to 512 rows, which lie one behind the other, with unit row_packer.
func (s *unitSet) packRows(columns []float32, rows int, put func(row int, values []float32)) error {
	setup, err := rtl.RowPacker(rows)
	if err != nil {
		return err
	}
	results, err := s.run(setup, rtl.ColumnTransfers(columns))
	if err != nil {
		return err
	}
	row := 0
	for result := range slices.Chunk(results, packedWords) {
		values, _, damaged := rtl.PackedRow(result)
		if damaged || row >= rows || len(values) != len(columns)/rows {
			return fmt.Errorf("unit row_packer: row %d of %d is damaged, or has not the values of its columns", row, rows)
		}
		put(row, values)
		row++
	}
	if row != rows {
		return fmt.Errorf("unit row_packer made %d rows of %d", row, rows)
	}
	return nil
}
