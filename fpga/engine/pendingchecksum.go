package engine

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/checksum"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// pendingChecksum is the checksum of an open page that is verified while the page is read. It takes each block's
// bytes when they are in the first-level cache, so that a page comes from memory once and not twice. It is verified
// at the latest when the task ends: no slice is done, and no cursor returned, on a page that is wrong. The output
// that a slice wrote until then is that of a failed slice, and is never read. The slice reports the checksum's error,
// even if the wrong bytes led to another error first.
type pendingChecksum struct {
	open   bool
	task   *taskState
	cursor program.Cursor // of the page
	header format.PageHeader
	bytes  []byte
	summed int // bytes that are in sum
	sum    uint32
}

// startPage begins the checksum of a page.
func (s *pendingChecksum) startPage(t *taskState, c *program.Cursor, p *page) {
	*s = pendingChecksum{open: true, task: t, cursor: *c, header: p.header, bytes: p.unpacked}
}

// sumUpTo adds the bytes before page offset to, unless they were added before.
func (s *pendingChecksum) sumUpTo(to int) {
	if s.open && s.summed < to {
		s.sum = checksum.Update(s.sum, s.bytes[s.summed:to])
		s.summed = to
	}
}

// verifyPage adds the rest of the page and verifies the checksum. If it is wrong, the task's cursor returns to the
// page.
func (s *pendingChecksum) verifyPage() error {
	if !s.open {
		return nil
	}
	s.sumUpTo(len(s.bytes))
	t, c, err := s.task, s.cursor, s.header.CheckCRC(s.sum)
	*s = pendingChecksum{}
	if err != nil {
		t.cursor = c
		return t.atPage(&c, err)
	}
	return nil
}

// blockSpan returns where a block's values lie in the page. Lent values lie in their place. Where other values lie is
// not known, and the empty span at the page's end is returned.
func (s *pendingChecksum) blockSpan(b *decoder.Block) (from, to int) {
	whole := len(s.bytes)
	if !s.open || !b.Lent {
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
	from = int(uintptr(at) - uintptr(unsafe.Pointer(unsafe.SliceData(s.bytes))))
	to = from + size*b.Values()
	if from < 0 || to > whole {
		return whole, whole
	}
	return from, to
}
