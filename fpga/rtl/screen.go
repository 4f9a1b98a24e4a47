package rtl

// ScreenedClockKHz is the clock that the longest paths of units are held against by the path screen: that of PreSto's
// units (Table II). A test holds them to it. No tool has placed a unit, and no board has run one.
const ScreenedClockKHz = 223_000

// Delays are what the path screen charges for a path between two registers before placement, at speed grade -1 of
// UltraScale+, in picoseconds.
type Delays struct {
	// LUT is the budget for a lookup table with the net behind it, which AMD's report_failfast has. The register that a
	// path begins at is charged as much, and so is the net behind a carry chain, a DSP slice or a memory.
	LUT int `json:"lut_and_net_ps"`
	// CarryEnter and CarryPass are the ways from S to CO and from CI to CO of a CARRY8, with the net to the next one, in
	// a report of Vivado 2021.2 for an XCZU3EG-1 before placement. Each CARRY4 of Yosys is charged as a CARRY8.
	CarryEnter int `json:"carry_enter_ps"`
	CarryPass  int `json:"carry_pass_ps"`
	// DSP is the way from B to P of a DSP48E2 none of whose registers is used, the sum of its parts in the same report.
	DSP int `json:"dsp_ps"`
	// RAM is the time from the clock to the output of a block RAM without output register, of which AMD's UG949 says
	// that it is around 1.5 ns. UltraRAM is assumed to have the same.
	RAM int `json:"ram_clock_to_output_ps"`
	// RAMInput is what UG949 wants to be left of the period, before placement, on paths to such blocks.
	RAMInput int `json:"ram_input_ps"`
	// Mux is a MUXF7 with the net before it in another such report; a MUXF8 is charged as much. LUTMemory is assumed for
	// the time from the clock to the output of a LUT that is a memory or a shift register.
	Mux       int `json:"mux_ps"`
	LUTMemory int `json:"lut_memory_clock_to_output_ps"`
}

// screenDelays are the delays of the screen in synthesis.json.
var screenDelays = Delays{LUT: 350, CarryEnter: 245, CarryPass: 37, DSP: 1923, RAM: 1500, RAMInput: 500, Mux: 112,
	LUTMemory: 350}

// Path is the longest path of a unit between two registers by the path screen. The unit's ports count as registers.
type Path struct {
	Picoseconds int    `json:"picoseconds"`
	LUTs        int    `json:"luts"` // on the path, MUXF among them
	Carries     int    `json:"carry4"`
	DSPs        int    `json:"dsp"`
	Begin       string `json:"begin"` // the net of the register where the path begins
	BeginKind   string `json:"begin_kind"`
	End         string `json:"end"` // the net that the path's last register takes
	EndKind     string `json:"end_kind"`
}

// LimitKHz returns the highest clock whose period holds the path.
func (p Path) LimitKHz() uint32 {
	const picosecondsOfKHz = 1_000_000_000 // in a period of 1 kHz
	if p.Picoseconds <= 0 {
		return 0
	}
	return uint32(picosecondsOfKHz / p.Picoseconds)
}
