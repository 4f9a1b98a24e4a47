//go:build race

package sdk_test

// raced tells that the race detector is on. It makes everything some ten times slower, and finds its races in a few cases as
// well as in many.
const raced = true
