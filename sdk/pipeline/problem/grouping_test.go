package problem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
