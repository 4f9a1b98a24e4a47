package engine

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
)

// residentDictionary is the dictionary of the current task, which lies decoded in the dictionary range.
type residentDictionary struct {
	dictionary decoder.Dictionary
	opened     bool
}

// checkDictionaryPage checks the place of a dictionary page and returns how much dictionary room the page takes.
func (t *taskState) checkDictionaryPage(at *program.Cursor, p *page) (size uint64, err error) {
	if at.Seen > 0 || at.Dict {
		return 0, t.errorAtPage(at, pageError("a dictionary page behind the chunk's first page"))
	}
	if int64(p.header.NumValues) > 8*int64(p.header.Uncompressed) { // less than one bit for each value
		return 0, t.errorAtPage(at, pageError("a dictionary of %d values in %d bytes", p.header.NumValues,
			p.header.Uncompressed))
	}
	return uint64(max(0, decoder.DictionarySize(&p.header, &t.columnType))), nil
}

// ownsDictionaryRoom reports whether no other task of the slice names any of t's dictionary room. Then the dictionary
// may be decoded before the other tasks have run.
func (x *executor) ownsDictionaryRoom(t *taskState) bool {
	const most = 4096 // with more tasks the search takes longer than reading the page twice
	if len(x.slice.Tasks) > most {
		return false
	}
	mine := t.task.Dict
	for i := range x.slice.Tasks {
		other := &x.slice.Tasks[i]
		if other != t.task && other.Dict.Off < mine.End() && mine.Off < other.Dict.End() {
			return false
		}
	}
	return true
}

// loadDictionary decodes a dictionary page, which lies whole in the window, into its room. The caller has checked the
// room.
func (x *executor) loadDictionary(t *taskState, at *program.Cursor, p *page) error {
	start := x.readClock()
	defer func() { x.result.Decode += x.recordRun(program.UnitParquet, start, int(p.header.NumValues)) - start }()
	ok, err := x.unpackPage(t, at, p, t.payloadInWindow(p))
	if err == nil && !ok {
		err = dataError("no scratch for the dictionary page")
	}
	if err == nil {
		_, err = decoder.DecodeDictionary(t.dictRoom, &p.header, p.unpacked, &t.columnType)
	}
	if err != nil {
		return t.errorAtPage(at, err)
	}
	at.Dict = true
	return nil
}

// openDictionary returns the task's dictionary, or nil if there is none. It opens the dictionary once for each task.
func (x *executor) openDictionary(t *taskState, at *program.Cursor) (*decoder.Dictionary, error) {
	if !at.Dict {
		return nil, nil
	}
	if !x.resident.opened {
		d, err := decoder.OpenDictionary(t.dictRoom, &t.columnType)
		if err != nil {
			return nil, t.errorAtPage(at, sliceError("the resident dictionary: %w", err))
		}
		x.resident.dictionary, x.resident.opened = d, true
	}
	return &x.resident.dictionary, nil
}

// loadDictionaryAtCursor decodes the dictionary page at the cursor and moves behind it.
func (x *executor) loadDictionaryAtCursor(s *rowScan) error {
	size, err := s.checkDictionaryPage(&s.cursor, &x.page)
	switch {
	case err != nil:
		return err
	case size > uint64(len(s.dictRoom)):
		s.stopEarly(program.MoreDict, size)
	case x.page.scratchNeeded(&s.columnType) > uint64(len(s.scratch)):
		s.stopEarly(program.MoreScratch, x.page.scratchNeeded(&s.columnType))
	case s.payloadInWindow(&x.page) == nil:
		s.stopEarly(program.MoreInput, x.page.size)
	default:
		if err := x.loadDictionary(s.taskState, &s.cursor, &x.page); err != nil {
			return err
		}
		s.stageStart = x.readClock()
		s.movePastPage(&s.cursor, &x.page)
	}
	return nil
}
