package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/wire"
)

func TestBenchWire(t *testing.T) {
	args := []string{
		"bench", "wire", "--progress", "none", "--time", "4ms", "--depths", "1,4", "--connections", "1", "--digests",
		"on", "--size", "2MiB",
	}
	var results []wire.Result
	require.NoError(t, json.Unmarshal([]byte(must(t, append(args, "--output", "json")...)), &results))
	require.Len(t, results, 6)
	for _, r := range results {
		assert.True(t, r.Digests)
		assert.Positive(t, r.IOPS)
		assert.Positive(t, r.Ratio)
	}
	out := must(t, append(args, "--operations", "random_read", "--no-flow-control")...)
	assert.Contains(t, out, "random_read")
	assert.NotContains(t, out, "sequential")
}

func TestBenchWireRefusesWhatItCannotMeasure(t *testing.T) {
	for _, c := range []struct{ flag, value, says string }{
		{"--operations", "trim", "random_read"},
		{"--depths", "0", "depth 0"},
		{"--connections", "17", "17 connections"},
		{"--digests", "maybe", "on or off"},
		{"--time", "0s", "--time"},
		{"--size", "much", "write a number and B"},
		{"--size", "1000B", "multiple"},
	} {
		refuses(t, c.says, "wire", c.flag, c.value)
	}
}
