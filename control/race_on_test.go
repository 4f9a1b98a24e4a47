//go:build race

package control

// raceMemory is the factor by which a process takes more memory under the race detector, which keeps shadow memory
// beside the program's: 5 to 10.
const raceMemory = 8
