package format

import (
	"errors"
	"fmt"
	"io"
)

// PageLocation is one entry of an offset index: where a data page lies and which row it begins with.
type PageLocation struct {
	Offset   int64 // Offset is where the page's header begins in the file.
	Size     int32 // bytes, header included
	FirstRow int64 // in the row group
}

// maxOffsetIndexBytes bounds the bytes of one chunk's offset index.
const maxOffsetIndexBytes = 64 << 20

// ReadOffsetIndex reads the page locations of a chunk, nil if the file has none for it. They are checked: pages lie
// inside the chunk, one after another, and rows go up from 0. The content of the pages may still differ: a reader
// that follows an index compares row counts.
func ReadOffsetIndex(r io.ReaderAt, f *File, rowGroup, leaf int) ([]PageLocation, error) {
	ch, l, err := f.Chunk(rowGroup, leaf)
	if err != nil || ch.OffsetIndexLength == 0 {
		return nil, err
	}
	locations, err := readLocations(r, f, ch, f.RowGroups[rowGroup].Rows)
	if err != nil {
		return nil, fmt.Errorf("row group %d: column %q: offset index: %w", rowGroup, l.Path, err)
	}
	return locations, nil
}

// readLocations reads and checks the offset index of a chunk of a row group with a number of rows.
func readLocations(r io.ReaderAt, f *File, ch *Chunk, rows int64) ([]PageLocation, error) {
	off, n := ch.OffsetIndexOffset, int64(ch.OffsetIndexLength)
	if off < 0 || n < 0 || n > f.Size || off > f.Size-n {
		return nil, corrupt("%d bytes at %d in a file of %d", n, off, f.Size)
	}
	if n > maxOffsetIndexBytes {
		return nil, &SizeError{What: "offset index", Need: n, Have: maxOffsetIndexBytes}
	}
	b := make([]byte, n)
	if err := ReadFull(r, b, off); err != nil {
		return nil, err
	}
	locations, err := parseLocations(b)
	if err != nil {
		return nil, err
	}
	return locations, checkLocations(locations, ch, rows)
}

// parseLocations reads the structure OffsetIndex.
func parseLocations(b []byte) ([]PageLocation, error) {
	c := compactReader{src: b}
	var locations []PageLocation
	var last int32
	found := false
	for t := c.nextField(&last); t != thriftStop; t = c.nextField(&last) {
		if last != 1 {
			c.skipField(t)
			continue
		}
		found = true
		locations = locations[:0]
		for n := c.listField(t, thriftStruct); n > 0 && c.err == nil; n-- {
			locations = append(locations, c.readPageLocation())
		}
	}
	switch {
	case errors.Is(c.err, ErrMoreInput):
		return nil, corrupt("ends inside its locations")
	case c.err != nil:
		return nil, c.err
	case !found:
		return nil, corrupt("has no locations")
	}
	return locations, nil
}

// readPageLocation reads the structure PageLocation.
func (r *compactReader) readPageLocation() PageLocation {
	var p PageLocation
	var last int32
	seen := 0
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		switch last {
		case 1:
			p.Offset = r.int64Field(t)
			seen |= 1
		case 2:
			p.Size = r.int32Field(t)
			seen |= 2
		case 3:
			p.FirstRow = r.int64Field(t)
			seen |= 4
		default:
			r.skipField(t)
		}
	}
	if seen != 7 {
		r.failCorrupt("page location without a required field")
	}
	return p
}

// checkLocations checks that pages lie inside the chunk, one after another, and that their rows ascend from 0.
func checkLocations(locations []PageLocation, ch *Chunk, rows int64) error {
	next, row := ch.Offset, int64(0)
	end := ch.Offset + ch.Compressed
	for i, p := range locations {
		if p.Size < 0 || p.Offset < next || p.Offset > end-int64(p.Size) {
			return corrupt("page %d at %d of %d bytes lies outside its place", i, p.Offset, p.Size)
		}
		if p.FirstRow < row || p.FirstRow > rows || (i == 0 && p.FirstRow != 0) {
			return corrupt("page %d begins at row %d after row %d of %d", i, p.FirstRow, row, rows)
		}
		next, row = p.Offset+int64(p.Size), p.FirstRow
	}
	return nil
}
