//go:build !race

package sdk_test

// raced tells that the race detector is on.
const raced = false
