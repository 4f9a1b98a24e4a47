package format

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testNode is a schema element of the tests: a leaf if it has no children.
type testNode struct {
	name       string
	repetition int32
	note       int32 // converted type, -1 for none
	physical   Type
	children   []testNode
}

func (n testNode) elements() []schemaElement {
	e := schemaElement{name: n.name, repetition: n.repetition, children: int32(len(n.children))}
	if len(n.children) == 0 {
		e.physical, e.hasType = n.physical, true
	}
	if n.note >= 0 {
		e.setConvertedType(n.note, 0, 0)
	}
	out := []schemaElement{e}
	for _, c := range n.children {
		out = append(out, c.elements()...)
	}
	return out
}

func TestSchemaNesting(t *testing.T) {
	leaf := func(name string, repetition int32) testNode {
		return testNode{name: name, repetition: repetition, note: -1, physical: Int64}
	}
	group := func(name string, repetition int32, note int32, children ...testNode) testNode {
		return testNode{name: name, repetition: repetition, note: note, children: children}
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
		root testNode
		want want
	}{
		{"required", leaf("a", required), want{path: "a", name: "a"}},
		{"optional", leaf("a", optional), want{path: "a", name: "a", def: 1, nullable: true, nullValues: true}},
		{"in groups", group("g", optional, -1, group("h", required, -1, leaf("a", optional))),
			want{path: "g.h.a", name: "g.h.a", def: 2, nullable: true, nullValues: true}},
		{"standard list", group("a", optional, list, group("list", repeated, -1, leaf("element", optional))),
			want{path: "a.list.element", name: "a", def: 3, rep: 1, repDef: 2, nullable: true, isList: true,
				nullValues: true, nullRow: true}},
		{"list with other names", group("a", required, list,
			group("bag", repeated, -1, leaf("array_element", required))),
			want{path: "a.bag.array_element", name: "a", def: 1, rep: 1, repDef: 1, isList: true}},
		{"list in a group", group("g", optional, -1,
			group("a", optional, list, group("list", repeated, -1, leaf("element", required)))),
			want{path: "g.a.list.element", name: "g.a", def: 3, rep: 1, repDef: 3, nullable: true, isList: true,
				nullRow: true}},
		{"two levels", group("a", optional, list, leaf("array", repeated)),
			want{path: "a.array", name: "a", def: 2, rep: 1, repDef: 2, nullable: true, isList: true, nullRow: true}},
		{"repeated leaf", leaf("a", repeated), want{path: "a", name: "a", def: 1, rep: 1, repDef: 1, isList: true}},
		{"list of groups", group("a", optional, list,
			group("list", repeated, -1, group("element", optional, -1, leaf("x", optional)))),
			want{path: "a.list.element.x", name: "a.x", def: 4, rep: 1, repDef: 2, nullable: true, isList: true,
				nullValues: true, nullRow: true}},
		{"list of groups of groups", group("a", required, list, group("list", repeated, -1,
			group("element", required, -1, group("x", optional, -1, leaf("y", required))))),
			want{path: "a.list.element.x.y", name: "a.x.y", def: 2, rep: 1, repDef: 1, isList: true, nullValues: true}},
		{"list in a group in a list", group("a", required, list, group("list", repeated, -1,
			group("element", required, -1, leaf("x", repeated)))),
			want{path: "a.list.element.x", name: "a.x", def: 2, rep: 2, repDef: 2, isList: true}},
		{"map in a group in a list", group("a", required, list, group("list", repeated, -1, group("element", required, -1,
			group("m", optional, mapped, group("key_value", repeated, -1, leaf("key", required)))))),
			want{path: "a.list.element.m.key_value.key", name: "a.m.key_value.key", def: 3, rep: 2, repDef: 3, isList: true}},
		{"map in a list", group("a", optional, list, group("list", repeated, -1,
			group("element", optional, mapped, group("key_value", repeated, -1, leaf("key", required))))),
			want{path: "a.list.element.key_value.key", name: "a.key_value.key", def: 4, rep: 2, repDef: 4, nullable: true,
				isList: true}},
		{"list of lists", group("a", optional, list,
			group("list", repeated, -1, group("element", optional, list,
				group("list", repeated, -1, leaf("element", optional))))),
			want{path: "a.list.element.list.element", name: "a", def: 5, rep: 2, repDef: 4, nullable: true, isList: true,
				nullValues: true}},
		{"list of lists of lists of groups", group("a", required, list,
			group("list", repeated, -1, group("element", optional, list,
				group("list", repeated, -1, group("element", optional, list,
					group("list", repeated, -1, group("element", optional, -1, leaf("x", optional)))))))),
			want{path: "a.list.element.list.element.list.element.x", name: "a.x", def: 7, rep: 3, repDef: 5, isList: true,
				nullValues: true}},
		{"list of lists of two levels", group("a", optional, list, group("array", repeated, list, leaf("array", repeated))),
			want{path: "a.array.array", name: "a", def: 3, rep: 2, repDef: 3, nullable: true, isList: true}},
		{"repeated group in a repeated group", group("a", repeated, -1, group("b", repeated, -1, leaf("x", required))),
			want{path: "a.b.x", name: "a.b.x", def: 2, rep: 2, repDef: 2, isList: true}},
		{"group called array", group("a", optional, list, group("array", repeated, -1, leaf("x", optional))),
			want{path: "a.array.x", name: "a.x", def: 3, rep: 1, repDef: 2, nullable: true, isList: true, nullValues: true,
				nullRow: true}},
		{"group called tuple", group("a", optional, list, group("a_tuple", repeated, -1, leaf("x", optional))),
			want{path: "a.a_tuple.x", name: "a.x", def: 3, rep: 1, repDef: 2, nullable: true, isList: true, nullValues: true,
				nullRow: true}},
		{"repeated group", group("a", repeated, -1, leaf("x", required)),
			want{path: "a.x", name: "a.x", def: 1, rep: 1, repDef: 1, isList: true}},
		{"no text", leaf("a\xff", optional), want{path: "a\xff",
			refused: `name "a\xff", which is not UTF-8, is not supported`}},
		{"no text within a list", group("a", required, list, group("l\xff", repeated, -1, leaf("element", required))),
			want{path: "a.l\xff.element", name: "a", def: 1, rep: 1, repDef: 1, isList: true}},
		{"map", group("a", optional, mapped, group("key_value", repeated, -1, leaf("key", required))),
			want{path: "a.key_value.key", name: "a.key_value.key", def: 2, rep: 1, repDef: 2, nullable: true, isList: true,
				nullRow: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			leaves, _, err := schemaLeaves(group("root", required, -1, c.root).elements())
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
			require.Equal(t, c.want, want{l.Path, l.Name, l.MaxDef, l.MaxRep, l.RepDef, "", l.Nullable(), l.List,
				ct.NullableValues(), ct.NullableRows()})
		})
	}
}

