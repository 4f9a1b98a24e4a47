package engine

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// walk is a task on its way through check and execution.
type walk struct {
	task    *program.Task
	col     *column // nil for text
	ct      format.ColumnType
	window  []byte // chunk bytes from task.WindowAt on
	dict    []byte
	scratch []byte
	cur     program.Cursor // how far the task came
	lack    program.State  // Done, or what lacks
	need    uint64
	ready   uint32 // rows that the window holds, when it lacks more
	inside  uint64 // bytes of the page that the cursor is inside of
	late    bool   // checksums of pages that are not packed are verified while they are read
}

func clearWalks(walks []walk) []walk {
	clear(walks[:cap(walks)])
	return walks[:0]
}

// want notes that something lacks.
func (k *walk) want(state program.State, need uint64) { k.lack, k.need = state, need }

// page is a page whose header lies in the window.
type page struct {
	header format.PageHeader
	off    uint64 // chunk offset of the header
	size   uint64 // header and payload
	head   int    // bytes of the header
	bytes  []byte // the page itself, unpacked; nil until it is opened or found in scratch
}

func (p *page) end() uint64 { return p.off + p.size }

// rows is how many rows begin in the page, if the header alone tells.
func (p *page) rows(ct *format.ColumnType) (n uint64, ok bool) {
	switch {
	case p.header.MayContinue(ct):
		return 0, false
	case p.header.Type == format.DataPageV2:
		return uint64(p.header.NumRows), true
	}
	return uint64(p.header.NumValues), true
}

// packed tells whether the page must be unpacked into scratch.
func (p *page) packed(ct *format.ColumnType) bool {
	return p.header.Packed(ct)
}

// room is how much scratch the page takes.
func (p *page) room(ct *format.ColumnType) uint64 {
	if !p.packed(ct) {
		return 0
	}
	return TagBytes + uint64(p.header.Uncompressed) + uint64(p.head)
}

// data tells whether the page holds values.
func (p *page) data() bool {
	return (p.header.Type == format.DataPage || p.header.Type == format.DataPageV2) && p.header.NumValues > 0
}

// headerGuess is how many bytes are asked for a page header that is not there: a header takes some tens of bytes, more
// with long statistics.
const headerGuess = 1 << 10

// have is the number of window bytes from chunk offset off on.
func (k *walk) have(off uint64) uint64 {
	end := k.task.WindowAt + uint64(len(k.window))
	if off >= end || off < k.task.WindowAt {
		return 0
	}
	return end - off
}

// last tells whether the window reaches the chunk's end.
func (k *walk) last() bool { return k.task.WindowAt+uint64(len(k.window)) == k.task.ChunkLen }

// header reads the header of the page at the cursor, of one that lies unpacked in scratch there. It is not ok when the window
// ends inside the header.
func (k *walk) header(c *program.Cursor, p *page) (ok bool, err error) {
	if c.Unpacked = c.Unpacked && k.claim(c, p); !c.Unpacked {
		*p = page{off: c.Page}
		if have := k.have(c.Page); have > 0 {
			b := k.window[uint64(len(k.window))-have:]
			p.header, p.head, err = format.ParsePageHeader(b)
		} else {
			err = format.ErrMoreInput
		}
		if errors.Is(err, format.ErrMoreInput) && !(k.last() && c.Page >= k.task.WindowAt) {
			return false, nil
		}
		if errors.Is(err, format.ErrMoreInput) {
			err = badPage("the page's header ends behind its chunk")
		}
		if err != nil {
			return false, k.at(c, err)
		}
		p.size = uint64(p.head) + uint64(p.header.Compressed)
	}
	if p.size > k.task.ChunkLen-c.Page {
		return false, k.at(c, badPage("page of %d bytes, the chunk has %d left", p.size, k.task.ChunkLen-c.Page))
	}
	if p.data() && uint64(p.header.NumValues) > k.task.Chunk.Values-c.Seen {
		return false, k.at(c, badPage("page of %d values, the chunk has %d left", p.header.NumValues, k.task.Chunk.Values-c.Seen))
	}
	return true, nil
}

// payload is the page's bytes as they lie in the window; nil if not all of them do.
func (k *walk) payload(p *page) []byte {
	have := k.have(p.off)
	if have < p.size {
		return nil
	}
	b := k.window[uint64(len(k.window))-have:]
	return b[p.head:p.size:p.size]
}

// ended tells whether no value is left behind the cursor.
func (k *walk) ended(c *program.Cursor) bool {
	return c.Page >= k.task.ChunkLen || c.Seen >= k.task.Chunk.Values
}

