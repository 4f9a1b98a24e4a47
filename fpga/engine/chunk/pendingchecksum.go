package chunk

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/checksum"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// pendingChecksum is the checksum of an open page that is verified while the page is read. It takes each block's
// bytes when they are in the first-level cache, so that a page comes from memory once and not twice. It is verified
// at the latest when the task ends, so a slice with a wrong page never ends as done and never returns a cursor
// behind that page. Output that was written before belongs to a failed slice, and is never read. The slice reports
// the checksum's error, even if the wrong bytes led to another error first.
type pendingChecksum struct {
	open   bool
	task   *Task
	cursor program.Cursor // The page lies there.
	header format.PageHeader
	bytes  []byte
	block.RunningSum
}

// startPage begins the checksum of a page.
func (s *pendingChecksum) startPage(t *Task, c *program.Cursor, p *page) {
	*s = pendingChecksum{open: true, task: t, cursor: *c, header: p.header, bytes: p.unpacked}
}

// SumUpTo adds the bytes before page offset to, unless they were added before.
func (s *pendingChecksum) sumUpTo(to int) {
	if s.open && s.Summed < to {
		s.Sum = checksum.Update(s.Sum, s.bytes[s.Summed:to])
		s.Summed = to
	}
}

// verifyPage adds the rest of the page and verifies the checksum. If it is wrong, the task's cursor returns to the
// page.
func (s *pendingChecksum) verifyPage() error {
	if !s.open {
		return nil
	}
	s.sumUpTo(len(s.bytes))
	t, c, err := s.task, s.cursor, s.header.CheckCRC(s.Sum)
	*s = pendingChecksum{}
	if err != nil {
		t.Cursor = c
		return t.errorAtPage(&c, err)
	}
	return nil
}

// blockSpan returns the bytes [from, to) of the page in which a block's values lie. Lent values are a view of the
// page. The place of other values is not known, and blockSpan returns the empty span at the page's end.
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