func TestSchemaFaults(t *testing.T) {
	root := schemaElement{name: "root", children: 1}
	leaf := schemaElement{name: "a", repetition: required, hasType: true, physical: Int32}
	change := func(e schemaElement, f func(e *schemaElement)) schemaElement { f(&e); return e }
	deep := []schemaElement{root}
	for range maxSchemaDepth + 3 {
		deep = append(deep, schemaElement{name: "g", repetition: required, children: 1})
	}
	cases := map[string][]schemaElement{
		"empty":               nil,
		"root is a leaf":      {leaf},
		"ends inside a group": {root},
		"more elements":       {root, leaf, leaf},
		"negative children":   {root, change(leaf, func(e *schemaElement) { e.children = -1 })},
		"repetition 3":        {root, change(leaf, func(e *schemaElement) { e.repetition = 3 })},
		"negative fixed length": {root, change(leaf,
			func(e *schemaElement) { e.physical, e.typeLength = FixedLenByteArray, -1 })},
		"children beyond memory": {change(root, func(e *schemaElement) { e.children = 1<<31 - 1 }), leaf},
		"ends deep inside":       deep,
		"negative deep inside":   append(slices.Clone(deep), change(leaf, func(e *schemaElement) { e.children = -1 })),
	}
	for name, elements := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := schemaLeaves(elements)
			require.ErrorIs(t, err, ErrCorrupt)
		})
	}
	// A long name that many leaves share is counted for each.
	long := change(root, func(e *schemaElement) {
		e.name = string(make([]byte, 1<<20))
		e.repetition = required
		e.children = 100
	})
	many := []schemaElement{root, long}
	for i := range 100 {
		many = append(many, change(leaf, func(e *schemaElement) { e.name = fmt.Sprint(i) }))
	}
	_, _, err := schemaLeaves(many)
	require.ErrorIs(t, err, ErrUnsupported)
	// An unknown type refuses its column and no other.
	for _, physical := range []Type{8, unknownValue} {
		leaves, _, err := schemaLeaves([]schemaElement{change(root, func(e *schemaElement) { e.children = 2 }),
			change(leaf, func(e *schemaElement) { e.physical = physical }), leaf})
		require.NoError(t, err)
		require.ErrorIs(t, leaves[0].Unsupported, ErrUnsupported)
		require.NoError(t, leaves[1].Unsupported)
	}
}

