// Package cosim runs the units of package rtl as they are described in SystemVerilog, simulated cycle by cycle.
//
// # Overview
//
// [Tools.Build] has Verilator make a program of a unit, with simulation/server.cpp around it, and keeps the program
// under the digest of all that it was made of; [Tools.Find] finds such a program. [Start] starts the program; a
// [Simulator] writes registers and streams transfers through the unit, with random waits at its input and its output if
// seeds are given, and returns the results with the cycles that they took.
//
// The tests compare every unit with the drive's kernel and with the reference. They record a short run of each unit in
// testdata; where there is no Verilator, the kernels are compared with the records, and a record of sources other than
// those at hand fails the test. MILLRACE_RTL_SIM=require makes a missing Verilator a failure.
//
// # Frames
//
// A transfer takes as many words of 64 bits as its fields need. The program writes MRTL2 and the 64 digits of the
// sources' digest. Then it reads frames, numbers little endian:
//
//	'W' address u16, data u64                           writes a register
//	'R'                                                 resets the unit
//	'D' count u32, input seed u32, output seed u32,     streams transfers; seed 0 never waits
//	    the words of count transfers
//
// and answers a 'D' with the cycles, u64, the number of results, u64, and the words of the results. Cycles of 0 say
// that the unit stood still, or made results without end.
//
// # Concurrency
//
// A Simulator belongs to one goroutine.
//
// # Errors
//
// [ErrTools] says that the machine has no Verilator, no g++ or no make, and [ErrNotBuilt] that a simulator is not there
// yet. Other errors name the unit, and have the compiler's last lines where it failed.
package cosim
