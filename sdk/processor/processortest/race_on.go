//go:build race

package processortest

// Raced reports whether the race detector is on. The detector makes everything some ten times slower, and finds its
// races in a few cases as well as in many.
const Raced = true
