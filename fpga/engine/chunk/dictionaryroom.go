package chunk

import (
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
)

// residentDictionary is the dictionary of the current task, which lies decoded in the dictionary range.
type residentDictionary struct {
	dictionary decoder.Dictionary
	opened     bool
}

// checkDictionaryPage checks the place of a dictionary page and returns how much dictionary room the page takes.
func (t *Task) checkDictionaryPage(at *program.Cursor, p *page) (size uint64, err error) {
	if at.Seen > 0 || at.Dict {
		return 0, t.errorAtPage(at, failure.Page("a dictionary page behind the chunk's first page"))
	}
	if int64(p.header.NumValues) > 8*int64(p.header.Uncompressed) { // less than one bit for each value
		return 0, t.errorAtPage(at, failure.Page("a dictionary of %d values in %d bytes", p.header.NumValues,
			p.header.Uncompressed))
	}
	return uint64(max(0, decoder.DictionarySize(&p.header, &t.ColumnType))), nil
}

// ownsDictionaryRoom reports whether none of the slice's other tasks names any of t's dictionary room. Then the
// dictionary may be decoded before the other tasks have run.
func ownsDictionaryRoom(t *Task, tasks []program.Task) bool {
	const most = 4096 // with more tasks the search takes longer than reading the page twice
	if len(tasks) > most {
		return false
	}
	mine := t.Asked.Dict
	for i := range tasks {
		other := &tasks[i]
		if other != t.Asked && other.Dict.Off < mine.End() && mine.Off < other.Dict.End() {
			return false
		}
	}
	return true
}

// loadDictionary decodes a dictionary page, which lies whole in the window, into its room. The caller has checked the
// room.
func (r *Reader) loadDictionary(t *Task, at *program.Cursor, p *page) error {
	start := r.ReadClock()
	defer func() { r.DecodeTime += r.RecordRun(program.UnitParquet, start, int(p.header.NumValues)) - start }()
	ok, err := r.unpackPage(t, at, p, t.payloadInWindow(p))
	if err == nil && !ok {
		err = failure.Data("no scratch for the dictionary page")
	}
	if err == nil {
		_, err = decoder.DecodeDictionary(t.DictRoom, &p.header, p.unpacked, &t.ColumnType)
	}
	if err != nil {
		return t.errorAtPage(at, err)
	}
	at.Dict = true
	return nil
}

// openDictionary returns the task's dictionary, or nil if there is none. It opens the dictionary once for each task.
func (r *Reader) openDictionary(t *Task, at *program.Cursor) (*decoder.Dictionary, error) {
	if !at.Dict {
		return nil, nil
	}
	if !r.resident.opened {
		d, err := decoder.OpenDictionary(t.DictRoom, &t.ColumnType)
		if err != nil {
			return nil, t.errorAtPage(at, failure.Slice("the resident dictionary: %w", err))
		}
		r.resident.dictionary, r.resident.opened = d, true
	}
	return &r.resident.dictionary, nil
}

// loadDictionaryAtCursor decodes the dictionary page at the cursor and moves behind it.
func (r *Reader) loadDictionaryAtCursor() error {
	size, err := r.checkDictionaryPage(&r.Cursor, &r.page)
	switch {
	case err != nil:
		return err
	case size > uint64(len(r.DictRoom)):
		r.StopEarly(program.MoreDict, size)
	case r.page.scratchNeeded(&r.ColumnType) > uint64(len(r.Scratch)):
		r.StopEarly(program.MoreScratch, r.page.scratchNeeded(&r.ColumnType))
	case r.payloadInWindow(&r.page) == nil:
		r.StopEarly(program.MoreInput, r.page.size)
	default:
		if err := r.loadDictionary(r.Task, &r.Cursor, &r.page); err != nil {
			return err
		}
		r.StageStart = r.ReadClock()
		r.movePastPage(&r.Cursor, &r.page)
	}
	return nil
}
