//go:build !race

package processortest

// Raced reports whether the race detector is on.
const Raced = false
