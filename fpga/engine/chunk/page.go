package chunk

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// page is a page whose header lies in the window.
type page struct {
	header     format.PageHeader
	offset     uint64 // chunk offset of the header
	size       uint64 // header and payload
	headerSize int    // bytes of the header
	unpacked   []byte // the page itself, unpacked; nil until it is opened or found in scratch
}

// endOffset is the chunk offset behind the page.
func (p *page) endOffset() uint64 { return p.offset + p.size }

// rowCount returns how many rows begin in the page. ok is false if the header alone does not say so.
func (p *page) rowCount(ct *format.ColumnType) (n uint64, ok bool) {
	switch {
	case p.header.MayContinue(ct):
		return 0, false
	case p.header.Type == format.DataPageV2:
		return uint64(p.header.NumRows), true
	}
	return uint64(p.header.NumValues), true
}

// isPacked reports whether the page must be unpacked into scratch.
func (p *page) isPacked(ct *format.ColumnType) bool {
	return p.header.Packed(ct)
}

// scratchNeeded returns how much scratch the page takes.
func (p *page) scratchNeeded(ct *format.ColumnType) uint64 {
	if !p.isPacked(ct) {
		return 0
	}
	return TagBytes + uint64(p.header.Uncompressed) + uint64(p.headerSize)
}

// holdsValues reports whether the page is a data page with values.
func (p *page) holdsValues() bool {
	return (p.header.Type == format.DataPage || p.header.Type == format.DataPageV2) && p.header.NumValues > 0
}

// movePastPage moves the cursor behind a page. The caller sets Skip.
func (t *Task) movePastPage(at *program.Cursor, p *page) {
	if !t.ColumnType.List || p.holdsValues() {
		at.ValueAt = 0
	}
	if p.holdsValues() {
		at.Seen += uint64(p.header.NumValues)
		if t.ColumnType.List && !p.header.MayContinue(&t.ColumnType) {
			at.ValueAt = program.PageBeginsRow
		}
	}
	at.Page = p.endOffset()
	at.Ordinal++
	at.Unpacked, at.Checked = false, false
}

// unpackPage sets p.unpacked to the page's bytes: those in the window if the page is not compressed, else those in
// scratch, where they may lie already. ok is false if scratch lacks room.
func (r *Reader) unpackPage(t *Task, at *program.Cursor, p *page, payload []byte) (ok bool, err error) {
	if p.unpacked != nil {
		return true, nil
	}
	if !p.isPacked(&t.ColumnType) {
		h := p.header
		h.HasCRC = h.HasCRC && !at.Checked
		late := h.HasCRC && t.verifyWhileReading && p.holdsValues()
		h.HasCRC = h.HasCRC && !late
		p.unpacked, err = decoder.Unpack(nil, &h, payload, &t.ColumnType)
		if err == nil && late {
			r.pageChecksum.startPage(t, at, p)
		}
		if at.Skip == 0 {
			r.BytesIn += p.size
		}
		at.Checked = err == nil && p.header.HasCRC
		return true, err
	}
	if p.scratchNeeded(&t.ColumnType) > uint64(len(t.Scratch)) {
		return false, nil
	}
	clear(t.Scratch[:TagBytes]) // the page that lay here is overwritten
	p.unpacked, err = decoder.Unpack(t.Scratch[TagBytes:], &p.header, payload, &t.ColumnType)
	if err != nil {
		return true, err
	}
	r.BytesIn += p.size
	if p.header.Type != format.DictionaryPage {
		t.writeTag(at, p, payload)
	}
	return true, nil
}
