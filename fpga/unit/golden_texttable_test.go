package unit_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/maptext"
)

// textTable looks texts up in a table. Without a default, a text that the table lacks becomes null.
func textTable(t *testing.T, c goldenCase) {
	var v struct {
		Table   map[string]whole
		Default *whole
		Input   []string
		Output  []*whole
	}
	c.into(t, &v)
	keys := slices.Sorted(maps.Keys(v.Table))
	values := make([]int64, len(keys))
	for i, key := range keys {
		values[i] = int64(v.Table[key])
	}
	rule, other := maptext.Null, int64(0)
	if v.Default != nil {
		rule, other = maptext.Default, int64(*v.Default)
	}
	index, err := maptext.New(keys)
	require.NoError(t, err)
	offsets, data, valid := []uint32{0}, []byte{}, []byte{}
	for _, text := range v.Input {
		data, valid = append(data, text...), append(valid, 1)
		offsets = append(offsets, uint32(len(data)))
	}
	got := make([]int64, len(v.Input))
	require.NoError(t, index.Map(got, offsets, data, valid, values, rule, other))
	for i, want := range v.Output {
		require.Equal(t, want != nil, valid[i] != 0, "%q", v.Input[i])
		if want != nil {
			require.Equal(t, int64(*want), got[i], "%q", v.Input[i])
		}
		value, found := maptext.Reference([]byte(v.Input[i]), keys, values)
		require.Equal(t, want != nil && (v.Default == nil || *want != *v.Default), found, "reference, %q", v.Input[i])
		if found {
			require.Equal(t, int64(*want), value, "reference, %q", v.Input[i])
		}
	}
}
