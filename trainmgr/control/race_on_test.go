//go:build race

package control

// raceMemory is how many times as much memory a process takes under the race detector, which keeps shadow memory beside
// what the program takes: 5 to 10 times.
const raceMemory = 8
