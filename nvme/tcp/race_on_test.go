//go:build race

package tcp

// raceEnabled reports whether pools drop buffers on purpose, so that a count of allocations means nothing.
const raceEnabled = true
