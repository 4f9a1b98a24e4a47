package engine

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
)

// residentDictionary is the dictionary of the current task, which lies decoded in the dictionary range.
type residentDictionary struct {
	dictionary decoder.Dictionary
	open       bool
}

// dictionaryBytes checks the place of a dictionary page and returns how much dictionary room the page takes.
func (t *taskState) dictionaryBytes(at *program.Cursor, p *page) (size uint64, err error) {
	if at.Seen > 0 || at.Dict {
		return 0, t.atPage(at, pageError("a dictionary page behind the chunk's first page"))
	}
	if int64(p.header.NumValues) > 8*int64(p.header.Uncompressed) { // less than one bit for each value
		return 0, t.atPage(at, pageError("a dictionary of %d values in %d bytes", p.header.NumValues,
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
	defer func() { x.result.Decode += x.addLap(program.UnitParquet, start, int(p.header.NumValues)) - start }()
	ok, err := x.unpackPage(t, at, p, t.payload(p))
	if err == nil && !ok {
		err = dataError("no scratch for the dictionary page")
	}
	if err == nil {
		_, err = decoder.DecodeDictionary(t.dictRoom, &p.header, p.unpacked, &t.columnType)
	}
	if err != nil {
		return t.atPage(at, err)
	}
	at.Dict = true
	return nil
}

// openResident returns the task's dictionary, or nil if there is none. It opens the dictionary once for each task.
func (x *executor) openResident(t *taskState, at *program.Cursor) (*decoder.Dictionary, error) {
	if !at.Dict {
		return nil, nil
	}
	if !x.resident.open {
		d, err := decoder.OpenDictionary(t.dictRoom, &t.columnType)
		if err != nil {
			return nil, t.atPage(at, sliceError("the resident dictionary: %w", err))
		}
		x.resident.dictionary, x.resident.open = d, true
	}
	return &x.resident.dictionary, nil
}

// passDictionary decodes the dictionary page at the cursor and moves behind it.
func (x *executor) passDictionary(s *rowScan) error {
	size, err := s.dictionaryBytes(&s.cursor, &x.page)
	switch {
	case err != nil:
		return err
	case size > uint64(len(s.dictRoom)):
		s.setLacking(program.MoreDict, size)
	case x.page.scratchNeeded(&s.columnType) > uint64(len(s.scratch)):
		s.setLacking(program.MoreRoom, x.page.scratchNeeded(&s.columnType))
	case s.payload(&x.page) == nil:
		s.setLacking(program.MoreInput, x.page.size)
	default:
		if err := x.loadDictionary(s.taskState, &s.cursor, &x.page); err != nil {
			return err
		}
		s.clock = x.readClock()
		passPage(&s.cursor, &x.page)
	}
	return nil
}
