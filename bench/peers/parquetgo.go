package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// parquetDecoder reads pages with parquet-go, without its boxed values: levels and typed slices of a page.
type parquetDecoder struct {
	data   *dataset
	groups []parquet.RowGroup
	group  int
	left   int // rows of the group that no block has taken
	rows   int // of the block
	cursor []pageCursor

	ints   []int32
	floats []float32
	ids    []int64
}

// pageCursor is a place in a column chunk.
type pageCursor struct {
	pages parquet.Pages
	page  parquet.Page
	// Of the page:
	def, rep []byte
	level    int // next one
	value    int // next one
	values   int // number of values or levels
	ints     []int32
	floats   []float32
	ids      []int64
	index    []int32 // dictionary indices, nil if the page has none
}

// openParquet reads the footer once and returns the function that opens a decoder for each turn.
func openParquet(d *dataset) (func(context.Context) (decoder, error), error) {
	f, err := parquet.OpenFile(bytes.NewReader(d.Bytes), int64(len(d.Bytes)), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("parquet-go: %w", err)
	}
	return func(context.Context) (decoder, error) {
		return &parquetDecoder{data: d, groups: f.RowGroups(), group: -1}, nil
	}, nil
}

func (p *parquetDecoder) next(context.Context) (int, error) {
	if p.left == 0 {
		if err := p.close(); err != nil {
			return 0, err
		}
		p.group++
		if p.group == len(p.groups) {
			return 0, io.EOF
		}
		g := p.groups[p.group]
		p.left = int(g.NumRows())
		for _, c := range g.ColumnChunks() {
			p.cursor = append(p.cursor, pageCursor{pages: c.Pages()})
		}
	}
	// A block ends with its row group: the peer is spared the joining.
	p.rows = min(p.left, p.data.Batch)
	p.left -= p.rows
	return p.rows, nil
}

func (p *parquetDecoder) close() error {
	var errs []error
	for i := range p.cursor {
		c := &p.cursor[i]
		if c.page != nil {
			parquet.Release(c.page)
		}
		errs = append(errs, c.pages.Close())
	}
	p.cursor = p.cursor[:0]
	return errors.Join(errs...)
}

// more makes sure that the page has a level or value left, and reports whether there is one.
func (c *pageCursor) more() (bool, error) {
	for c.page == nil || c.level == c.values {
		if c.page != nil {
			parquet.Release(c.page)
			c.page = nil
		}
		page, err := c.pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		pages := c.pages
		*c = pageCursor{
			pages: pages, page: page, def: page.DefinitionLevels(), rep: page.RepetitionLevels(),
			values: int(page.NumValues()),
		}
		data, kind := page.Data(), page.Type().Kind()
		if dict := page.Dictionary(); dict != nil {
			c.index = data.Int32()
			data, kind = dict.Page().Data(), dict.Type().Kind()
		}
		switch kind {
		case parquet.Int32:
			c.ints = data.Int32()
		case parquet.Float:
			c.floats = data.Float()
		case parquet.Int64:
			c.ids = data.Int64()
		default:
			return false, fmt.Errorf("pages of %s: the peers do not know this layout", page.Type())
		}
	}
	return true, nil
}

func (p *parquetDecoder) int32s(column int) ([]int32, error) {
	p.ints = grow(p.ints, p.rows)
	return p.ints, scalars(&p.cursor[column], p.ints, func(c *pageCursor) []int32 { return c.ints })
}

func (p *parquetDecoder) float32s(column int) ([]float32, error) {
	p.floats = grow(p.floats, p.rows)
	return p.floats, scalars(&p.cursor[column], p.floats, func(c *pageCursor) []float32 { return c.floats })
}

func (p *parquetDecoder) int64s(column int) ([]int64, error) {
	p.ids = grow(p.ids, p.rows)
	return p.ids, scalars(&p.cursor[column], p.ids, func(c *pageCursor) []int64 { return c.ids })
}

// scalars fills dst with the next values of a flat column, zero for null.
func scalars[T any](c *pageCursor, dst []T, of func(*pageCursor) []T) error {
	for len(dst) > 0 {
		ok, err := c.more()
		if err != nil {
			return err
		}
		if !ok {
			return io.ErrUnexpectedEOF
		}
		n := min(len(dst), c.values-c.level)
		values := of(c)
		present := n
		if len(c.def) > 0 {
			present = 0
			for _, d := range c.def[c.level : c.level+n] {
				present += int(d)
			}
		}
		switch {
		case present == n && c.index == nil:
			copy(dst[:n], values[c.value:])
		case present == n:
			for i, k := range c.index[c.value : c.value+n] {
				dst[i] = values[k]
			}
		default:
			var zero T
			at := c.value
			for i, d := range c.def[c.level : c.level+n] {
				switch {
				case d == 0:
					dst[i] = zero
					continue
				case c.index == nil:
					dst[i] = values[at]
				default:
					dst[i] = values[c.index[at]]
				}
				at++
			}
		}
		c.value += present
		c.level += n
		dst = dst[n:]
	}
	return nil
}

// elementLevel is the definition level of an id in a three-level list; below it lists are null or empty.
const elementLevel = 3

func (p *parquetDecoder) lists(column int, lengths []int32) ([]int64, error) {
	c := &p.cursor[column]
	p.ids = p.ids[:0]
	row := -1
	for {
		ok, err := c.more()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		from, first := c.level, c.value
		for ; c.level < c.values; c.level++ {
			if c.rep[c.level] == 0 {
				if row == len(lengths)-1 {
					break
				}
				row++
				lengths[row] = 0
			}
			if c.def[c.level] == elementLevel {
				lengths[row]++
				c.value++
			}
		}
		if c.index == nil {
			p.ids = append(p.ids, c.ids[first:c.value]...)
		} else {
			for _, k := range c.index[first:c.value] {
				p.ids = append(p.ids, c.ids[k])
			}
		}
		if c.level < c.values || c.level == from {
			break
		}
	}
	if row != len(lengths)-1 {
		return nil,
			fmt.Errorf("column %d ends after %d of %d rows: %w", column, row+1, len(lengths), io.ErrUnexpectedEOF)
	}
	return p.ids, nil
}
