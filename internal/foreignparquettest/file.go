package foreignparquettest

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/klauspost/compress/snappy"
)

// Rows of every file.
const Rows = 600

// File is a file of another writer.
type File struct {
	Name  string
	Bytes []byte
	// ID is the name of the column of ids: "id", as in Twin, or another name.
	ID string
	// Refused is the path of a column that cannot be read, and must not keep others from being read; "" if there is
	// none.
	Refused string
}

// Twin holds the rows as a writer without faults writes them: an optional label of INT32, an optional "f" of FLOAT, a
// required "id" of INT64, and "ids", an optional list of optional INT64 with null, empty, short and long lists.
func Twin() []byte { return write(options{createdBy: "millrace test", pageLevels: 200}) }

// Files returns a file of every fault.
func Files() []File {
	arrow := options{createdBy: "parquet-cpp-arrow version 10.0.1", v2: true, rowsAreValues: true, pageLevels: 100}
	snappyArrow, oldest := arrow, arrow
	snappyArrow.createdBy, snappyArrow.snappy = "parquet-cpp-arrow version 11.0.0", true
	oldest.createdBy, oldest.snappy, oldest.flaggedUncompressed = "parquet-cpp version 1.5.1-SNAPSHOT", true, true
	flagged := oldest
	flagged.createdBy = "parquet-cpp-arrow version 2.0.0"
	plain := options{createdBy: "millrace test", pageLevels: 200}
	with := func(change func(o *options)) []byte {
		o := plain
		change(&o)
		return write(o)
	}
	return []File{
		{Name: "v2 pages that count values as rows", ID: "id", Bytes: write(arrow)},
		{Name: "v2 pages that count values as rows, compressed", ID: "id", Bytes: write(snappyArrow)},
		{Name: "v2 pages that say they are not compressed", ID: "id", Bytes: write(oldest)},
		{Name: "v2 pages that say they are not compressed, by a later name", ID: "id", Bytes: write(flagged)},
		{Name: "a root with a type", ID: "id", Bytes: with(func(o *options) { o.typedRoot = true })},
		{Name: "a leaf without repetition type", ID: "id", Bytes: with(func(o *options) { o.idHasNoRepetition = true })},
		{Name: "a column that is nested too deep", ID: "id", Bytes: with(func(o *options) { o.deep = 80 }),
			Refused: strings.Repeat("g.", 80) + "x"},
		{Name: "an empty column name", ID: "", Bytes: with(func(o *options) { o.idHasEmptyName = true })},
		{Name: "a row group a row", ID: "id", Bytes: with(func(o *options) { o.groupRows = 1 })},
	}
}

// ManyRowGroups is a file of n rows, each a row group, as Twin's first columns: label, "f" and "id".
func ManyRowGroups(n int) []byte {
	return write(options{createdBy: "millrace test", pageLevels: 200, rows: n, groupRows: 1, flat: true})
}

// FewRowGroups holds the rows of ManyRowGroups in one row group.
func FewRowGroups(n int) []byte {
	return write(options{createdBy: "millrace test", pageLevels: 200, rows: n, flat: true})
}

// options say how a file is written.
type options struct {
	createdBy  string
	rows       int  // Rows if 0
	groupRows  int  // rows of a row group; all if 0
	pageLevels int  // most levels of a page
	flat       bool // no "ids"
	v2         bool
	snappy     bool

	rowsAreValues       bool // v2 pages say how many values they have instead of rows, and end anywhere
	flaggedUncompressed bool
	typedRoot           bool
	idHasNoRepetition   bool
	idHasEmptyName      bool
	deep                int // one more column, below that many nested groups
}

// column is a leaf and its levels.
type column struct {
	name     string
	physical int // parquet.thrift's Type: 1 INT32, 2 INT64, 4 FLOAT
	maxDef   int
	maxRep   int
	levels   []level
	schema   func(w *thrift) int // writes the column's elements and returns how many
}

// level is a pair of levels and its value, in PLAIN; nil if there is none.
type level struct {
	rep, def int
	value    []byte
}

