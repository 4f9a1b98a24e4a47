package decoder

import (
	"errors"
	"fmt"
	"io"

	arrowpq "github.com/apache/arrow-go/v18/parquet"
	arrowfile "github.com/apache/arrow-go/v18/parquet/file"
	pq "github.com/parquet-go/parquet-go"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// Two other libraries read the same bytes. They panic on some, so every call is wrapped.

func recoverTo(err *error, who string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: %v", who, p)
	}
}

// parquetGoRows reads a column with parquet-go.
func parquetGoRows(r io.ReaderAt, size int64, leaf *format.Leaf) (rows []any, err error) {
	defer recoverTo(&err, "parquet-go")
	f, err := pq.OpenFile(r, size)
	if err != nil {
		return nil, err
	}
	for _, g := range f.RowGroups() {
		if rows, err = parquetGoChunk(rows, g.ColumnChunks()[leaf.Index], leaf); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func parquetGoChunk(rows []any, chunk pq.ColumnChunk, leaf *format.Leaf) ([]any, error) {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		values := make([]pq.Value, p.NumValues())
		n, err := p.Values().ReadValues(values)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for _, v := range values[:n] {
			rows = addLevels(rows, leaf, v.RepetitionLevel(), v.DefinitionLevel(), parquetGoValue(leaf, v))
		}
	}
}

func parquetGoValue(leaf *format.Leaf, v pq.Value) any {
	if v.IsNull() {
		return nil
	}
	switch leaf.Physical {
	case format.Boolean:
		if v.Boolean() {
			return int64(1)
		}
		return int64(0)
	case format.Int32:
		if leaf.Unsigned {
			return int64(v.Uint32())
		}
		return int64(v.Int32())
	case format.Int64:
		return v.Int64()
	case format.Float:
		return v.Float()
	case format.Double:
		return v.Double()
	}
	return append([]byte{}, v.ByteArray()...)
}

// addLevels adds a value with its levels to rows, as the Dremel paper says.
func addLevels(rows []any, leaf *format.Leaf, rep, def int, v any) []any {
	if def < int(leaf.MaxDef) {
		v = nil
	}
	switch {
	case !leaf.List:
		return append(rows, v)
	case leaf.Flattened():
		return addFlattenedLevels(rows, leaf, rep, def, v)
	case leaf.MaxRep == 2:
		return addNestedLevels(rows, leaf, rep, def, v)
	case rep > 0:
		list := rows[len(rows)-1].([]any)
		rows[len(rows)-1] = append(list, v)
		return rows
	case def >= int(leaf.RepDef):
		return append(rows, []any{v})
	case def == int(leaf.RepDef)-1:
		return append(rows, []any{})
	}
	return append(rows, nil)
}

// addFlattenedLevels is addLevels for lists in lists.
func addFlattenedLevels(rows []any, leaf *format.Leaf, rep, def int, v any) []any {
	if rep == 0 && def+1 < int(leaf.EntryDef) {
		return append(rows, nil)
	}
	if rep == 0 {
		rows = append(rows, []any{})
	}
	if def >= int(leaf.RepDef) {
		rows[len(rows)-1] = append(rows[len(rows)-1].([]any), v)
	}
	return rows
}

// addNestedLevels is addLevels for lists in a map.
func addNestedLevels(rows []any, leaf *format.Leaf, rep, def int, v any) []any {
	list := addLevels(nil, &format.Leaf{List: true, MaxDef: leaf.MaxDef, RepDef: leaf.RepDef}, 0, def, v)[0]
	if rep == 0 {
		switch {
		case def >= int(leaf.EntryDef):
			return append(rows, []any{list})
		case def == int(leaf.EntryDef)-1:
			return append(rows, []any{})
		}
		return append(rows, nil)
	}
	entries := rows[len(rows)-1].([]any)
	if rep == 1 {
		rows[len(rows)-1] = append(entries, list)
		return rows
	}
	entries[len(entries)-1] = append(entries[len(entries)-1].([]any), v)
	return rows
}

// arrowGoRows reads a column with arrow-go.
func arrowGoRows(r io.ReaderAt, size int64, leaf *format.Leaf) (rows []any, err error) {
	defer recoverTo(&err, "arrow-go")
	f, err := arrowfile.NewParquetReader(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for g := range f.NumRowGroups() {
		col, err := f.RowGroup(g).Column(leaf.Index)
		if err != nil {
			return nil, err
		}
		if rows, err = arrowGoChunk(rows, col, leaf); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func arrowGoChunk(rows []any, col arrowfile.ColumnChunkReader, leaf *format.Leaf) ([]any, error) {
	switch c := col.(type) {
	case *arrowfile.BooleanColumnChunkReader:
		return arrowGoBatches(rows, c.ReadBatch, leaf, func(v bool) any {
			if v {
				return int64(1)
			}
			return int64(0)
		})
	case *arrowfile.Int32ColumnChunkReader:
		return arrowGoBatches(rows, c.ReadBatch, leaf, func(v int32) any {
			if leaf.Unsigned {
				return int64(uint32(v))
			}
			return int64(v)
		})
	case *arrowfile.Int64ColumnChunkReader:
		return arrowGoBatches(rows, c.ReadBatch, leaf, func(v int64) any { return v })
	case *arrowfile.Float32ColumnChunkReader:
		return arrowGoBatches(rows, c.ReadBatch, leaf, func(v float32) any { return v })
	case *arrowfile.Float64ColumnChunkReader:
		return arrowGoBatches(rows, c.ReadBatch, leaf, func(v float64) any { return v })
	case *arrowfile.ByteArrayColumnChunkReader:
		return arrowGoBatches(rows, c.ReadBatch, leaf, func(v arrowpq.ByteArray) any { return append([]byte{}, v...) })
	case *arrowfile.FixedLenByteArrayColumnChunkReader:
		return arrowGoBatches(rows, c.ReadBatch, leaf,
			func(v arrowpq.FixedLenByteArray) any { return append([]byte{}, v...) })
	}
	return nil, fmt.Errorf("arrow-go: no reader of %v", leaf.Physical)
}

func arrowGoBatches[T any](rows []any, read func(int64, []T, []int16, []int16) (int64, int, error), leaf *format.Leaf,
	value func(T) any) ([]any, error) {
	const batch = 1024
	values, def, rep := make([]T, batch), make([]int16, batch), make([]int16, batch)
	for {
		levels, n, err := read(batch, values, def, rep)
		if err != nil {
			return nil, err
		}
		if levels == 0 && n == 0 {
			return rows, nil
		}
		next := 0
		for i := range max(int(levels), n) {
			d, r := int(leaf.MaxDef), 0
			if leaf.MaxDef > 0 {
				d = int(def[i])
			}
			if leaf.MaxRep > 0 {
				r = int(rep[i])
			}
			var v any
			if d == int(leaf.MaxDef) {
				v = value(values[next])
				next++
			}
			rows = addLevels(rows, leaf, r, d, v)
		}
	}
}
