// Package rtl holds units of the drive in SystemVerilog, and says of each unit what it takes, how long it takes, and
// how the host sets its registers.
//
// # Overview
//
// units/NAME.json describes a unit: its sources, registers, tables, latency and initiation interval. [Units] returns
// these descriptions. The register packages in generated/ are made of them (MILLRACE_UPDATE=1 go test ./fpga/rtl), and
// the co-simulation holds latency and initiation interval against the simulated unit, so that no figure is typed twice.
//
// A unit is a pipeline of fixed latency between two streams with valid and ready. What goes at once is a transfer; the
// description lists its fields, the first in the lowest bits. The registers are written before a column and stay as
// they are until the column's last value has left. The functions [SigridHash], [PositiveModulus], [ClampInt64],
// [ClampFloat32], [FillNull], [Bucketize], [HexToInt], [IntToFloat] and [Log] turn the parameters of an operator into
// writes of registers; where the hardware does not have what an operator asks for, the error is a *[NotInRTLError], and
// matches [ErrNotInRTL]. [HexToken] makes a transfer of a token.
//
// The units of [HybridDecoder] and [PlainDecoder] take sections instead of values: [SectionTransfers] makes transfers
// of a section's bytes, and [HybridValues] and [WideValues] read the units' results. [DictionaryGather] takes the
// results of [HybridDecoder] as they are, or [IndexTransfers], and makes results as [PlainDecoder] does. [ListLengths]
// has [LevelTransfers] and [ListRows], [TextDecoder] has [TextTransfers] and [TextCells], of which [TextRows] makes
// rows, and [RowPacker] has [ColumnTransfers] and [PackedRow]. The unit of [Lane] chains units on chip: it takes a
// section as the decoders do, and [LaneValue] reads what a chain of operators made of a row. The input and the output
// mark the last transfer of a section. Unit vocabulary is simulated by the tests of fpga/rtl/cosim alone.
//
// # Rules of the sources
//
// The sources keep to what Yosys 0.23 and Verilator 5.006 both accept: flat vectors, no array ports, no functions in
// packages, no wildcard imports. A cast to fewer bits is assigned to a vector of its own and is never an operand: Yosys
// keeps the wide one. Names are those of the lowRISC style guide; resets are synchronous, and only control state has
// one. Verilator finds nothing to warn of with -Wall.
//
// # What is shown, and what is not
//
// Package cosim compares every unit with the kernel that the drive runs, package lane takes programs through simulated
// units, and package packaging makes kernels of boards of them. docs/rtl.md says how to run them. [ReadSynthesis] has
// the resources of every unit before placement, and its longest path by the path screen of [Delays]. No board has run
// these sources, and no tool here places or routes them: [Path.LimitKHz] limits the clocks that may be requested, and
// is not a clock that anything reached.
package rtl
