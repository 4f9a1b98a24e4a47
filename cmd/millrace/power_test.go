package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/internal/power"
)

// TestEnergyInReports: train says what energy it used, and from what.
func TestEnergyInReports(t *testing.T) {
	data := generate(t, "--rows", "512")
	old := file(t, "old.csv", "1,5\n2,5\n")
	r := decode[timedReport](t, must(t, "train", "--pipeline", "rm1", "--in", data, "--measure", "1ms",
		"--power-file", old, "--output", "json", "--progress", "none"))
	assert.Equal(t, power.Modelled, r.Energy.Kind)
	assert.Contains(t, r.Energy.Notes[0], "read until the run has ended")
	for says, c := range map[string]struct {
		code int
		args []string
	}{
		"want lines of time,watts": {exitUsage, []string{"--power-file", file(t, "bad.csv", "much\n")}},
		"none.csv":                 {exitFailed, []string{"--power-file", "none.csv"}},
		"want 0 or more":           {exitUsage, []string{"--power-idle", "-1s"}},
	} {
		code, _, stderr := millrace(t, append([]string{"train", "--pipeline", "rm1", "--in", data}, c.args...)...)
		assert.Equal(t, c.code, code, says)
		errorLine(t, stderr, says)
	}
}
