package decoder

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// chunkReader walks the pages of a whole column chunk in memory and hands out its rows. It does for hosts the work of
// the engine over windows, and makes the check that no single page allows: that the pages' values and rows add up to
// the footer's. It keeps its memory between chunks. One goroutine at a time may use it.
type chunkReader struct {
	// RowGroup, Column and Base (the chunk's place in its file) go into errors; OpenChunk sets them.
	RowGroup int
	Column   string
	Base     int64
	// MaxPage bounds the bytes that an unpacked page or a dictionary may take; 0 means defaultMaxPage.
	MaxPage int64

	ct      format.ColumnType
	chunk   []byte
	pos     int   // of the next page's header
	page    int   // number of the page that is decoded, from 0
	at      int   // where its header lies
	values  int64 // that data pages must still bring
	rows    int64 // that are still to be handed out
	open    bool  // the data page before, if there was one, may end inside a row
	dec     Decoder
	dict    Dictionary
	hasDict bool
	pageBuf []byte
	dictBuf []byte
	err     error
}

// defaultMaxPage is the MaxPage of a chunkReader that sets none.
const defaultMaxPage = 256 << 20

// OpenChunk reads one column chunk of a file and begins it.
func (c *chunkReader) OpenChunk(r io.ReaderAt, f *format.File, rowGroup, leaf int) error {
	c.RowGroup, c.Column, c.Base, c.err = rowGroup, "", 0, errNoPage
	ch, l, err := f.Chunk(rowGroup, leaf)
	if err != nil {
		return err
	}
	c.Column, c.Base = l.Path, ch.Offset
	// The footer's check put the chunk inside the file, so this is bounded by what is there.
	if int64(cap(c.chunk)) < ch.Compressed {
		c.chunk = make([]byte, ch.Compressed)
	}
	c.chunk = c.chunk[:ch.Compressed]
	if err := format.ReadFull(r, c.chunk, ch.Offset); err != nil {
		return fmt.Errorf("row group %d: column %q: %w", rowGroup, l.Path, err)
	}
	return c.Reset(l.ColumnType(ch.Codec), c.chunk, ch.NumValues, f.RowGroups[rowGroup].Rows)
}

// Reset begins a chunk: its bytes (from Chunk.Offset, Chunk.Compressed long), which must stay as they are while it is
// read, and the counts of its footer.
func (c *chunkReader) Reset(ct format.ColumnType, chunk []byte, values, rows int64) error {
	c.ct, c.chunk, c.pos, c.page, c.at = ct, chunk, 0, -1, 0
	c.values, c.rows, c.open, c.hasDict = values, rows, false, false
	last, window := c.dec.values.arrays.previous, c.dec.repetitionWindow.words
	c.dec = Decoder{}
	c.dec.values.arrays.previous, c.dec.repetitionWindow.words = last, window
	c.err = ct.Validate()
	return c.err
}

// Next appends up to n whole rows to b and returns how many; io.EOF when there are none left. After another error the
// chunk cannot be read on, and the rows that the call appended to b are not complete.
func (c *chunkReader) Next(b *Block, n int) (int, error) {
	got := 0
	err := c.walk(func() error {
		if c.dec.Continues() {
			return c.dec.Continue(b)
		}
		k, err := c.dec.Next(b, n-got)
		got += k
		return err
	}, func() bool { return got == n })
	return got, c.finish(int64(got), int64(n), err)
}

// Skip drops up to n rows and returns how many; io.EOF when there are none left.
func (c *chunkReader) Skip(n int64) (int64, error) {
	var got int64
	err := c.walk(func() error {
		k := min(n-got, int64(c.dec.Rows()))
		got += k
		return c.dec.Skip(int(k))
	}, func() bool { return got == n })
	return got, c.finish(got, n, err)
}

// walk calls step for page after page until done, and then for every page that continues the last row.
func (c *chunkReader) walk(step func() error, done func() bool) error {
	for c.err == nil {
		if !c.dec.Continues() && (done() || c.dec.Rows() == 0) {
			if c.dec.Rows() > 0 || (done() && !c.ct.List) {
				return nil
			}
			more, err := c.nextPage()
			if !more || err != nil {
				return err
			}
			continue
		}
		if err := step(); err != nil {
			return c.fail(err)
		}
	}
	return c.err
}

func (c *chunkReader) finish(got, n int64, err error) error {
	c.rows -= got
	switch {
	case err != nil:
		c.err = err
	case c.rows < 0:
		c.err = c.fail(format.Corrupt("pages have more rows than the row group"))
	case got < n && c.rows > 0:
		c.err = c.fail(format.Corrupt("pages end %d rows before the row group does", c.rows))
	case got < n && got == 0:
		return io.EOF
	}
	return c.err
}

