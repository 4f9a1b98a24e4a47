package engine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// testColumn is a column of a generated file.
type testColumn struct {
	name     string
	physical format.Type
	list     bool
	optional bool // the value, or the list as a whole
	elements bool // lists: elements are optional
	within   int  // lists: how many optional lists deep the elements lie inside the list; their rows are flat
	unsigned int  // INT(w, unsigned); 0: plain
	encoding string
	codec    string
	text     bool    // any bytes, which only hash_bytes takes
	numbers  string  // "text_to_int" or "text_to_seconds": text that the operator reads; "": hexadecimal text
	widens   bool    // float32 that a program reads as float64, since other partitions have float64
	noCRC    bool    // pages written by hand
	nested   *levels // pages of a map's leaf, written by hand
	rows     []any   // nil, int64, float32, float64, []byte, or []any of those
}

// levels are the greatest levels of a leaf of a map, and the definition levels from which on an element and an entry
// exist.
type levels struct{ def, rep, element, entry int }

// kind returns the kind in which a program reads the column.
func (c *testColumn) kind() program.Kind {
	if c.widens {
		return program.Float64
	}
	return parquetcolumn.KindOf(c.physical.Kind())
}

// typeLength returns the bytes of each value of a type whose values are equally long, and 0 for other types.
func (c *testColumn) typeLength() int {
	switch c.physical {
	case format.Int96:
		return 12
	case format.FixedLenByteArray:
		return 2
	}
	return 0
}

var codecs = map[string]compress.Codec{
	"": &pq.Uncompressed, "snappy": &pq.Snappy, "gzip": &pq.Gzip, "zstd": &pq.Zstd, "lz4": &pq.Lz4Raw,
}

func (c *testColumn) node() pq.Node {
	var n pq.Node
	switch c.physical {
	case format.Boolean:
		n = pq.Leaf(pq.BooleanType)
	case format.Int32:
		n = pq.Leaf(pq.Int32Type)
	case format.Int64:
		n = pq.Leaf(pq.Int64Type)
	case format.Float:
		n = pq.Leaf(pq.FloatType)
	case format.Double:
		n = pq.Leaf(pq.DoubleType)
	case format.Int96:
		n = pq.Leaf(pq.Int96Type)
	case format.FixedLenByteArray:
		n = pq.Leaf(pq.FixedLenByteArrayType(c.typeLength()))
	default:
		n = pq.Leaf(pq.ByteArrayType)
	}
	if c.unsigned > 0 {
		n = pq.Uint(c.unsigned)
	}
	if c.encoding == "dictionary" && c.physical != format.Boolean {
		n = pq.Encoded(n, &pq.RLEDictionary)
	} else {
		n = pq.Encoded(n, &pq.Plain)
	}
	n = pq.Compressed(n, codecs[c.codec])
	if c.list {
		if c.elements {
			n = pq.Optional(n)
		}
		for range c.within {
			n = pq.Optional(pq.List(n))
		}
		n = pq.List(n)
	}
	if c.optional {
		n = pq.Optional(n)
	}
	return n
}

// value converts one value to parquet-go's form.
func (c *testColumn) value(v any) pq.Value {
	switch x := v.(type) {
	case nil:
		return pq.NullValue()
	case int64:
		switch c.physical {
		case format.Boolean:
			return pq.BooleanValue(x != 0)
		case format.Int32:
			return pq.Int32Value(int32(x))
		}
		return pq.Int64Value(x)
	case float32:
		return pq.FloatValue(x)
	case float64:
		return pq.DoubleValue(x)
	case []byte:
		switch c.physical {
		case format.Int96:
			word := func(i int) uint32 { return binary.LittleEndian.Uint32(x[4*i:]) }
			return pq.Int96Value(deprecated.Int96{word(0), word(1), word(2)})
		case format.FixedLenByteArray:
			return pq.FixedLenByteArrayValue(x)
		}
		return pq.ByteArrayValue(x)
	}
	panic(fmt.Sprintf("%T", v))
}

// levels appends a row's values with their levels.
func (c *testColumn) levels(row pq.Row, v any, index int) pq.Row {
	def := 0
	if c.optional {
		def = 1
	}
	switch {
	case v == nil:
		return append(row, pq.NullValue().Level(0, 0, index))
	case !c.list:
		return append(row, c.value(v).Level(0, def, index))
	}
	list := v.([]any)
	if c.within > 0 {
		rng := rand.New(rand.NewPCG(uint64(len(list)), uint64(c.within))) // the same lists whenever a row is written
		return c.listsInList(rng, row, list, 0, 0, def, index)
	}
	if len(list) == 0 {
		return append(row, pq.NullValue().Level(0, def, index))
	}
	for i, e := range list {
		d, rep := def+1, 1
		if e != nil && c.elements {
			d++
		}
		if i == 0 {
			rep = 0
		}
		row = append(row, c.value(e).Level(rep, d, index))
	}
	return row
}

// listsInList appends the values of a list that is not null, which lies inside some number of lists, with their levels.
// The first has a repetition level, and the list a definition level. rng decides which lists hold the elements, and
// which are empty or null.
func (c *testColumn) listsInList(rng *rand.Rand, row pq.Row, elements []any, inside, rep, def, index int) pq.Row {
	if len(elements) == 0 && (inside == c.within || rng.IntN(2) == 0) {
		return append(row, pq.NullValue().Level(rep, def, index))
	}
	if inside == c.within {
		for i, e := range elements {
			d := def + 1
			if e != nil && c.elements {
				d++
			}
			if i > 0 {
				rep = inside + 1
			}
			row = append(row, c.value(e).Level(rep, d, index))
		}
		return row
	}
	for lists := 1 + rng.IntN(3); lists > 0; lists-- {
		n := len(elements)
		if lists > 1 {
			n = rng.IntN(n + 1)
		}
		if n == 0 && rng.IntN(3) == 0 {
			row = append(row, pq.NullValue().Level(rep, def+1, index)) // a null list
		} else {
			row = c.listsInList(rng, row, elements[:n], inside+1, rep, def+2, index)
		}
		elements, rep = elements[n:], inside+1
	}
	return row
}

// layout says how parquet-go cuts a file.
type layout struct {
	groupRows, batchRows int
	pageBytes            int
	version              int
}

// writeFile makes a Parquet file. The names of the columns must be in order.
func writeFile(t require.TestingT, cols []testColumn, l layout) []byte {
	group := pq.Group{}
	for i := range cols {
		group[cols[i].name] = cols[i].node()
	}
	var buf bytes.Buffer
	w := pq.NewGenericWriter[any](&buf, pq.NewSchema("rows", group), pq.MaxRowsPerRowGroup(int64(l.groupRows)),
		pq.PageBufferSize(max(l.pageBytes, 1)), pq.DataPageVersion(l.version))
	n := len(cols[0].rows)
	for at := 0; at < n; {
		end := min(at+max(1, l.batchRows), n)
		var rows []pq.Row
		for r := at; r < end; r++ {
			var row pq.Row
			for i := range cols {
				row = cols[i].levels(row, cols[i].rows[r], i)
			}
			rows = append(rows, row)
		}
		_, err := w.WriteRows(rows)
		require.NoError(t, err)
		at = end
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// readFooter reads the file's footer with package format.
func readFooter(t require.TestingT, data []byte) *format.File {
	f, err := format.ReadFooter(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return f
}
