package text

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
)

// Cell is one decoded cell.
type Cell struct {
	Value int64
	Valid bool
}

// Row is the 40 cells of a row: label, dense, sparse.
type Row [1 + Dense + Sparse]Cell

var (
	decimalGrammar = regexp.MustCompile(`\A-?[0-9]{1,10}\z`)
	hexGrammar     = regexp.MustCompile(`\A[0-9a-fA-F]{1,8}\z`)
)

// Reference decodes a whole partition of text by the definition. dropped has for each row how many malformed lines were
// left out before it, since the begin of the partition.
func Reference(data []byte, o Options) (rows []Row, dropped []int64, counts Counts, err error) {
	add := func(row Row) { rows, dropped = append(rows, row), append(dropped, counts.Dropped) }
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	for number := 1; len(data) > 0; number++ {
		line, rest, terminated := bytes.Cut(data, []byte("\n"))
		data = rest
		if len(line) > MaxLine {
			return rows, dropped, counts, fmt.Errorf("line %d: %w", number, ErrLineTooLong)
		}
		if terminated {
			line = bytes.TrimSuffix(line, []byte("\r"))
		}
		if len(line) == 0 {
			counts.Blank++
			continue
		}
		row, bad := referenceRow(line, o.LabelAbsent)
		switch {
		case bad == nil:
			add(row)
		case o.Policy == Drop:
			counts.Dropped++
		case o.Policy == Null:
			counts.Nulled++
			add(row)
		default:
			return rows, dropped, counts, fmt.Errorf("line %d: %w", number, bad)
		}
	}
	return rows, dropped, counts, nil
}

func referenceRow(line []byte, labelAbsent bool) (row Row, bad error) {
	cells := bytes.Split(line, []byte("\t"))
	if labelAbsent {
		cells = append([][]byte{nil}, cells...)
	}
	if len(cells) != len(row) {
		return row, ErrFieldCount
	}
	for i, cell := range cells {
		var err error
		switch {
		case i == 0 && labelAbsent:
		case len(cell) == 0 && i > 0:
		case i <= Dense:
			row[i], err = referenceDecimal(cell)
			if err != nil && i == 0 {
				err = ErrLabel
			}
		default:
			row[i], err = referenceHex(cell)
		}
		if bad == nil {
			bad = err
		}
	}
	return row, bad
}

func referenceDecimal(cell []byte) (Cell, error) {
	if !decimalGrammar.Match(cell) {
		return Cell{}, ErrDecimal
	}
	v, err := strconv.ParseInt(string(cell), 10, 32)
	if err != nil {
		return Cell{}, ErrDecimal
	}
	return Cell{v, true}, nil
}

func referenceHex(cell []byte) (Cell, error) {
	if !hexGrammar.Match(cell) {
		return Cell{}, ErrHex
	}
	v, err := strconv.ParseUint(string(cell), 16, 32)
	if err != nil {
		return Cell{}, ErrHex
	}
	return Cell{int64(v), true}, nil
}

// ReferenceBinary decodes whole binary rows by the definition, or returns ErrPartialRow with those before it.
func ReferenceBinary(data []byte) (rows []Row, err error) {
	r := bytes.NewReader(data)
	for r.Len() > 0 {
		var packed struct {
			Label  int32
			Dense  [Dense]int32
			Sparse [Sparse]uint32
		}
		if binary.Read(r, binary.LittleEndian, &packed) != nil {
			return rows, ErrPartialRow
		}
		var row Row
		row[0] = Cell{int64(packed.Label), true}
		for i, v := range packed.Dense {
			row[1+i] = Cell{int64(v), true}
		}
		for i, v := range packed.Sparse {
			row[1+Dense+i] = Cell{int64(v), true}
		}
		rows = append(rows, row)
	}
	return rows, nil
}
