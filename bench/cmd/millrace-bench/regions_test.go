package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/regions"
)

func TestBenchRegions(t *testing.T) {
	args := []string{
		"bench", "regions", "--progress", "none", "--time", "1ms", "--rows", "1000", "--turns", "1", "--switches", "2",
		"--regions", "2", "--models", "rm1", "--drive", "mem:?slm=128MiB",
	}
	var r regions.Result
	require.NoError(t, json.Unmarshal([]byte(must(t, append(args, "--output", "json")...)), &r))
	assert.Equal(t, 2, r.Switch.Switches)
	assert.Len(t, r.Throughput, 2)
	out := must(t, append(args, "--host-io-share", "99")...)
	for _, part := range []string{"of it, activation", "rows/s beside switches", "rm1 rm1", "99%", "none", "note: "} {
		assert.Contains(t, out, part)
	}
	for _, c := range []struct{ flag, value, says string }{
		{"--drive", "moon:", "moon"},
		{"--regions", "1", "1 regions"},
		{"--regions", "0", "--regions"},
		{"--models", "rm9", "rm9"},
		{"--time", "0s", "--time"},
		{"--turns", "0", "--turns"},
		{"--switches", "-1", "--switches"},
		{"--host-io-share", "0", "--host-io-share"},
		{"--host-io-share", "100", "100 %"},
	} {
		refuses(t, c.says, "regions", c.flag, c.value)
	}
}