// short is the error of a chunk that ends before the task's rows do.
func (k *walk) short(c *program.Cursor, rows uint64) error {
	if c.Seen < k.task.Chunk.Values {
		return k.at(c, badPage("the chunk ends after %d of %d values", c.Seen, k.task.Chunk.Values))
	}
	return k.at(c, badPage("the chunk ends, %d rows are wanted still", rows))
}

// at names column and page.
func (k *walk) at(c *program.Cursor, err error) error {
	return fmt.Errorf("%v: %w", program.Place{Column: k.col.name, Page: c.Ordinal, Offset: c.Page}, err)
}

// pass moves the cursor behind a page. Skip is the caller's.
func pass(c *program.Cursor, p *page) {
	if p.data() {
		c.Seen += uint64(p.header.NumValues)
	}
	c.Page = p.end()
	c.Ordinal++
	c.Unpacked, c.Checked = false, false
}

// checkPages walks the page headers from the cursor on and finds whether window, scratch and dictionary room hold what
// the task's rows touch. Pages that the cursor skips whole are passed for good.
func (w *worker) checkPages(k *walk) error {
	if k.lack != program.Done {
		return nil
	}
	var (
		c       = k.cur
		rows    = uint64(k.task.Count) // still to be found
		touched bool                   // c has gone on from k.cur, over pages that must be in the window
		room    uint64                 // scratch wanted
		span    pageSpan               // of the pages touched
		alone   bool                   // the first page touched is in scratch and not in the window
		p       page
	)
	for rows > 0 {
		if k.ended(&c) {
			return k.short(&c, rows)
		}
		ok, err := k.header(&c, &p)
		if err != nil {
			return err
		}
		if !touched {
			k.cur.Unpacked = c.Unpacked
		}
		if !ok {
			guess := max(headerGuess, 2*k.have(c.Page))
			k.needInput(c.Page+max(guess, span.guess(rows)), room)
			return nil
		}
		if p.header.Type == format.DictionaryPage {
			size, err := k.dictionary(&c, &p)
			if err != nil {
				return err
			}
			if size > uint64(len(k.dict)) {
				k.want(program.MoreDict, size)
				return nil
			}
			room = max(room, p.room(&k.ct))
			if !touched && k.payload(&p) != nil && room <= uint64(len(k.scratch)) && w.alone(k) {
				if err := w.loadDictionary(k, &c, &p); err != nil {
					return err
				}
				pass(&c, &p)
				k.cur, room = c, 0
				continue
			}
			touched = true
		}
		if !p.data() {
			pass(&c, &p)
			if !touched {
				k.cur = c
			}
			if touched && k.have(p.off) < p.size {
				k.needInput(c.Page+headerGuess, room)
				return nil
			}
			continue
		}
		n, known := p.rows(&k.ct)
		if known && c.Skip >= n {
			c.Skip -= n
			pass(&c, &p)
			if !touched {
				k.cur = c
			}
			continue
		}
		if alone && len(k.col.passes) > 1 {
			// The next pass begins at the first page again, which this page will have taken the scratch of.
			k.cur.Unpacked, k.ready = false, 0
			k.needInput(p.end()+span.guess(rows), room)
			return nil
		}
		touched, alone = true, p.bytes != nil && k.payload(&p) == nil
		room = max(room, p.room(&k.ct))
		if known {
			n = min(n-c.Skip, rows)
			rows -= n
			span.add(n, p.size)
		}
		if p.bytes == nil && k.payload(&p) == nil {
			k.needInput(p.end()+span.guess(rows), room)
			return nil
		}
		if !known {
			break // how many rows the page has, only its levels tell
		}
		k.ready += uint32(n)
		c.Skip = 0
		pass(&c, &p)
	}
	if room > uint64(len(k.scratch)) {
		k.want(program.MoreRoom, room)
	}
	return nil
}

// needInput notes that the window should reach chunk offset to, unless scratch lacks, which comes first.
func (k *walk) needInput(to, room uint64) {
	if room > uint64(len(k.scratch)) {
		k.want(program.MoreRoom, room)
		return
	}
	k.want(program.MoreInput, min(to, k.task.ChunkLen)-k.cur.Page)
}

// pageSpan estimates what rows further on will take, from the pages seen.
type pageSpan struct{ rows, bytes uint64 }

func (s *pageSpan) add(rows, bytes uint64) {
	s.rows += rows
	s.bytes += bytes
}

// guess is how many bytes so many more rows may take. Pages are alike, so it is whole pages.
func (s *pageSpan) guess(rows uint64) uint64 {
	if s.rows == 0 || rows == 0 {
		return 0
	}
	pages := (rows + s.rows - 1) / s.rows
	if most := uint64(1) << 62; pages > most/max(1, s.bytes) {
		return most
	}
	return pages * s.bytes
}
