package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/power"
)

// TestEnergyInReports: bench rm says what energy it used, and from what.
func TestEnergyInReports(t *testing.T) {
	type result struct {
		Rows   int64         `json:"rows"`
		Energy *power.Energy `json:"energy"`
	}
	args := []string{"bench", "rm", "--models", "rm1,criteo-5k", "--rows", "1024", "--time", "1ms"}
	for _, r := range decode[[]result](t, must(t, append(args, "--output", "json")...)) {
		require.NotNil(t, r.Energy)
		require.NotEmpty(t, r.Energy.Domains)
		assert.InEpsilon(t, r.Energy.Joules*1e6/float64(r.Rows), r.Energy.PerMillionRows, 1e-9)
	}
	assert.Contains(t, must(t, append(args, "--power-idle", "1ms")...), "energy of ")

	modelled := decode[[]result](t, must(t, "bench", "rm", "--models", "rm1", "--rows", "1024", "--time", "1ms",
		"--engine", "drive", "--timing", "u280", "--dilate", "10000", "--output", "json"))[0]
	assert.Equal(t, power.Modelled, modelled.Energy.Kind)
	assert.Contains(t, modelled.Energy.Domains[0].Source, "225 W (PreSto VI-C: TDP)")
}
