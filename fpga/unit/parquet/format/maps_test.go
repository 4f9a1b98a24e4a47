package format

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMapShapes(t *testing.T) {
	leaf := func(name string, repetition int32) testNode {
		return testNode{name: name, repetition: repetition, note: -1, physical: Int64}
	}
	group := func(name string, repetition int32, note int32, children ...testNode) testNode {
		return testNode{name: name, repetition: repetition, note: note, children: children}
	}
	const list, mapped, entries = 3, 1, 2
	typed := func(n testNode, physical Type) testNode { n.physical = physical; return n }
	id := func(name string, repetition int32) testNode { return typed(leaf(name, repetition), Int64) }
	score := func(name string, repetition int32) testNode { return typed(leaf(name, repetition), Float) }
	mapOf := func(key, value testNode) testNode {
		return group("m", optional, mapped, group("key_value", repeated, -1, key, value))
	}
	ids := func(element testNode) testNode {
		return group("value", optional, list, group("list", repeated, -1, element))
	}
	scored := func(id, score testNode) testNode {
		return group("value", optional, mapped, group("key_value", repeated, -1, id, score))
	}
	type part struct {
		path                  string
		part                  Part
		def, rep, repDef, ent uint8
	}
	for name, c := range map[string]struct {
		root    testNode
		parts   []part
		list    bool
		refused string
	}{
		"numbers": {root: mapOf(id("key", required), score("value", optional)), parts: []part{
			{"m.key_value.key", MapKeys, 2, 1, 2, 0}, {"m.key_value.value", MapValues, 3, 1, 2, 0}}},
		"optional keys": {root: mapOf(id("key", optional), score("value", required)), parts: []part{
			{"m.key_value.key", MapKeys, 3, 1, 2, 0}, {"m.key_value.value", MapValues, 2, 1, 2, 0}}},
		"older names, and MAP_KEY_VALUE on the entries": {
			root: group("m", required, entries, group("map", repeated, entries, id("k", required),
				score("v", required))), parts: []part{
				{"m.map.k", MapKeys, 1, 1, 1, 0}, {"m.map.v", MapValues, 1, 1, 1, 0}}},
		"lists": {root: mapOf(id("key", required), ids(id("element", optional))), list: true, parts: []part{
			{"m.key_value.key", MapKeys, 2, 1, 2, 0}, {"m.key_value.value.list.element", MapValues, 5, 2, 4, 2}}},
		"lists of two levels": {root: mapOf(id("key", required), group("value", optional, list, id("array", repeated))),
			list: true, parts: []part{
				{"m.key_value.key", MapKeys, 2, 1, 2, 0}, {"m.key_value.value.array", MapValues, 4, 2, 4, 2}}},
		"a repeated value": {root: mapOf(id("key", required), id("value", repeated)), list: true, parts: []part{
			{"m.key_value.key", MapKeys, 2, 1, 2, 0}, {"m.key_value.value", MapValues, 3, 2, 3, 2}}},
		"scored lists": {root: mapOf(id("key", required), scored(id("key", required), score("value", optional))),
			list: true, parts: []part{
				{"m.key_value.key", MapKeys, 2, 1, 2, 0},
				{"m.key_value.value.key_value.key", MapValues, 4, 2, 4, 2},
				{"m.key_value.value.key_value.value", MapScores, 5, 2, 4, 2}}},
		"a map in a group": {root: group("g", optional, -1, mapOf(id("key", required), score("value", optional))),
			parts: []part{
				{"g.m.key_value.key", MapKeys, 3, 1, 3, 0}, {"g.m.key_value.value", MapValues, 4, 1, 3, 0}}},

		"keys that are text": {root: mapOf(typed(leaf("key", required), ByteArray), score("value", optional)),
			parts: []part{{"m.key_value.key", MapKeys, 2, 1, 2, 0}, {"m.key_value.value", MapValues, 3, 1, 2, 0}}},
		"keys that are real numbers": {root: mapOf(typed(leaf("key", required), Double), score("value", optional)),
			refused: "keys are DOUBLE, want INT32, INT64 or BYTE_ARRAY"},
		"keys that are groups": {root: mapOf(group("key", required, -1, leaf("x", required)),
			score("value", optional)), refused: "keys are no numbers"},
		"keys called no text": {root: mapOf(id("key\xb2", required), score("value", optional)),
			refused: "not UTF-8"},
		"scores called no text": {root: mapOf(id("key", required),
			scored(id("key", required), score("val\xffe", optional))), refused: "not UTF-8"},
		"called no text": {root: group("m\xff", optional, mapped,
			group("key_value", repeated, -1, id("key", required), score("value", optional))), refused: "not UTF-8"},
		"values that are text": {root: mapOf(id("key", required), typed(leaf("value", optional), ByteArray)),
			parts: []part{{"m.key_value.key", MapKeys, 2, 1, 2, 0}, {"m.key_value.value", MapValues, 3, 1, 2, 0}}},
		"values of 12 bytes": {root: mapOf(id("key", required), typed(leaf("value", optional), Int96)),
			parts: []part{{"m.key_value.key", MapKeys, 2, 1, 2, 0}, {"m.key_value.value", MapValues, 3, 1, 2, 0}}},
		"values of no bytes": {root: mapOf(id("key", required), typed(leaf("value", optional), FixedLenByteArray)),
			refused: "values are FIXED_LEN_BYTE_ARRAY(0)"},
		"values of an unknown type": {root: mapOf(id("key", required), typed(leaf("value", optional), 99)),
			refused: "values are "},
		"lists of text": {root: mapOf(id("key", required), ids(typed(leaf("element", optional), ByteArray))), list: true,
			parts: []part{{"m.key_value.key", MapKeys, 2, 1, 2, 0},
				{"m.key_value.value.list.element", MapValues, 5, 2, 4, 2}}},
		"scored lists of text": {root: mapOf(id("key", required),
			scored(typed(leaf("key", required), ByteArray), score("value", optional))), list: true, parts: []part{
			{"m.key_value.key", MapKeys, 2, 1, 2, 0},
			{"m.key_value.value.key_value.key", MapValues, 4, 2, 4, 2},
			{"m.key_value.value.key_value.value", MapScores, 5, 2, 4, 2}}},
		"scores that are text": {root: mapOf(id("key", required),
			scored(id("key", required), typed(leaf("value", optional), ByteArray))), refused: "scores are BYTE_ARRAY"},
		"no values": {root: group("m", optional, mapped,
			group("key_value", repeated, -1, id("key", required))), refused: "without entries"},
		"entries that are one": {root: group("m", optional, mapped,
			group("key_value", optional, -1, id("key", required), id("value", required))), refused: "without entries"},
		"groups": {root: mapOf(id("key", required), group("value", optional, -1, leaf("x", optional))),
			refused: "of groups"},
		"lists of lists": {root: mapOf(id("key", required),
			ids(group("element", optional, list, group("list", repeated, -1, leaf("element", optional))))),
			refused: "of lists of lists"},
		"lists of groups": {root: mapOf(id("key", required),
			group("value", optional, list, group("array", repeated, -1, leaf("x", optional)))),
			refused: "of lists of groups"},
		"maps of lists of lists": {root: mapOf(id("key", required),
			scored(id("key", required), ids(leaf("element", optional)))), refused: "of maps of other"},
		"a repeated map": {root: group("m", repeated, mapped,
			group("key_value", repeated, -1, id("key", required), id("value", required)))},
		"a map in a list": {root: group("l", optional, list,
			group("list", repeated, -1, group("element", optional, mapped,
				group("key_value", repeated, -1, id("key", required), id("value", required)))))},
	} {
		t.Run(name, func(t *testing.T) {
			leaves, maps, err := schemaLeaves(group("root", required, -1, c.root).elements())
			require.NoError(t, err)
			if c.parts == nil {
				for _, l := range leaves { // columns of their own, or unread
					require.Equal(t, NoPart, l.Part)
					if l.Unsupported == nil {
						ct := l.ColumnType(Snappy)
						require.NoError(t, ct.Validate())
						continue
					}
					require.ErrorIs(t, l.Unsupported, ErrUnsupported)
				}
				if c.refused != "" {
					require.NotEmpty(t, maps) // a map in the values is refused, too
					require.ErrorIs(t, maps[0].Unsupported, ErrUnsupported)
					require.ErrorContains(t, maps[0].Unsupported, c.refused)
				}
				return
			}
			var parts []part
			for _, l := range leaves {
				require.NoError(t, l.Unsupported)
				require.True(t, l.List)
				require.Equal(t, l.Path, l.Name)
				ct := l.ColumnType(Snappy)
				require.NoError(t, ct.Validate())
				parts = append(parts, part{l.Path, l.Part, l.MaxDef, l.MaxRep, l.RepDef, l.EntryDef})
			}
			require.Equal(t, c.parts, parts)
			want := Map{Name: maps[0].Name, Keys: 0, Values: 1, Scores: -1, List: c.list}
			if len(parts) == 3 {
				want.Scores = 2
			}
			require.Equal(t, []Map{want}, maps)
			require.NotContains(t, want.Name, "key_value")
		})
	}
}