// leaf writes a schema element with a type.
func leaf(w *thrift, name string, physical, repetition int, hasRepetition bool) {
	w.element(func() {
		w.i32(1, physical)
		if hasRepetition {
			w.i32(3, repetition)
		}
		w.text(4, name)
	})
}

// group writes a schema element with children, with LIST as its annotation if list.
func group(w *thrift, name string, repetition, children int, list bool) {
	w.element(func() {
		w.i32(3, repetition)
		w.text(4, name)
		w.i32(5, children)
		if list {
			w.i32(6, 3)
		}
	})
}

func int64Bytes(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// columns makes the columns of rows [from, to).
func (o *options) columns(from, to int) []column {
	flat := func(name string, physical, maxDef int, value func(row int) []byte) column {
		c := column{name: name, physical: physical, maxDef: maxDef}
		c.schema = func(w *thrift) int {
			leaf(w, name, physical, maxDef, name != "id" || !o.idHasNoRepetition)
			return 1
		}
		for row := from; row < to; row++ {
			l := level{value: value(row)}
			if l.value != nil {
				l.def = maxDef
			}
			c.levels = append(c.levels, l)
		}
		return c
	}
	id := "id"
	if o.idHasEmptyName {
		id = ""
	}
	columns := []column{
		flat("label", 1, 1, func(row int) []byte {
			if row%7 == 3 {
				return nil
			}
			return binary.LittleEndian.AppendUint32(nil, uint32(row%2))
		}),
		flat("f", 4, 1, func(row int) []byte {
			if row%11 == 5 {
				return nil
			}
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(row)/3))
		}),
		flat(id, 2, 0, func(row int) []byte { return int64Bytes(int64(row) * 1_000_003) }),
	}
	if !o.flat {
		columns = append(columns, lists(from, to))
	}
	if o.deep > 0 {
		c := flat(strings.Repeat("g.", o.deep)+"x", 2, 1, func(row int) []byte { return int64Bytes(int64(row)) })
		c.schema = func(w *thrift) int {
			for range o.deep {
				group(w, "g", 0, 1, false)
			}
			leaf(w, "x", 2, 1, true)
			return o.deep + 1
		}
		columns = append([]column{c}, columns...)
	}
	return columns
}

// lists is the column "ids".
func lists(from, to int) column {
	c := column{name: "ids.list.element", physical: 2, maxDef: 3, maxRep: 1, schema: func(w *thrift) int {
		group(w, "ids", 1, 1, true)
		group(w, "list", 2, 1, false)
		leaf(w, "element", 2, 1, true)
		return 3
	}}
	for row := from; row < to; row++ {
		length := []int{3, 0, 1, 0, 7, 2}[row%6]
		if row%97 == 50 {
			length = 350 // over several pages
		}
		switch {
		case length == 0 && row%6 == 1:
			c.levels = append(c.levels, level{})
		case length == 0:
			c.levels = append(c.levels, level{def: 1})
		}
		for i := range length {
			l := level{rep: min(i, 1), def: 3, value: int64Bytes(int64(row)<<20 + int64(i))}
			if (row+i)%13 == 0 {
				l.def, l.value = 2, nil
			}
			c.levels = append(c.levels, l)
		}
	}
	return c
}

// chunk is where a column chunk lies.
type chunk struct {
	at, length, unpacked, values int
}

// write makes a file.
func write(o options) []byte {
	if o.rows == 0 {
		o.rows = Rows
	}
	if o.groupRows == 0 {
		o.groupRows = o.rows
	}
	b := []byte("PAR1")
	var groups [][]chunk
	for from := 0; from < o.rows; from += o.groupRows {
		var chunks []chunk
		for _, c := range o.columns(from, min(from+o.groupRows, o.rows)) {
			k := chunk{at: len(b), values: len(c.levels)}
			for levels := c.levels; len(levels) > 0; {
				n := o.cut(levels)
				header, payload, unpacked := o.page(&c, levels[:n])
				b = append(append(b, header...), payload...)
				k.unpacked += len(header) + unpacked
				levels = levels[n:]
			}
			k.length = len(b) - k.at
			chunks = append(chunks, k)
		}
		groups = append(groups, chunks)
	}
	footer := o.footer(groups)
	b = append(b, footer...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(footer)))
	return append(b, "PAR1"...)
}

