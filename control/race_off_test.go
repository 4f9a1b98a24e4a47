//go:build !race

package control

const raceMemory = 1
