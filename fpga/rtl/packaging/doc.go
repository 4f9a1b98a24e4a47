// Package packaging makes of a unit of package rtl what AMD's Vitis takes as a kernel: the unit with registers by
// AXI4-Lite and with transfers and results in memory, its description for XRT, and the scripts that package and link
// it.
//
// # Overview
//
// [Of] describes the kernel of a unit: its ports, and where a host finds the registers of a run and those of the unit.
// [Kernel.Files] returns all files of the kernel: the unit's sources, those of the shell around it, the top module,
// kernel.xml, a script for Vivado that packages the kernel, one that links it, and a configuration of the link for each
// of [Boards]. [Write] writes them into a folder, for the command `millrace image package`. The files follow from the
// unit's description and from this package alone, so that a new unit of package rtl has a kernel without a change here.
//
// A beat of memory holds one transfer of a unit, in the words of 64 bits that package rtl makes of it, and zeros behind
// them up to a power of two. So functions as rtl.SectionTransfers make what a host writes into a buffer, and those as
// rtl.WideValues read what it finds in another.
//
// # What is shown, and what is not
//
// The tests of package cosim simulate the kernel of every unit, with memories that wait, and compare the results with
// the unit's. The tests of package rtl prove by induction that the shell keeps the rules of AXI4; docs/rtl.md has what
// is shown and what is assumed. No tool of AMD's has read any file of this package, and no board has run a kernel:
// docs/rtl.md says what a person with a board would do.
//
// # Errors
//
// [Of] returns an error for a unit with two registers of one name; the message names them.
package packaging
