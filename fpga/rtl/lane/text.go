package lane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/text"
)

// TextPartition is a partition of Criteo's text, and where its rows lie.
type TextPartition struct {
	Data    io.ReaderAt
	Index   *text.Index
	Options text.Options // that the index was made with
}

// textReader decodes the rows of text between two entries of an index, all fields at once, and keeps those of a
// mini-batch, whose columns are made one after the other.
type textReader struct {
	s    *Simulation
	part TextPartition

	mu   sync.Mutex         // held while rows are decoded; guards what follows
	kept map[int][]text.Row // by row group
}

// NewTextReader returns a reader of a partition of text. The error wraps rtl.ErrNotInRTL if the program has a step that
// no unit computes.
func (s *Simulation) NewTextReader(p *program.Program, part TextPartition) (*Reader, error) {
	planned, err := planOf(p)
	if err != nil {
		return nil, err
	}
	switch {
	case p.Source != program.CriteoTSV:
		return nil, fmt.Errorf("a program over %v was given a partition of text", p.Source)
	case part.Options.LabelAbsent == p.Label || int(part.Options.Policy) != int(p.Malformed):
		return nil, errors.New("the text was indexed with other options than the program has")
	case part.Index.Every < 1 && part.Index.Rows > 0:
		return nil, errors.New("the index of the text says of no row where it begins")
	}
	d := s.newReader(planned)
	d.text = &textReader{s: s, part: part, kept: make(map[int][]text.Row)}
	for left := part.Index.Rows; left > 0; left -= part.Index.Every {
		d.groups = append(d.groups, min(left, part.Index.Every))
	}
	return d, nil
}

// keep forgets the row groups that rows of a mini-batch do not lie in.
func (r *textReader) keep(first int64, rows int) {
	for group := range r.kept {
		begin := int64(group) * r.part.Index.Every
		if begin >= first+int64(rows) || begin+r.part.Index.Every <= first {
			delete(r.kept, group)
		}
	}
}

// decode returns the rows of a group.
func (r *textReader) decode(group int) ([]text.Row, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rows, ok := r.kept[group]; ok {
		return rows, nil
	}
	index := r.part.Index
	at, end := index.At[group], index.Bytes
	if group+1 < len(index.At) {
		end = index.At[group+1].Offset
	}
	if end-at.Offset > maxChunkBytes {
		return nil, lacks("%d rows of text have %d bytes, and simulated ones at most %d", index.Every, end-at.Offset,
			maxChunkBytes)
	}
	section := make([]byte, end-at.Offset)
	if err := format.ReadFull(r.part.Data, section, at.Offset); err != nil {
		return nil, err
	}
	set := r.s.sets[0]
	set.note(firmwareText)
	o := r.part.Options
	results, err := set.run(rtl.TextDecoder(o.LabelAbsent, at.Offset == 0), rtl.TextTransfers(section))
	if err != nil {
		return nil, err
	}
	rows, _, err := rtl.TextRows(results, o, at)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	if want := min(index.Every, index.Rows-int64(group)*index.Every); int64(len(rows)) != want {
		return nil, fmt.Errorf("%w: %d rows of text from byte %d on, and %d in the index", ErrData, len(rows), at.Offset,
			want)
	}
	r.kept[group] = rows
	return rows, nil
}

// chunk returns a field of the rows of a group. Its values are a section of numbers of 32 bits, as the unit makes them,
// which the units that follow take as they take a page.
func (r *textReader) chunk(field, group int) (*chunk, error) {
	rows, err := r.decode(group)
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
