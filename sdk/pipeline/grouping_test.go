package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
)

// TestErrorsAreGroupedByCause: what is wrong with many columns alike is said once.
func TestErrorsAreGroupedByCause(t *testing.T) {
	var schema []ColumnInfo
	for i := range 26 {
		schema = append(schema, ColumnInfo{Name: fmt.Sprintf("C%d", i+1), Kind: program.Bytes, Nullable: true})
	}
	for i := range 13 {
		schema = append(schema, ColumnInfo{Name: fmt.Sprintf("I%d", i+1), Kind: program.Int64, Nullable: true})
	}
	s, err := Parse([]byte("dense: [{columns: [I1..I13]}]\nsparse: [{columns: [C1..C26], ops: [fill_null: 0]}]"))
	require.NoError(t, err)
	_, err = s.Resolve(schema)
	require.EqualError(t, err, "pipeline: line 2:37: sparse[0].ops[0]: columns C1..C26: wrong type of column: "+
		"fill_null takes numbers, "+
		"and these are strings; begin with "+readsText)
	require.ErrorIs(t, err, ErrColumnType)

	s, err = Parse([]byte("dense: [{columns: [I1..I13]}]"))
	require.NoError(t, err)
	r, err := s.Resolve(schema)
	require.NoError(t, err)
	_, _, err = Lower(r)
	require.EqualError(t, err, "pipeline: line 1:9: dense[0]: columns I1..I13: null can reach the output: the column "+
		"may be null and dense features "+
		"have no place for one; put fill_null first")
}

func TestColumnList(t *testing.T) {
	for want, names := range map[string][]string{
		"a, b":             {"a", "b"},
		"C1, C2":           {"C1", "C2"},
		"C1..C3":           {"C1", "C2", "C3"},
		"C09..C11, C13, x": {"C09", "C10", "C11", "C13", "x"},
		"C1, C3, C5":       {"C1", "C3", "C5"},
		`"", "a b", "é,"`:  {"", "a b", "é,"},
		"a1, b2, c3":       {"a1", "b2", "c3"},
		"9, 10":            {"9", "10"},
		"a, b, c, d, e, f, g, h, i, j, k, l, and 2 more": strings.Split("abcdefghijklmn", ""),
	} {
		assert.Equal(t, want, columnList(names))
	}
}
