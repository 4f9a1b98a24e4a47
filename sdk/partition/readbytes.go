package partition

import "github.com/millrace/millrace/fpga/unit/parquet/format"

// SmallChunk is the size, in bytes, up to which a column chunk, or the rest of one, is moved whole where memory allows.
// A chunk that is no larger needs no page index.
const SmallChunk = 64 << 10

// ReadBytes returns how many bytes a drive reads for consecutive rows of a row group, from row first of it on, when it
// makes them from all columns that a pipeline can read: of each column chunk the dictionary and the pages in which
// these rows are, and the whole chunk, or the rest of one, if it is small or the rows are all. Pages of a chunk without
// a page index are taken to have as many rows as its first page. It leaves out the ends of blocks, headers on the way
// to a page, and the page behind a list. Rows of a text need their share of its bytes, since a text has no pages.
func (p *Partition) ReadBytes(group int, first, rows int64) (n int64) {
	all := p.groups[group].Rows
	if p.File == nil {
		return int64(float64(p.Size) * float64(rows) / float64(max(all, 1)))
	}
	for i := range p.File.Leaves {
		leaf, c := &p.File.Leaves[i], &p.File.RowGroups[group].Columns[i]
		switch {
		case rows == 0 || leaf.Unsupported != nil || c.Unsupported != nil:
		case rows == all || c.Compressed <= SmallChunk:
			n += c.Compressed
		default:
			n += c.DataOffset - c.Offset + p.pagesBytes(group, leaf, c, first, first+rows)
		}
	}
	return n
}

// pagesBytes returns the bytes of the data pages of a chunk in which rows [first, end) of its row group are.
func (p *Partition) pagesBytes(group int, leaf *format.Leaf, c *format.Chunk, first, end int64) int64 {
	if x := p.ReadPageIndex(group, leaf, 0); len(x) > 0 {
		last, chunkEnd := x[x.PageOf(end-1)], c.Offset+c.Compressed
		readEnd := last.Offset + int64(last.Size)
		if chunkEnd-last.Offset <= SmallChunk {
			readEnd = chunkEnd
		}
		return readEnd - x[x.PageOf(first)].Offset
	}
	data, all := c.Compressed-(c.DataOffset-c.Offset), p.groups[group].Rows
	values, ok := p.valuesOfPage(c.DataOffset, data)
	pageRows := int64(float64(values)/float64(max(c.NumValues, 1))*float64(all) + 0.5)
	if !ok || pageRows < 1 || pageRows > all {
		return data // as if the chunk were one page
	}
	bytesOf := func(rows int64) int64 { return int64(float64(data) * float64(rows) / float64(all)) }
	lastPage := (end - 1) / pageRows * pageRows
	if end = min(lastPage+pageRows, all); bytesOf(all-lastPage) <= SmallChunk {
		end = all
	}
	return bytesOf(end - first/pageRows*pageRows)
}
