package lane

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// page is a page for a chunkDecoder.
type page struct {
	header  format.PageHeader
	payload []byte
}

// firstVersion returns a v1 page of three rows: levels behind their length, and values.
func firstVersion(encoding format.Encoding, levels, values []byte) page {
	b := append(binary.LittleEndian.AppendUint32(nil, uint32(len(levels))), levels...)
	b = append(b, values...)
	return page{format.PageHeader{Type: format.DataPage, Encoding: encoding, NumValues: 3, DefEncoding: format.RLE,
		RepEncoding: format.RLE, Compressed: int32(len(b)), Uncompressed: int32(len(b))}, b}
}

// secondVersion returns a v2 page of three rows.
func secondVersion(rows int32, levels, values []byte) page {
	b := append(append([]byte{}, levels...), values...)
	return page{format.PageHeader{Type: format.DataPageV2, Encoding: format.Plain, NumValues: 3, NumRows: rows,
		DefBytes: int32(len(levels)), Compressed: int32(len(b)), Uncompressed: int32(len(b))}, b}
}

// dictionary returns a dictionary page of two values.
func dictionary(values []byte) page {
	return page{format.PageHeader{Type: format.DictionaryPage, Encoding: format.Plain, NumValues: 2,
		Compressed: int32(len(values)), Uncompressed: int32(len(values))}, values}
}

// TestDamagedPages checks that each fault of a page is found, whether chains go through unit lane or through one unit
// behind the other, and that the same page without the fault is read.
func TestDamagedPages(t *testing.T) {
	allPresent := []byte{3 << 1, 1} // a run of three
	values, two := make([]byte, 24), make([]byte, 16)
	indices := func(width, index byte) []byte { return []byte{width, 3 << 1, index} }
	long := firstVersion(format.Plain, allPresent, values)
	long.payload[0] = 200
	bitPacked := firstVersion(format.Plain, allPresent, values)
	bitPacked.header.DefEncoding = format.BitPacked
	huge := firstVersion(format.Plain, allPresent, values)
	huge.header.NumValues = maxPageValues + 1
	for _, c := range []struct {
		name  string
		pages []page
		want  string // of the error; empty: none
	}{
		{"PLAIN", []page{firstVersion(format.Plain, allPresent, values)}, ""},
		{"PLAIN, v2", []page{secondVersion(3, allPresent, values)}, ""},
		{"nulls", []page{firstVersion(format.Plain, []byte{3 << 1, 0}, nil)}, ""},
		{"dictionary", []page{dictionary(two), firstVersion(format.RLEDictionary, allPresent, indices(1, 1))}, ""},
		{"nulls of a dictionary", []page{dictionary(two), firstVersion(format.RLEDictionary, []byte{3 << 1, 0}, nil)}, ""},
		{"levels without end", []page{long}, "levels reach beyond their page"},
		{"levels of bits", []page{bitPacked}, "no unit decodes levels in BIT_PACKED"},
		{"a page too large", []page{huge}, "at most 4194304 values, and not 4194305"},
		{"too few levels", []page{firstVersion(format.Plain, []byte{2 << 1, 1}, values)}, "runs end before their values"},
		{"a level too great", []page{firstVersion(format.Plain, []byte{3 << 1, 2}, values)}, "above the limit"},
		{"too few values", []page{firstVersion(format.Plain, allPresent, values[:23])}, "23 bytes"},
		{"other rows, v2", []page{secondVersion(4, allPresent, values)}, "3 rows in the page, 4 in its header"},
		{"a short dictionary", []page{dictionary(two[:15])}, "15 bytes ends before value 2"},
		{"no dictionary", []page{firstVersion(format.RLEDictionary, allPresent, indices(1, 1))},
			"indices without a dictionary"},
		{"two dictionaries", []page{dictionary(two), dictionary(two)}, "a second dictionary page"},
		{"an index too great", []page{dictionary(two), firstVersion(format.RLEDictionary, allPresent, indices(2, 2))},
			"damaged or truncated"},
		{"wide indices", []page{dictionary(two), firstVersion(format.RLEDictionary, allPresent, indices(33, 1))},
			"width of indices"},
		{"indices without width", []page{dictionary(two), firstVersion(format.RLEDictionary, allPresent, nil)},
			"width of indices"},
	} {
		for _, apart := range []bool{false, true} {
			s := Simulate(t)
			s.apart = apart
			err := readPages(s.sets[0], c.pages)
			if c.want == "" {
				require.NoError(t, err, c.name)
				continue
			}
			require.ErrorContains(t, err, c.want, "%s, apart %v", c.name, apart)
			lacking := c.name == "levels of bits" || c.name == "a page too large"
			require.Equal(t, lacking, errors.Is(err, rtl.ErrNotInRTL), c.name)
			require.Equal(t, !lacking, errors.Is(err, format.ErrCorrupt), c.name)
		}
	}
}

// readPages reads the pages of a column of three optional int64 and runs an empty chain.
func readPages(s *unitSet, pages []page) error {
	c := &chunk{columnType: format.ColumnType{Physical: format.Int64, MaxDef: 1}, path: "id"}
	d := &chunkDecoder{chunk: c, s: s}
	for _, p := range pages {
		if err := d.addPage(&p.header, p.payload); err != nil {
			return err
		}
	}
	if err := d.finish(3); err != nil {
		return err
	}
	_, err := s.runChain(nil, c, false)
	return err
}

// TestTransfersOfUnits holds the words of results against the descriptions of units.
func TestTransfersOfUnits(t *testing.T) {
	for name, words := range map[string]int{"hybrid_decoder": hybridWords, "plain_decoder": wideWords,
		"dictionary_gather": wideWords, "list_lengths": listWords, "row_packer": packedWords, "lane": laneWords} {
		unit, err := rtl.Named(name)
		require.NoError(t, err)
		require.Equal(t, rtl.TransferWords(unit.Output), words, name)
	}
}