// cut says how many levels the next page holds.
func (o *options) cut(levels []level) int {
	n := min(o.pageLevels, len(levels))
	if o.v2 && !o.rowsAreValues {
		for n < len(levels) && levels[n].rep > 0 {
			n++
		}
	}
	return n
}

// page writes a data page.
func (o *options) page(c *column, levels []level) (header, payload []byte, unpacked int) {
	var reps, defs, values []byte
	nulls, rows := 0, 0
	for _, l := range levels {
		if c.maxRep > 0 {
			reps = append(reps, 2, byte(l.rep)) // a run of one
		}
		if c.maxDef > 0 {
			defs = append(defs, 2, byte(l.def))
		}
		if l.value == nil {
			nulls++
		}
		if l.rep == 0 {
			rows++
		}
		values = append(values, l.value...)
	}
	pack := func(b []byte) []byte {
		if o.snappy {
			return snappy.Encode(nil, b)
		}
		return b
	}
	if o.rowsAreValues {
		rows = len(levels)
	}
	var w thrift
	w.begin()
	if o.v2 {
		sections := append(append([]byte{}, reps...), defs...)
		payload = append(sections, pack(values)...)
		unpacked = len(sections) + len(values)
		w.i32(1, 3)
		w.i32(2, unpacked)
		w.i32(3, len(payload))
		w.structure(8, func() {
			w.i32(1, len(levels))
			w.i32(2, nulls)
			w.i32(3, rows)
			w.i32(4, 0)
			w.i32(5, len(defs))
			w.i32(6, len(reps))
			if !o.snappy || o.flaggedUncompressed {
				w.field(7, typeFalse)
			}
		})
	} else {
		var body []byte
		for _, section := range [][]byte{reps, defs} {
			if len(section) > 0 {
				body = binary.LittleEndian.AppendUint32(body, uint32(len(section)))
				body = append(body, section...)
			}
		}
		body = append(body, values...)
		payload, unpacked = pack(body), len(body)
		w.i32(1, 0)
		w.i32(2, unpacked)
		w.i32(3, len(payload))
		w.structure(5, func() {
			w.i32(1, len(levels))
			w.i32(2, 0)
			w.i32(3, 3)
			w.i32(4, 3)
		})
	}
	w.end()
	return w.b, payload, unpacked
}

// footer writes FileMetaData.
func (o *options) footer(groups [][]chunk) []byte {
	columns := o.columns(0, 0)
	var schema thrift
	elements, fields := 1, len(columns)
	for _, c := range columns {
		elements += c.schema(&schema)
	}
	var w thrift
	w.begin()
	w.i32(1, 2)
	w.list(2, typeStruct, elements)
	w.element(func() {
		if o.typedRoot {
			w.i32(1, 0)
		}
		w.text(4, "schema")
		w.i32(5, fields)
	})
	w.b = append(w.b, schema.b...)
	w.i64(3, o.rows)
	w.list(4, typeStruct, len(groups))
	for i, chunks := range groups {
		w.element(func() { o.rowGroup(&w, columns, chunks, min(o.groupRows, o.rows-i*o.groupRows)) })
	}
	w.text(6, o.createdBy)
	w.end()
	return w.b
}

func (o *options) rowGroup(w *thrift, columns []column, chunks []chunk, rows int) {
	codec, total := 0, 0
	if o.snappy {
		codec = 1
	}
	w.list(1, typeStruct, len(columns))
	for i, k := range chunks {
		total += k.unpacked
		w.element(func() {
			w.i64(2, 0)
			w.structure(3, func() {
				w.i32(1, columns[i].physical)
				w.list(2, typeI32, 2)
				w.zigzag(0)
				w.zigzag(3)
				path := strings.Split(columns[i].name, ".")
				w.list(3, typeBinary, len(path))
				for _, name := range path {
					w.rawText(name)
				}
				w.i32(4, codec)
				w.i64(5, k.values)
				w.i64(6, k.unpacked)
				w.i64(7, k.length)
				w.i64(9, k.at)
			})
		})
	}
	w.i64(2, total)
	w.i64(3, rows)
}
