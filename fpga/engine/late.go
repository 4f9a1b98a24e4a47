package engine

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/checksum"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// lateSum is the checksum of an open page that is verified while the page is read: block by block, when a block's bytes are in the
// first-level cache, instead of in a pass of its own before, for which a page comes from memory twice. It is verified at the
// latest when the task ends, so that no slice is done, and no cursor is handed out, on a page that is wrong. What was
// written until then is a faulty slice's output, which nobody reads; and whatever a page of wrong bytes leads to, its
// checksum is the error that is told.
type lateSum struct {
	open   bool
	walk   *walk
	cursor program.Cursor // of the page
	header format.PageHeader
	bytes  []byte
	at     int // bytes that are in sum
	sum    uint32
}

// begin starts a page.
func (l *lateSum) begin(k *walk, c *program.Cursor, p *page) {
	*l = lateSum{open: true, walk: k, cursor: *c, header: p.header, bytes: p.bytes}
}

// upTo takes the bytes before page offset to, if it has not.
func (l *lateSum) upTo(to int) {
	if l.open && l.at < to {
		l.sum = checksum.Update(l.sum, l.bytes[l.at:to])
		l.at = to
	}
}

// end takes what is left of the page and verifies it. An error takes the task's cursor back to the page.
func (l *lateSum) end() error {
	if !l.open {
		return nil
	}
	l.upTo(len(l.bytes))
	k, c, err := l.walk, l.cursor, l.header.CheckCRC(l.sum)
	*l = lateSum{}
	if err != nil {
		k.cur = c
		return k.at(&c, err)
	}
	return nil
}

// span is where a block's values lie in the page: lent ones in their place; of others it is not known, so that they count as all of
// the page.
func (l *lateSum) span(b *decoder.Block) (from, to int) {
	whole := len(l.bytes)
	if !l.open || !b.Lent {
		return whole, whole
	}
	var at unsafe.Pointer
	size := 8
	switch b.Kind {
	case format.KindInt64:
		at = unsafe.Pointer(unsafe.SliceData(b.I64))
	case format.KindFloat64:
		at = unsafe.Pointer(unsafe.SliceData(b.F64))
	default:
		at, size = unsafe.Pointer(unsafe.SliceData(b.F32)), 4
	}
	from = int(uintptr(at) - uintptr(unsafe.Pointer(unsafe.SliceData(l.bytes))))
	to = from + size*b.Values()
	if from < 0 || to > whole {
		return whole, whole
	}
	return from, to
}
