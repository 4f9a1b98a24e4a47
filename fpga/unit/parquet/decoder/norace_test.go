//go:build !race

package decoder

// underRace reports whether the race detector is on, under which pools forget on purpose.
const underRace = false
