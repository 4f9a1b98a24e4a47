//go:build race

package offload

// simulatedCases is how many cases the test of the policies draws. The race detector slows the simulator about ten
// times.
const simulatedCases = 16
