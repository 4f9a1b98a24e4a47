package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A plan shows all three CPU baselines with their sources, says what it leaves out, and repeats no ratio of a paper.
func TestPlanShowsThreeBaselinesAndWhatIsNotCounted(t *testing.T) {
	out := must(t, "plan", "--model", "rm5", "--t", "3.0e6", "--size", "500TB")
	assert.Equal(t, out, must(t, "plan", "--model", "rm5", "--t", "3M", "--size", "0.5PB"),
		"numbers as people type them")
	for _, want := range []string{
		"PreSto's TorchArrow cores, published", "TorchArrow's loops, measured here", "our kernels, measured here",
		"measured on ", "not counted:", "the network between storage and trainers", "the storage hosts",
		"are one constraint here",
	} {
		assert.Contains(t, out, want)
	}
	for _, ratio := range []string{"11.3x", "4.3x", "15.1x", "energy efficiency"} {
		assert.NotContains(t, out, ratio)
	}
	assert.Contains(t, must(t, "plan", "--model", "rm3", "--t", "1e6"), "has not measured rm3")
}
