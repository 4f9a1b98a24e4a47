package decoder

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// rowsOf turns a block into the rows that the reference gives: nil, a value, or a []any of them.
func rowsOf(b *Block, ct *format.ColumnType) []any {
	value := func(i int) any {
		if len(b.Valid) > 0 && b.Valid[i] == 0 {
			return nil
		}
		switch b.Kind {
		case format.KindInt64:
			return b.I64[i]
		case format.KindFloat32:
			return b.F32[i]
		case format.KindFloat64:
			return b.F64[i]
		}
		return append([]byte{}, b.Bytes(i)...)
	}
	rows := make([]any, 0, b.Rows)
	element, entry := 0, 0
	for r := range b.Rows {
		if !ct.List {
			rows = append(rows, value(r))
			continue
		}
		if len(b.RowValid) > 0 && b.RowValid[r] == 0 {
			rows = append(rows, nil)
			continue
		}
		if ct.MaxRep == 2 && !ct.Flattened {
			lists := nestedRow{}
			for range b.Lengths[r] {
				list := []any{}
				for range b.Inner[entry] {
					list = append(list, value(element))
					element++
				}
				lists = append(lists, list)
				entry++
			}
			rows = append(rows, lists)
			continue
		}
		list := []any{}
		for range b.Lengths[r] {
			list = append(list, value(element))
			element++
		}
		if ct.Flattened {
			rows = append(rows, flatRow(list))
			continue
		}
		rows = append(rows, list)
	}
	return rows
}

// flatRow is a row of lists in lists as the kernel gives it: what is null comes out empty.
type flatRow []any

// is reports whether row, as the reference gives it, is f.
func (f flatRow) is(row any) bool {
	list, _ := row.([]any)
	return same(append([]any{}, list...), append([]any{}, f...))
}

// nestedRow is a row of lists in a map as the kernel gives it: what is null comes out empty.
type nestedRow [][]any

// is reports whether row, as the reference gives it, is n.
func (n nestedRow) is(row any) bool {
	lists, _ := row.([]any)
	if len(lists) != len(n) {
		return false
	}
	for i := range lists {
		if list, _ := lists[i].([]any); !same(append([]any{}, list...), append([]any{}, n[i]...)) {
			return false
		}
	}
	return true
}

// same compares values by their bits, so that NaNs are equal and zeros of two signs are not.
func same(a, b any) bool {
	if n, ok := b.(nestedRow); ok {
		return n.is(a)
	}
	if f, ok := b.(flatRow); ok {
		return f.is(a)
	}
	switch x := a.(type) {
	case nil:
		return b == nil
	case int64:
		y, ok := b.(int64)
		return ok && x == y
	case float32:
		y, ok := b.(float32)
		return ok && math.Float32bits(x) == math.Float32bits(y)
	case float64:
		y, ok := b.(float64)
		return ok && math.Float64bits(x) == math.Float64bits(y)
	case []byte:
		y, ok := b.([]byte)
		return ok && bytes.Equal(x, y)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return false
}

func requireSameRows(t require.TestingT, want, got []any, what string) {
	require.Len(t, got, len(want), what)
	for i := range want {
		if !same(want[i], got[i]) {
			require.Failf(t, "another value", "%s: row %d: want %v, got %v", what, i, want[i], got[i])
		}
	}
}

// broken says which promise a Block does not keep, "" if it keeps all.
func broken(b *Block, ct *format.ColumnType) string {
	elements := b.Values()
	switch {
	case ct.NullableValues() && (len(b.Valid) != elements || elements-countOneBytes(b.Valid) != b.Nulls):
		return "Valid or Nulls"
	case !ct.NullableValues() && (len(b.Valid) != 0 || b.Nulls != 0):
		return "Valid of a column without nulls"
	case !ct.List && (elements != b.Rows || len(b.Lengths) != 0):
		return "elements of a flat column"
	case ct.List && len(b.Lengths) != b.Rows:
		return "Lengths"
	case ct.NullableRows() && (len(b.RowValid) != b.Rows || b.Rows-countOneBytes(b.RowValid) != b.NullRows):
		return "RowValid or NullRows"
	case !ct.NullableRows() && (len(b.RowValid) != 0 || b.NullRows != 0):
		return "RowValid of lists that cannot be null"
	}
	sum := 0
	if ct.MaxRep == 2 && !ct.Flattened {
		for _, n := range b.Lengths {
			sum += int(n)
		}
		if sum != len(b.Inner) {
			return "sum of Lengths of lists in a map"
		}
		sum = 0
		for _, n := range b.Inner {
			sum += int(n)
		}
		if sum != elements {
			return "sum of Inner"
		}
		return ""
	}
	for i, n := range b.Lengths {
		sum += int(n)
		if len(b.RowValid) > 0 && b.RowValid[i] == 0 && n != 0 {
			return "length of a null list"
		}
	}
	if ct.List && sum != elements {
		return "sum of Lengths"
	}
	for i, v := range b.Valid {
		if v != 0 {
			continue
		}
		switch {
		case b.Kind == format.KindInt64 && b.I64[i] != 0, b.Kind == format.KindFloat32 &&
			math.Float32bits(b.F32[i]) != 0,
			b.Kind == format.KindFloat64 && math.Float64bits(b.F64[i]) != 0, b.Kind == format.KindBytes &&
				len(b.Bytes(i)) != 0:
			return "element of a null"
		}
	}
	return ""
}

// readKernel reads a chunk through a chunkReader, step rows at a time (a list of steps taken in turn; negative: skip),
// and returns the rows with the skipped ones left out and their places.
func readKernel(t require.TestingT, r io.ReaderAt, f *format.File, rowGroup, leaf int, steps ...int) (rows []any,
	places []int, err error) {
	var c chunkReader
	if err := c.OpenChunk(r, f, rowGroup, leaf); err != nil {
		return nil, nil, err
	}
	b := Block{Lend: c.ct.Codec == format.Uncompressed} // such pages stay where they are
	at := 0
	for i := 0; ; i++ {
		step := 1 << 20
		if len(steps) > 0 {
			step = steps[i%len(steps)]
		}
		if step < 0 {
			n, err := c.Skip(int64(-step))
			at += int(n)
			if errors.Is(err, io.EOF) {
				return rows, places, nil
			}
			if err != nil {
				return nil, nil, err
			}
			continue
		}
		b.Reset(c.ct.Kind())
		n, err := c.Next(&b, step)
		if errors.Is(err, io.EOF) {
			return rows, places, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if what := broken(&b, &c.ct); what != "" || n > step || n != b.Rows {
			require.Failf(t, "a broken block", "%d rows of %d, %d in the block: %s", n, step, b.Rows, what)
		}
		rows = append(rows, rowsOf(&b, &c.ct)...)
		for range n {
			places = append(places, at)
			at++
		}
	}
}

func openFile(t require.TestingT, path string) (*os.File, int64) {
	r, err := os.Open(path)
	require.NoError(t, err)
	st, err := r.Stat()
	require.NoError(t, err)
	return r, st.Size()
}
