package lane

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/text"
)

// TextPartition is a partition of Criteo's text, and where its rows lie.
type TextPartition struct {
	Data    io.ReaderAt
	Index   *text.Index
	Options text.Options // The index was made with these Options.
}

// NewTextReader returns a reader of a partition of text, of which the rows between two entries of the index are a row
// group. The error wraps rtl.ErrNotInRTL if the program has a step that no unit computes.
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
	return s.newCriteoReader(planned, part.Index.Rows, part.Index.Every, func(group int) ([]text.Row, error) {
		return s.sets[0].decodeText(part, group)
	}), nil
}

// decodeText decodes the rows of a row group of text.
func (s *unitSet) decodeText(part TextPartition, group int) ([]text.Row, error) {
	index := part.Index
	at, end := index.At[group], index.Bytes
	if group+1 < len(index.At) {
		end = index.At[group+1].Offset
	}
	if end-at.Offset > maxChunkBytes {
		return nil, lacks("%d rows of text have %d bytes, and simulated ones at most %d", index.Every, end-at.Offset,
			maxChunkBytes)
	}
	section := make([]byte, end-at.Offset)
	if err := format.ReadFull(part.Data, section, at.Offset); err != nil {
		return nil, err
	}
	s.note(firmwareText)
	o := part.Options
	results, err := s.run(rtl.TextDecoder(o.LabelAbsent, at.Offset == 0), rtl.TextTransfers(section))
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
	return rows, nil
}
