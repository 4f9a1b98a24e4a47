package lane

import (
	"fmt"
	"io"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/text"
)

// binaryRows are the rows of a row group of a binary partition, which has none of its own.
const binaryRows = 1024

// NewBinaryReader returns a reader of a partition of rows of Criteo's binary form, text.BinaryRow bytes each. The error
// wraps rtl.ErrNotInRTL if the program has a step that no unit computes.
func (s *Simulation) NewBinaryReader(p *program.Program, data io.ReaderAt, rows int64) (*Reader, error) {
	planned, err := planOf(p)
	if err != nil {
		return nil, err
	}
	if p.Source != program.CriteoBinary {
		return nil, fmt.Errorf("a program over %v was given a partition of binary rows", p.Source)
	}
	return s.newCriteoReader(planned, rows, binaryRows, func(group int) ([]text.Row, error) {
		first := int64(group) * binaryRows
		return s.sets[0].decodeBinary(data, first, int(min(binaryRows, rows-first)))
	}), nil
}

// decodeBinary decodes binary rows. To unit plain_decoder they are one section of INT32, 4 a cycle, so that a row takes
// 10 cycles.
func (s *unitSet) decodeBinary(data io.ReaderAt, first int64, n int) ([]text.Row, error) {
	section := make([]byte, n*text.BinaryRow)
	if err := format.ReadFull(data, section, first*text.BinaryRow); err != nil {
		return nil, err
	}
	s.note(firmwareBinary)
	rows := make([]text.Row, n)
	fields := len(rows[0])
	values, err := s.decodePlain(section, format.ColumnType{Physical: format.Int32}, uint32(n*fields))
	if err != nil {
		return nil, err
	}
	for i, value := range values {
		field := i % fields
		cell := text.Cell{Value: int64(value), Valid: true}
		if field > text.Dense {
			cell.Value = int64(uint32(value))
		}
		rows[i/fields][field] = cell
	}
	return rows, nil
}