func (c *chunkReader) fail(err error) error {
	return &format.PageError{RowGroup: c.RowGroup, Column: c.Column, Page: max(0, c.page), Offset: c.Base + int64(c.at),
		Err: err}
}

// nextPage opens the next data page; false when the chunk's values have all been seen.
func (c *chunkReader) nextPage() (bool, error) {
	for c.values > 0 && c.pos < len(c.chunk) {
		c.at = c.pos
		c.page++
		h, n, err := format.ParsePageHeader(c.chunk[c.pos:])
		if err != nil {
			return false, c.fail(ended(err))
		}
		payload := c.chunk[c.pos+n:]
		if int64(h.Compressed) > int64(len(payload)) {
			return false, c.fail(format.Corrupt("page of %d bytes, the chunk has %d left", h.Compressed, len(payload)))
		}
		c.pos += n + int(h.Compressed)
		if h.Type != format.DictionaryPage && (!h.HoldsRows() || h.NumValues == 0) {
			continue // The page holds no values.
		}
		if h.HoldsRows() {
			if int64(h.NumValues) > c.values {
				return false, c.fail(format.Corrupt("page of %d values, the chunk has %d left", h.NumValues, c.values))
			}
			c.values -= int64(h.NumValues)
		}
		page, err := c.unpack(&h, payload)
		if err != nil {
			return false, c.fail(err)
		}
		if h.Type == format.DictionaryPage {
			if err := c.openDictionary(&h, page); err != nil {
				return false, c.fail(err)
			}
			continue
		}
		var dict *Dictionary
		if c.hasDict {
			dict = &c.dict
		}
		if err := c.dec.Reset(&c.ct, &h, page, dict); err != nil {
			return false, c.fail(err)
		}
		if c.dec.Continues() && !c.open {
			return false, c.fail(format.Corrupt("page begins inside a row that no page before left open"))
		}
		c.open = h.MayContinue(&c.ct)
		if c.dec.Rows() > 0 || c.dec.Continues() {
			return true, nil
		}
	}
	if c.values > 0 {
		return false, c.fail(format.Corrupt("pages end %d values before the chunk does", c.values))
	}
	return false, nil
}

// ended turns the lack of bytes into a fault: a whole chunk has no more of them.
func ended(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, format.ErrMoreInput) {
		return format.Corrupt("the page's header ends behind its chunk")
	}
	return err
}

func (c *chunkReader) maxPage() int64 {
	if c.MaxPage > 0 {
		return c.MaxPage
	}
	return defaultMaxPage
}

func (c *chunkReader) unpack(h *format.PageHeader, payload []byte) ([]byte, error) {
	if h.Packed(&c.ct) {
		need := int64(h.Uncompressed)
		if need > unpackedAtMost(c.ct.Codec, int64(h.Compressed)) {
			return nil, format.Corrupt("page of %d bytes cannot become %d in %v", h.Compressed, need, c.ct.Codec)
		}
		if need > c.maxPage() {
			return nil, &format.SizeError{What: "unpacked page", Need: need, Have: c.maxPage()}
		}
		if int64(len(c.pageBuf)) < need {
			c.pageBuf = make([]byte, need)
		}
	}
	return Unpack(c.pageBuf, h, payload, &c.ct)
}

func (c *chunkReader) openDictionary(h *format.PageHeader, page []byte) error {
	if c.hasDict {
		return format.Corrupt("a second dictionary page")
	}
	if err := checkDictionarySize(int(h.NumValues), len(page), &c.ct); err != nil {
		return err
	}
	need := DictionarySize(h, &c.ct)
	if need > c.maxPage() {
		return &format.SizeError{What: "dictionary", Need: need, Have: c.maxPage()}
	}
	if int64(len(c.dictBuf)) < need {
		words := make([]uint64, (need+7)/8) // for the alignment
		c.dictBuf = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
	}
	n, err := DecodeDictionary(c.dictBuf, h, page, &c.ct)
	if err != nil {
		return err
	}
	c.dict, err = OpenDictionary(c.dictBuf[:n], &c.ct)
	c.hasDict = err == nil
	return err
}

// unpackedAtMost is the most bytes that a page of n packed bytes can become in codec c: what its densest code allows.
// It keeps a header from promising memory that its page cannot fill.
func unpackedAtMost(c format.Codec, n int64) int64 {
	switch c {
	case format.Snappy:
		return 32*n + 64 // a copy of 64 bytes takes two or three
	case format.LZ4Raw, format.LZ4:
		return 255*n + 64 // a length byte adds 255
	case format.Brotli:
		return (16<<20)*(n/4+1) + 64 // a meta-block of 16 MiB from a few bytes
	case format.Gzip:
		return 1032*n + 64 // 258 bytes from two bits
	case format.Zstd:
		return (128<<10)*(n/4+1) + 64 // a block of 128 KiB from four bytes
	}
	return n
}
