package parquet

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func smallColumn() *built {
	c := &built{shape: shapeOptional, physical: Int64, pageRows: 10}
	c.randomRows(rand.New(rand.NewSource(1)), 30, 0.2, false)
	return c
}

func TestFooterEnds(t *testing.T) {
	good := smallColumn().file(rand.New(rand.NewSource(1)))
	n := int(binary.LittleEndian.Uint32(good[len(good)-8:]))
	with := func(change func(b []byte)) []byte {
		b := bytes.Clone(good)
		change(b)
		return b
	}
	setLength := func(n uint32) func(b []byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[len(b)-8:], n) }
	}
	cases := []struct {
		name string
		file []byte
		want error
		says string
	}{
		{"empty", nil, ErrCorrupt, "too short"},
		{"eleven bytes", good[:11], ErrCorrupt, "too short"},
		{"no magic at the end", with(func(b []byte) { b[len(b)-1] = '2' }), ErrCorrupt, "does not end"},
		{"no magic at the beginning", with(func(b []byte) { b[0] = 'Q' }), ErrCorrupt, "does not begin"},
		{"encrypted", with(func(b []byte) { b[len(b)-1] = 'E' }), ErrUnsupported, "encrypted footer"},
		{"length of the file less eleven", with(setLength(uint32(len(good) - 11))), ErrCorrupt, "bytes of footer"},
		{"length of 4 GiB", with(setLength(1<<32 - 1)), ErrCorrupt, "bytes of footer"},
		{"length 0", with(setLength(0)), ErrCorrupt, "inside its metadata"},
		{"one byte short", with(setLength(uint32(n - 1))), ErrCorrupt, ""},
		{"one byte long", with(setLength(uint32(n + 1))), ErrCorrupt, ""},
		{"good", good, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, err := ReadFooter(bytes.NewReader(c.file), int64(len(c.file)))
			if c.want == nil {
				require.NoError(t, err)
				require.Equal(t, sha256.Sum256(good[len(good)-8-n:]), f.FooterSHA256)
				require.Equal(t, int64(30), f.Rows)
				return
			}
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestFooterLargerThanTheFirstRead has names that make the footer longer than one read.
func TestFooterLargerThanTheFirstRead(t *testing.T) {
	c := smallColumn()
	body := []byte(magic)
	file := c.footer(body, 0, 4, 0, 0, 0)
	long := bytes.Repeat([]byte("n"), 3*firstRead)
	file = bytes.Replace(file, append(binary.AppendUvarint(nil, 1), 'c'), append(binary.AppendUvarint(nil, uint64(len(long))), long...), 1)
	binary.LittleEndian.PutUint32(file[len(file)-8:], uint32(len(file)-12))
	f, err := ReadFooter(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	require.Equal(t, string(long), f.Leaves[0].Path)
	require.Zero(t, f.Rows)
}

func TestFooterLies(t *testing.T) {
	c := smallColumn()
	r := rand.New(rand.NewSource(1))
	pages := c.pages(r)
	body := []byte(magic)
	for _, p := range pages {
		body = append(append(body, p.h.marshal()...), p.payload...)
	}
	n := int64(len(body))
	cases := []struct {
		name                   string
		dictAt, dataAt, values int64
		rows                   int64
		want                   error
	}{
		{name: "good", dataAt: 4, values: 30, rows: 30},
		{name: "dictionary at 0 is none", dictAt: -1, dataAt: 4, values: 30, rows: 30},
		{name: "data before the magic's end", dataAt: 3, values: 30, rows: 30, want: ErrCorrupt},
		{name: "one byte into the footer", dataAt: 5, values: 30, rows: 30, want: ErrCorrupt},
		{name: "data after the pages", dataAt: n, values: 30, rows: 30, want: ErrCorrupt},
		{name: "data at a negative offset", dataAt: -1 << 62, values: 30, rows: 30, want: ErrCorrupt},
		{name: "data at the last offset", dataAt: 1<<63 - 1, values: 30, rows: 30, want: ErrCorrupt},
		{name: "dictionary far before the data", dictAt: 4, dataAt: n + 100, values: 30, rows: 30, want: ErrCorrupt},
		{name: "more values than rows", dataAt: 4, values: 31, rows: 30, want: ErrCorrupt},
		{name: "negative rows", dataAt: 4, values: -1, rows: -1, want: ErrCorrupt},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			file := c.footer(bytes.Clone(body), tc.dictAt, tc.dataAt, n-4, tc.values, tc.rows)
			f, err := ReadFooter(bytes.NewReader(file), int64(len(file)))
			if tc.want != nil {
				require.ErrorIs(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			rows, _, err := readKernel(t, bytes.NewReader(file), f, 0, 0)
			require.NoError(t, err)
			requireSameRows(t, c.rows, rows, "rows")
		})
	}
}

// node is a schema element of TestSchema: a leaf if it has no children.
type node struct {
	name       string
	repetition int32
	note       int32 // converted type, -1 for none
	physical   Type
	children   []node
}

func (n node) elements() []element {
	e := element{name: n.name, repetition: n.repetition, children: int32(len(n.children))}
	if len(n.children) == 0 {
		e.physical, e.hasType = n.physical, true
	}
	if n.note >= 0 {
		e.convertedType(n.note, 0, 0)
	}
	out := []element{e}
	for _, c := range n.children {
		out = append(out, c.elements()...)
	}
	return out
}

func TestSchemaNesting(t *testing.T) {
	leaf := func(name string, repetition int32) node {
		return node{name: name, repetition: repetition, note: -1, physical: Int64}
	}
	group := func(name string, repetition int32, note int32, children ...node) node {
		return node{name: name, repetition: repetition, note: note, children: children}
	}
	const list, mapped = 3, 1
	type want struct {
		path, name          string
		def, rep, repDef    uint8
		refused             string
		nullable, isList    bool
		nullValues, nullRow bool
	}
	cases := []struct {
		name string
		root node
		want want
	}{
		{"required", leaf("a", required), want{path: "a", name: "a"}},
		{"optional", leaf("a", optional), want{path: "a", name: "a", def: 1, nullable: true, nullValues: true}},
		{"in groups", group("g", optional, -1, group("h", required, -1, leaf("a", optional))),
			want{path: "g.h.a", name: "g.h.a", def: 2, nullable: true, nullValues: true}},
		{"standard list", group("a", optional, list, group("list", repeated, -1, leaf("element", optional))),
			want{path: "a.list.element", name: "a", def: 3, rep: 1, repDef: 2, nullable: true, isList: true, nullValues: true, nullRow: true}},
		{"list with other names", group("a", required, list, group("bag", repeated, -1, leaf("array_element", required))),
			want{path: "a.bag.array_element", name: "a", def: 1, rep: 1, repDef: 1, isList: true}},
		{"list in a group", group("g", optional, -1, group("a", optional, list, group("list", repeated, -1, leaf("element", required)))),
			want{path: "g.a.list.element", name: "g.a", def: 3, rep: 1, repDef: 3, nullable: true, isList: true, nullRow: true}},
		{"two levels", group("a", optional, list, leaf("array", repeated)),
			want{path: "a.array", name: "a", def: 2, rep: 1, repDef: 2, nullable: true, isList: true, nullRow: true}},
		{"repeated leaf", leaf("a", repeated), want{path: "a", name: "a", def: 1, rep: 1, repDef: 1, isList: true}},
		{"list of groups", group("a", optional, list, group("list", repeated, -1, group("element", optional, -1, leaf("x", optional)))),
			want{path: "a.list.element.x", refused: "group in a list"}},
		{"list of lists", group("a", optional, list, group("list", repeated, -1, group("element", optional, list, group("list", repeated, -1, leaf("element", optional))))),
			want{path: "a.list.element.list.element", refused: "list in a list"}},
		{"group called array", group("a", optional, list, group("array", repeated, -1, leaf("x", optional))),
			want{path: "a.array.x", refused: "group in a list"}},
		{"group called tuple", group("a", optional, list, group("a_tuple", repeated, -1, leaf("x", optional))),
			want{path: "a.a_tuple.x", refused: "group in a list"}},
		{"repeated group", group("a", repeated, -1, leaf("x", required)), want{path: "a.x", refused: "group in a list"}},
		{"no text", leaf("a\xff", optional), want{path: "a\xff", refused: `name "a\xff", which is not UTF-8, is not supported`}},
		{"no text within a list", group("a", required, list, group("l\xff", repeated, -1, leaf("element", required))),
			want{path: "a.l\xff.element", name: "a", def: 1, rep: 1, repDef: 1, isList: true}},
		{"map", group("a", optional, mapped, group("key_value", repeated, -1, leaf("key", required))), want{path: "a.key_value.key", refused: "map"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			leaves, _, err := leavesOf(group("root", required, -1, c.root).elements())
			require.NoError(t, err)
			require.Len(t, leaves, 1)
			l := leaves[0]
			require.Equal(t, c.want.path, l.Path)
			if c.want.refused != "" {
				require.ErrorIs(t, l.Unsupported, ErrUnsupported)
				require.ErrorContains(t, l.Unsupported, c.want.refused)
				return
			}
			require.NoError(t, l.Unsupported)
			ct := l.ColumnType(Snappy)
			require.NoError(t, ct.Validate())
			require.Equal(t, c.want, want{l.Path, l.Name, l.MaxDef, l.MaxRep, l.RepDef, "", l.Nullable(), l.List, ct.NullableValues(), ct.NullableRows()})
		})
	}
}

func TestSchemaFaults(t *testing.T) {
	root := element{name: "root", children: 1}
	leaf := element{name: "a", repetition: required, hasType: true, physical: Int32}
	change := func(e element, f func(e *element)) element { f(&e); return e }
	deep := []element{root}
	for range maxSchemaDepth + 3 {
		deep = append(deep, element{name: "g", repetition: required, children: 1})
	}
	cases := map[string][]element{
		"empty":                  nil,
		"root is a leaf":         {leaf},
		"ends inside a group":    {root},
		"more elements":          {root, leaf, leaf},
		"negative children":      {root, change(leaf, func(e *element) { e.children = -1 })},
		"repetition 3":           {root, change(leaf, func(e *element) { e.repetition = 3 })},
		"negative fixed length":  {root, change(leaf, func(e *element) { e.physical, e.typeLength = FixedLenByteArray, -1 })},
		"children beyond memory": {change(root, func(e *element) { e.children = 1<<31 - 1 }), leaf},
		"ends deep inside":       deep,
		"negative deep inside":   append(slices.Clone(deep), change(leaf, func(e *element) { e.children = -1 })),
	}
	for name, elements := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := leavesOf(elements)
			require.ErrorIs(t, err, ErrCorrupt)
		})
	}
	// A long name that many leaves share is counted for each.
	long := change(root, func(e *element) { e.name = string(make([]byte, 1<<20)); e.repetition = required; e.children = 100 })
	many := []element{root, long}
	for i := range 100 {
		many = append(many, change(leaf, func(e *element) { e.name = fmt.Sprint(i) }))
	}
	_, _, err := leavesOf(many)
	require.ErrorIs(t, err, ErrUnsupported)
	// A type that we do not know refuses its column and no other.
	for _, physical := range []Type{Int96, 8, unknown} {
		leaves, _, err := leavesOf([]element{change(root, func(e *element) { e.children = 2 }), change(leaf, func(e *element) { e.physical = physical }), leaf})
		require.NoError(t, err)
		require.ErrorIs(t, leaves[0].Unsupported, ErrUnsupported)
		require.NoError(t, leaves[1].Unsupported)
	}
}

