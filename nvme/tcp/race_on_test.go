//go:build race

package tcp

// raceEnabled tells that pools forget on purpose, so allocations say nothing.
const raceEnabled = true
