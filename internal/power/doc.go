// Package power says how much energy the machine used while something ran: measured where the machine can, and
// modelled otherwise. Every result says which.
//
// # Overview
//
// [Open] finds what measures: the energy counters of the processors (RAPL, in sysfs), the power that GPUs draw
// (nvidia-smi), or a file of readings that another device made of the whole machine, a PDU or a BMC. [Meter.Measure]
// does some work and returns the energy meanwhile. Counters are read each second, so that one that wraps around is
// noticed.
//
// The energy of processors and GPUs is added up. A file is of the whole machine, so that nothing is added to it. Memory
// (the domain dram) is apart from the packages; the domains core and uncore are parts of a package, and psys is the
// board with its packages, so that these count only where there is no package.
//
// With [Options.Idle], Open waits so long and measures what the machine draws meanwhile. That power times the time of a
// run is the run's static energy, and the rest its dynamic energy.
//
// # What is not measured
//
// Drives, fans and power supplies, unless a file of readings has them; other programs on the machine are in every
// measurement. A virtual machine has no counters as a rule.
//
// # Concurrency
//
// A Meter measures one thing at a time. Measure has a goroutine meanwhile, for which it waits.
//
// # Errors
//
// [Open] returns [ErrReadings] for a file of readings that does not parse. Counters, GPUs and readings that fail later
// are no errors, since the work that was measured is done: they are left out, and the result's notes say why and what
// to do.
package power
