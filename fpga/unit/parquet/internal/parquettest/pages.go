package parquettest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"math/rand"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/thrift"
)

// MarshalHeader writes a page header.
func MarshalHeader(h *format.PageHeader) []byte {
	var w thrift.Writer
	w.Begin()
	w.Int32(1, int32(h.Type))
	w.Int32(2, h.Uncompressed)
	w.Int32(3, h.Compressed)
	if h.HasCRC {
		w.Int32(4, int32(h.CRC))
	}
	switch h.Type {
	case format.DataPage:
		w.Field(5, thrift.TypeStruct)
		w.Begin()
		w.Int32(1, h.NumValues)
		w.Int32(2, int32(h.Encoding))
		w.Int32(3, int32(h.DefEncoding))
		w.Int32(4, int32(h.RepEncoding))
		w.End()
	case format.DictionaryPage:
		w.Field(7, thrift.TypeStruct)
		w.Begin()
		w.Int32(1, h.NumValues)
		w.Int32(2, int32(h.Encoding))
		w.End()
	case format.DataPageV2:
		w.Field(8, thrift.TypeStruct)
		w.Begin()
		w.Int32(1, h.NumValues)
		w.Int32(2, h.NumNulls)
		w.Int32(3, h.NumRows)
		w.Int32(4, int32(h.Encoding))
		w.Int32(5, h.DefBytes)
		w.Int32(6, h.RepBytes)
		if !h.IsCompressed {
			w.Bool(7, false)
		}
		w.End()
	}
	w.End()
	return w.Bytes
}

// Page is a page's header and the bytes behind it.
type Page struct {
	Header  format.PageHeader
	Payload []byte
}

// finish sets the header's sizes and checksum.
func (c *Column) finish(h format.PageHeader, levels, body []byte) Page {
	p := Page{Header: h}
	h.Uncompressed = int32(len(levels) + len(body))
	if h.Type == format.DataPageV2 {
		h.IsCompressed = c.Codec != format.Uncompressed
		p.Payload = append(append([]byte{}, levels...), Compress(body, c.Codec)...)
	} else {
		p.Payload = Compress(append(append([]byte{}, levels...), body...), c.Codec)
	}
	h.Compressed = int32(len(p.Payload))
	if c.CRC {
		h.HasCRC, h.CRC = true, crc32.ChecksumIEEE(p.Payload)
	}
	p.Header = h
	return p
}

// Pages writes the column's pages.
func (c *Column) Pages(r *rand.Rand) []Page {
	all := c.Levels(r)
	var pages []Page
	dict := map[string]uint32{}
	var entries []any
	if c.Encoding.IsDictionary() {
		for _, l := range all {
			if l.Value == nil {
				continue
			}
			key := fmt.Sprintf("%x", c.plainKey(l.Value))
			if _, ok := dict[key]; !ok {
				dict[key] = uint32(len(entries))
				entries = append(entries, l.Value)
			}
		}
		h := format.PageHeader{Type: format.DictionaryPage, NumValues: int32(len(entries)), Encoding: format.Plain}
		if c.Encoding == format.PlainDictionary {
			h.Encoding = format.PlainDictionary
		}
		pages = append(pages, c.finish(h, nil, c.Plain(entries)))
	}
	for len(all) > 0 || len(pages) == 0 {
		n := c.cut(r, all)
		pages = append(pages, c.DataPage(r, all[:n], dict, len(entries)))
		all = all[n:]
		if len(all) == 0 {
			break
		}
	}
	return pages
}

// cut returns how many levels go into the next page: whole rows, unless SplitRows is set.
func (c *Column) cut(r *rand.Rand, all []Level) int {
	if c.PageRows == 0 {
		return len(all)
	}
	if c.SplitRows {
		return min(len(all), 1+r.Intn(2*c.PageRows))
	}
	rows := 0
	for i, l := range all {
		if l.Rep == 0 {
			if rows == c.PageRows {
				return i
			}
			rows++
		}
	}
	return len(all)
}

// DataPage writes a data page of levels. dict has the index of each value in a dictionary of entries values.
func (c *Column) DataPage(r *rand.Rand, levels []Level, dict map[string]uint32, entries int) Page {
	var reps, defs, indices []uint32
	var values []any
	maxDef, repDef := c.Shape.LevelBounds()
	h := format.PageHeader{Type: format.DataPage, NumValues: int32(len(levels)), Encoding: c.Encoding,
		DefEncoding: format.RLE, RepEncoding: format.RLE}
	for _, l := range levels {
		reps, defs = append(reps, uint32(l.Rep)), append(defs, uint32(l.Def))
		if l.Rep == 0 {
			h.NumRows++
		}
		if l.Value == nil {
			h.NumNulls++
			continue
		}
		values = append(values, l.Value)
		if c.Encoding.IsDictionary() {
			indices = append(indices, dict[fmt.Sprintf("%x", c.plainKey(l.Value))])
		}
	}
	body := c.body(r, values, indices, entries)
	repWidth, defWidth := 0, bits.Len8(maxDef)
	if repDef > 0 {
		repWidth = bits.Len8(c.Shape.ColumnType().MaxRep)
	}
	if c.V2 {
		h.Type, h.DefEncoding, h.RepEncoding = format.DataPageV2, 0, 0
		var rep, def []byte
		if repWidth > 0 {
			rep = c.hybrid(r, reps, repWidth)
		}
		if defWidth > 0 {
			def = c.hybrid(r, defs, defWidth)
		}
		h.RepBytes, h.DefBytes = int32(len(rep)), int32(len(def))
		return c.finish(h, append(rep, def...), body)
	}
	h.NumNulls, h.NumRows = 0, 0
	var section []byte
	add := func(levels []uint32, width int, e *format.Encoding) {
		switch {
		case width == 0:
		case c.MSBLevels:
			*e = format.BitPacked
			section = append(section, packBitsMSB(levels, width)...)
		default:
			b := c.hybrid(r, levels, width)
			section = binary.LittleEndian.AppendUint32(section, uint32(len(b)))
			section = append(section, b...)
		}
	}
	add(reps, repWidth, &h.RepEncoding)
	add(defs, defWidth, &h.DefEncoding)
	return c.finish(h, section, body)
}
