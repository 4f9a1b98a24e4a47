//go:build race

package decoder

// underRace tells that the race detector is on, under which pools forget on purpose.
const underRace = true
