package rowvalue_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// TestNullRules shows each rule a null, lists with a null, and a null list.
func TestNullRules(t *testing.T) {
	add := rowvalue.OfValues(func(x int64) (any, error) { return x + 1, nil })
	isNull := func(v any) (any, error) { return v == nil, nil }
	elements := rowvalue.OfElements(program.ValueType{List: true}, isNull)
	reverse := rowvalue.OfLists(func(list []any) (any, error) { return []any{list[1], list[0]}, nil })
	for name, c := range map[string]struct {
		reference rowvalue.Reference
		in, want  any
	}{
		"values: a scalar":                {add, int64(1), int64(2)},
		"values: a null":                  {add, nil, nil},
		"values: a list":                  {add, []any{int64(1), int64(5)}, []any{int64(2), int64(6)}},
		"values: an empty list":           {add, []any{}, []any{}},
		"values: a list with a null":      {add, []any{int64(1), nil}, nil},
		"elements: a null":                {rowvalue.OfElements(program.ValueType{}, isNull), nil, true},
		"elements: a list with a null":    {elements, []any{nil, 1}, []any{true, false}},
		"elements: a null list":           {elements, nil, nil},
		"lists: a list":                   {reverse, []any{1, 2}, []any{2, 1}},
		"lists: a list that holds a null": {reverse, []any{1, nil}, nil},
		"lists: a null list":              {reverse, nil, nil},
	} {
		got, err := c.reference([]any{c.in})
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
	for _, r := range []rowvalue.Reference{add, reverse} {
		_, err := r([]any{float32(1)})
		require.ErrorContains(t, err, "float32, which the operator does not take")
		require.NotErrorIs(t, err, rowvalue.ErrData)
	}
	_, err := add([]any{[]any{int64(1), "text"}})
	require.ErrorContains(t, err, "element 1: ")
}

// TestEnvironmentKeepsResults isNulls what the references of one environment compute.
func TestEnvironmentKeepsResults(t *testing.T) {
	env := rowvalue.NewEnvironment(&program.Program{})
	calls := 0
	for range 2 { // two references of equal operators
		r := env.OfFloats(log.Op{Add: 1}, func(x float32) float32 {
			calls++
			return -x
		})
		got, err := r([]any{[]any{float32(1), float32(2), float32(1)}})
		require.NoError(t, err)
		require.Equal(t, []any{float32(-1), float32(-2), float32(-1)}, got)
	}
	assert.Equal(t, 2, calls)
	other := env.OfFloats(log.Op{Add: 2}, func(x float32) float32 { return x })
	got, err := other([]any{float32(1)})
	require.NoError(t, err)
	assert.Equal(t, float32(1), got, "another operator has results of its own")

	failed := errors.New("the load fails")
	_, err = rowvalue.Shared(env, "key", func() (int, error) { return 0, failed })
	require.ErrorIs(t, err, failed)
	for _, loaded := range []int{7, 8} {
		v, err := rowvalue.Shared(env, "key", func() (int, error) { return loaded, nil })
		require.NoError(t, err)
		assert.Equal(t, 7, v, "the first load that succeeds is kept")
	}
}
