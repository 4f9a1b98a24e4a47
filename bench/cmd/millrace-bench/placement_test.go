package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/placement"
)

func TestBenchPlacement(t *testing.T) {
	args := []string{
		"bench", "placement", "--progress", "none", "--time", "1ms", "--rows", "3000", "--batch", "500", "--slm", "64MiB",
	}
	var results []placement.Result
	require.NoError(t, json.Unmarshal([]byte(must(t, append(args, "--output", "json")...)), &results))
	require.Len(t, results, 5)
	for _, r := range results {
		assert.Equal(t, results[0].Digest, r.Digest)
		assert.EqualValues(t, 3000, r.Rows)
	}
	out := must(t, append(args, "--modes", "card,trainer")...)
	assert.Contains(t, out, "card: by a drive without flash, fed by the node")
	assert.Contains(t, out, "the drive is software")
	assert.NotContains(t, out, "in-storage")
	for _, c := range []struct{ flag, value, says string }{
		{"--modes", "moon", "moon"},
		{"--model", "rm9", "rm9"},
		{"--slm", "much", "write a number and B"},
		{"--time", "0s", "--time"},
		{"--partitions", "-1", "partitions"},
	} {
		refuses(t, c.says, "placement", c.flag, c.value)
	}
}