// TestSchemaDepth nests a column at the limit, one beyond, and as deep as a footer can say: the limit is that column's.
func TestSchemaDepth(t *testing.T) {
	nested := func(repetition int32, depth int) []element {
		e := []element{{name: "root", children: 3}, {name: "before", hasType: true, physical: Int32}}
		for range depth - 1 {
			e = append(e, element{repetition: repetition, children: 1})
		}
		leaf := element{name: "x", repetition: optional, hasType: true, physical: Int64}
		return append(e, leaf, element{name: "behind", hasType: true, physical: Float})
	}
	for _, repetition := range []int32{required, optional, repeated} {
		for _, depth := range []int{1, maxSchemaDepth, maxSchemaDepth + 1, 300, 1 << 20} {
			leaves, _, err := leavesOf(nested(repetition, depth))
			require.NoError(t, err)
			require.Len(t, leaves, 3)
			require.NoError(t, leaves[0].Unsupported)
			require.NoError(t, leaves[2].Unsupported)
			require.Equal(t, []any{"before", uint8(0), "behind", uint8(0)}, []any{leaves[0].Path, leaves[0].MaxDef, leaves[2].Path, leaves[2].MaxDef})
			require.Equal(t, strings.Repeat(".", depth-1)+"x", leaves[1].Path)
			switch {
			case depth > maxSchemaDepth:
				require.ErrorIs(t, leaves[1].Unsupported, ErrUnsupported)
				require.EqualError(t, leaves[1].Unsupported, "nesting of more than 63 levels is not supported")
				require.Equal(t, repetition == repeated, leaves[1].MaxRep > 0)
			case repetition != repeated:
				require.NoError(t, leaves[1].Unsupported)
			}
		}
	}
	// Below a map that is read elsewhere, the map is refused with its leaf.
	deep := nested(optional, maxSchemaDepth-2)
	m := []element{
		{name: "m", note: noteMap, children: 1}, {name: "entries", repetition: repeated, children: 2},
		{name: "key", hasType: true, physical: Int64}, {name: "value", note: noteList, children: 1},
		{name: "list", repetition: repeated, children: 1}, {name: "element", hasType: true, physical: Int64},
	}
	deep = slices.Concat(deep[:len(deep)-2], m, deep[len(deep)-1:])
	leaves, maps, err := leavesOf(deep)
	require.NoError(t, err)
	require.Len(t, maps, 1)
	require.EqualError(t, maps[0].Unsupported, "map with nesting of more than 63 levels is not supported")
	require.Len(t, leaves, 4)
	require.NoError(t, leaves[3].Unsupported)
}

