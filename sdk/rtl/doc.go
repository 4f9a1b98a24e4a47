// Package rtl runs feature pipelines on the units of fpga/rtl, simulated cycle by cycle, behind the same
// processor.Processor as a drive.
//
// # Overview
//
// A [Simulation] makes processors for the programs of jobs ([Simulation.NewProcessor]) and says afterwards which units
// computed, in how many cycles, and what this machine's processor did beside them ([Simulation.Report]). The
// mini-batches are those of every other engine, to the last bit. Package lane does the work, slowly: every cycle of
// every unit is simulated.
//
// # Concurrency
//
// Processors are safe for concurrent use. One unit runs at a time.
//
// # Errors
//
// NewProcessor refuses a program with a step that no unit computes, with an error that wraps rtl.ErrNotInRTL and names
// the step. A stream fails with a *partition.DataError, or with an error that wraps rtl.ErrNotInRTL where a page has an
// encoding that no unit decodes.
//
// # Debugging
//
// When a mini-batch is in doubt, tensor.Diff it with the reference's (package cpu).
package rtl
