package lane

import (
	"encoding/binary"
	"sync"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/text"
)

// criteoReader has Criteo's rows decoded a row group at a time, all fields at once, and keeps those of a mini-batch,
// whose columns are made one after the other.
type criteoReader struct {
	every  int64 // rows of a row group; the last may have fewer
	decode func(group int) ([]text.Row, error)

	mu   sync.Mutex         // held while rows are decoded; guards what follows
	kept map[int][]text.Row // by row group
}

// newCriteoReader returns a reader of a partition of rows rows.
func (s *Simulation) newCriteoReader(p *plan, rows, every int64, decode func(group int) ([]text.Row, error)) *Reader {
	d := s.newReader(p)
	d.criteo = &criteoReader{every: every, decode: decode, kept: make(map[int][]text.Row)}
	for left := rows; left > 0; left -= every {
		d.groups = append(d.groups, min(left, every))
	}
	return d
}

// keep forgets the row groups that rows of a mini-batch do not lie in.
func (r *criteoReader) keep(first int64, rows int) {
	for group := range r.kept {
		begin := int64(group) * r.every
		if begin >= first+int64(rows) || begin+r.every <= first {
			delete(r.kept, group)
		}
	}
}

// rows returns the rows of a group.
func (r *criteoReader) rows(group int) ([]text.Row, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows, ok := r.kept[group]
	if ok {
		return rows, nil
	}
	rows, err := r.decode(group)
	if err != nil {
		return nil, err
	}
	r.kept[group] = rows
	return rows, nil
}

// chunk returns a field of the rows of a group. Its values are a section of numbers of 32 bits, as the units that read
// rows make them, which the units that follow take as they take a page.
func (r *criteoReader) chunk(field, group int) (*chunk, error) {
	rows, err := r.rows(group)
	if err != nil {
		return nil, err
	}
	c := &chunk{path: text.FieldName(field), rowGroup: group,
		columnType: format.ColumnType{Physical: format.Int32, Unsigned: field > text.Dense}}
	one := section{elements: len(rows)}
	for i := range rows {
		cell := rows[i][field]
		c.lengths, c.rowPresent = append(c.lengths, 1), append(c.rowPresent, true)
		c.present = append(c.present, cell.Valid)
		if cell.Valid {
			one.bytes = binary.LittleEndian.AppendUint32(one.bytes, uint32(cell.Value))
			one.count++
		}
	}
	if one.setup, err = rtl.PlainDecoder(c.columnType, uint32(one.count)); err != nil {
		return nil, err
	}
	c.sections = []section{one}
	return c, nil
}
