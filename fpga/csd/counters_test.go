package csd

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/engine/profile"
	"github.com/millrace/millrace/nvme/cs"
)

func TestUnitTimesAddUp(t *testing.T) {
	var k cs.UnitCounter
	for _, u := range []profile.UnitTime{
		{},
		{Runs: 2, Values: 20, Total: 30, Shortest: 10, Longest: 20},
		{},
		{Runs: 1, Values: 3, Total: 5, Shortest: 5, Longest: 5},
		{Runs: 1, Values: 4, Total: 40, Shortest: 40, Longest: 40},
	} {
		addUnitTime(&k, &u)
	}
	assert.Equal(t, cs.UnitCounter{Rows: 27, Timing: cs.Timing{Runs: 4, Total: 75, Shortest: 5, Longest: 40}}, k)
	assert.Equal(t, uint64(18), k.Average())
}