// TestSchemaOfOtherWriters reads what the specification does not allow and writers leave: a root, or another group,
// with a type, and elements without a repetition type, which are required.
func TestSchemaOfOtherWriters(t *testing.T) {
	leaf := element{name: "a", hasType: true, physical: Int32}
	group := element{name: "g", hasType: true, physical: Boolean, children: 1}
	leaves, _, err := leavesOf([]element{{name: "root", hasType: true, physical: Int64, children: 2}, leaf, group, leaf})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "g.a"}, []string{leaves[0].Path, leaves[1].Path})
	for _, l := range leaves {
		require.NoError(t, l.Unsupported)
		require.Zero(t, l.MaxDef)
	}
	// As bytes: the field that says the repetition is not there.
	var w thriftWriter
	w.begin()
	w.i32(1, int32(Int64))
	w.str(4, "a")
	w.end()
	r := compact{b: w.b}
	require.Equal(t, element{name: "a", hasType: true, physical: Int64, repetition: required}, r.schemaElement())
	require.NoError(t, r.err)
}

func TestThriftBounds(t *testing.T) {
	cases := map[string]struct {
		b    []byte
		read func(r *compact)
		want error
	}{
		"list longer than its bytes":   {[]byte{0xfc, 0xff, 0xff, 0xff, 0x0f}, func(r *compact) { r.list(tList, tStruct) }, ErrMoreInput},
		"list of another type":         {[]byte{0x15, 0}, func(r *compact) { r.list(tList, tStruct) }, ErrCorrupt},
		"string longer than its bytes": {[]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 'a'}, func(r *compact) { r.bytes() }, ErrMoreInput},
		"number of 11 bytes":           {bytes.Repeat([]byte{0xff}, 11), func(r *compact) { r.uvarint() }, ErrCorrupt},
		"number beyond 32 bits":        {[]byte{0x80, 0x80, 0x80, 0x80, 0x20}, func(r *compact) { r.int32() }, ErrCorrupt},
		"map longer than its bytes":    {[]byte{0xff, 0xff, 0x03, 0x88, 1}, func(r *compact) { r.skip(tMap) }, ErrMoreInput},
		"structures without end":       {bytes.Repeat([]byte{0x1c}, 1000), func(r *compact) { r.skip(tStruct) }, ErrCorrupt},
		"lists without end":            {bytes.Repeat([]byte{0x19}, 1000), func(r *compact) { r.skip(tList) }, ErrCorrupt},
		"unknown field type":           {[]byte{0x1e}, func(r *compact) { r.skip(tStruct) }, ErrCorrupt},
		"unknown element type":         {[]byte{0x1f, 0}, func(r *compact) { r.skip(tList) }, ErrCorrupt},
		"field beyond 16 bits":         {[]byte{0x08, 0x80, 0x80, 0x04, 1, 0}, func(r *compact) { r.skip(tStruct) }, ErrCorrupt},
		"double cut short":             {[]byte{1, 2, 3}, func(r *compact) { r.skip(tDouble) }, ErrMoreInput},
		"every type":                   {everyThriftType(), func(r *compact) { r.skip(tStruct) }, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := compact{b: c.b}
			c.read(&r)
			require.ErrorIs(t, r.err, c.want)
			if c.want == nil {
				require.Zero(t, r.left())
			}
		})
	}
}

// everyThriftType is a structure with a field of every type.
func everyThriftType() []byte {
	var w thriftWriter
	w.begin()
	w.bool(1, true)
	w.bool(2, false)
	w.field(3, tByte)
	w.b = append(w.b, 7)
	w.i32(40, -5)
	w.i64(41, -1<<63)
	w.field(42, tDouble)
	w.b = append(w.b, make([]byte, 8)...)
	w.str(43, "words")
	w.list(44, tTrue, 3)
	w.b = append(w.b, 1, 2, 1)
	w.list(45, tI32, 20)
	w.b = append(w.b, make([]byte, 20)...)
	w.field(46, tMap)
	w.b = append(w.b, 1, tBinary<<4|tFalse, 1, 'k', 2)
	w.field(47, tMap)
	w.b = append(w.b, 0)
	w.field(48, tUUID)
	w.b = append(w.b, make([]byte, 16)...)
	w.field(49, tStruct)
	w.begin()
	w.i32(1, 1)
	w.end()
	w.end()
	return w.b
}
