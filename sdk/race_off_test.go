//go:build !race

package sdk_test

// raced reports whether the race detector is on.
const raced = false
