//go:build !race

package offload

// simulatedCases is how many cases the test of the policies draws.
const simulatedCases = 60
