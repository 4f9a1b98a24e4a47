package image

import "github.com/google/uuid"

// Spec says what an image holds. It is data; nothing happens until it is built.
type Spec struct {
	Platform  string    // the board family, at most 64 bytes, e.g. "millrace-csd"
	Interface uuid.UUID // the shell's interface that the image needs; a drive refuses any other
	Time      uint64    // SOURCE_DATE_EPOCH: seconds since 1970; 0 is fine

	Units       []Unit
	Compute     []ComputeUnit
	Memories    []Memory
	Connections []Connection
	Clocks      []Clock
	Partition   Partition
	Kernels     []Kernel
	Resources   Resources
	SelfTest    []Vector
	Modules     []Module    // ascending by name; an image with modules has the unit wasm
	Parameters  *Parameters // nil: the image states none
	Build       BuildInfo
	User        []byte
}

// Unit is one hardware function of the image. A backend maps it to a kernel, to the RTL under simulation or to a
// real partial bitstream.
type Unit struct {
	Number  uint16 `json:"number"`  // program.Unit
	Name    string `json:"name"`    // the operator's name, e.g. "sigrid_hash"
	Version uint16 `json:"version"` // version of its definition; a program names it
	Lanes   uint16 `json:"lanes"`   // Format 1.0 has it, see Unsourced; 0 in an image with Parameters.
	Source  string `json:"source"`  // SHA-256 of the RTL source in hexadecimal; empty: no RTL yet
}

// ComputeUnit is an instance of a unit in the region.
type ComputeUnit struct {
	Name    string `json:"name"`
	Unit    uint16 `json:"unit"`
	Base    uint64 `json:"base"` // The registers begin there.
	Size    uint64 `json:"size"`
	Control string `json:"control"` // "hs", "chain" or "none"
	IRQ     int16  `json:"irq"`     // -1: none
}

// Memory is a memory that kernels can address.
type Memory struct {
	Name string `json:"name"`
	Type string `json:"type"` // "ddr4", "uram"
	Base uint64 `json:"base"`
	Size uint64 `json:"size"`
}

// Connection ties an argument of a compute unit to a memory.
type Connection struct {
	Compute string `json:"compute"`
	Arg     uint16 `json:"arg"`
	Memory  string `json:"memory"`
}

// Clock is a frequency of format 1.0. It names no source, and nothing reads it; see [Spec.Unsourced]. Granted above
// Screened is refused. An image with Parameters has no Clocks.
type Clock struct {
	Name      string `json:"name"`
	Requested uint32 `json:"requested_khz"`
	Granted   uint32 `json:"granted_khz"`
	Screened  uint32 `json:"screened_khz"`
}

// Partition is the region of the device that the image fills.
type Partition struct {
	Slots    uint16      `json:"slots"` // processing elements
	LUTs     uint32      `json:"luts"`
	FFs      uint32      `json:"ffs"`
	BRAM36   uint32      `json:"bram36"`
	URAM     uint32      `json:"uram"`
	DSPs     uint32      `json:"dsps"`
	Children []uuid.UUID `json:"children"` // interfaces that it exports
}

// Kernel describes to a host the inputs of a unit, and its cost.
type Kernel struct {
	Unit    uint16   `json:"unit"`
	Name    string   `json:"name"`
	Args    []string `json:"args"`
	In      []string `json:"in"` // kinds of value it takes
	Out     string   `json:"out"`
	II      uint16   `json:"initiation_interval"` // Format 1.0 has it, see Unsourced; 0 in an image with Parameters.
	Latency uint16   `json:"latency_cycles"`      // Format 1.0 has it, see Unsourced; 0 in an image with Parameters.
}

// Resources are what synthesis reported.
type Resources struct {
	Tool    string         `json:"tool"`
	Version string         `json:"version"`
	Units   []ResourceLine `json:"units"`
}

// ResourceLine is one unit's share.
type ResourceLine struct {
	Unit   uint16 `json:"unit"`
	LUTs   uint32 `json:"luts"`
	FFs    uint32 `json:"ffs"`
	BRAM36 uint32 `json:"bram36"`
	URAM   uint32 `json:"uram"`
	DSPs   uint32 `json:"dsps"`
}

// Vector is a known answer: with these bytes in the memory ranges and these arguments, the engine must answer State
// and leave these bytes in the output range. To the container the bytes are opaque.
type Vector struct {
	Name    string `json:"name"`
	Units   []int  `json:"units"` // numbers of the units it proves
	Program []byte `json:"program"`
	Input   []byte `json:"input"`
	Tables  []byte `json:"tables,omitempty"` // the tables range, for programs with lookup tables
	Args    []byte `json:"args"`
	Scratch uint32 `json:"scratch_bytes"`
	Dict    uint32 `json:"dict_bytes"`
	State   uint64 `json:"state"`
	Output  []byte `json:"output"`
}

// MaxVectorMemory bounds what a vector may ask for of each of scratch and dictionary memory.
const MaxVectorMemory = 1 << 20

// BuildInfo says where an image came from.
type BuildInfo struct {
	Tool         string `json:"tool"`
	Revision     string `json:"revision"`
	Reproducible bool   `json:"reproducible"`
}