// TestSchemaDepth nests a column at the limit, one beyond, and as deep as a footer can say: the limit is that column's.
func TestSchemaDepth(t *testing.T) {
	nested := func(repetition int32, depth int) []schemaElement {
		e := []schemaElement{{name: "root", children: 3}, {name: "before", hasType: true, physical: Int32}}
		for range depth - 1 {
			e = append(e, schemaElement{repetition: repetition, children: 1})
		}
		leaf := schemaElement{name: "x", repetition: optional, hasType: true, physical: Int64}
		return append(e, leaf, schemaElement{name: "behind", hasType: true, physical: Float})
	}
	for _, repetition := range []int32{required, optional, repeated} {
		for _, depth := range []int{1, maxSchemaDepth, maxSchemaDepth + 1, 300, 1 << 20} {
			leaves, _, err := schemaLeaves(nested(repetition, depth))
			require.NoError(t, err)
			require.Len(t, leaves, 3)
			require.NoError(t, leaves[0].Unsupported)
			require.NoError(t, leaves[2].Unsupported)
			require.Equal(t, []any{"before", uint8(0), "behind", uint8(0)},
				[]any{leaves[0].Path, leaves[0].MaxDef, leaves[2].Path, leaves[2].MaxDef})
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
	m := []schemaElement{
		{name: "m", annotation: annotatedMap, children: 1}, {name: "entries", repetition: repeated, children: 2},
		{name: "key", hasType: true, physical: Int64}, {name: "value", annotation: annotatedList, children: 1},
		{name: "list", repetition: repeated, children: 1}, {name: "element", hasType: true, physical: Int64},
	}
	deep = slices.Concat(deep[:len(deep)-2], m, deep[len(deep)-1:])
	leaves, maps, err := schemaLeaves(deep)
	require.NoError(t, err)
	require.Len(t, maps, 1)
	require.EqualError(t, maps[0].Unsupported, "map with nesting of more than 63 levels is not supported")
	require.Len(t, leaves, 4)
	require.NoError(t, leaves[3].Unsupported)
}

// TestSchemaOfOtherWriters reads what the specification does not allow and writers leave: a root, or another group,
// with a type, and elements without a repetition type, which are required.
func TestSchemaOfOtherWriters(t *testing.T) {
	leaf := schemaElement{name: "a", hasType: true, physical: Int32}
	group := schemaElement{name: "g", hasType: true, physical: Boolean, children: 1}
	leaves, _, err := schemaLeaves([]schemaElement{{name: "root", hasType: true, physical: Int64, children: 2}, leaf,
		group, leaf})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "g.a"}, []string{leaves[0].Path, leaves[1].Path})
	for _, l := range leaves {
		require.NoError(t, l.Unsupported)
		require.Zero(t, l.MaxDef)
	}
	// As bytes: the field that says the repetition is not there.
	b := []byte{0x15, 4, 0x38, 1, 'a', 0} // field 1: the type, INT64; field 4: the name; end
	r := compactReader{src: b}
	require.Equal(t, schemaElement{name: "a", hasType: true, physical: Int64, repetition: required},
		r.readSchemaElement())
	require.NoError(t, r.err)
}
