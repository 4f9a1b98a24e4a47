package packaging

// Control is a register of a run, which every kernel has.
type Control struct {
	Name   string // in snake_case
	Offset uint32 // in bytes, as a host sees it
	Bits   int    // 32, or 64 in two words, the low one first
	About  string
}

// The registers of a run that a host's buffers and scalars go to; see [Controls].
const (
	inputAddress  = "input_address"
	transferCount = "transfers"
	outputAddress = "output_address"
	resultRoom    = "room"
)

// WindowBase is the offset of the unit's own registers: that with address a has 64 bits at WindowBase + 8 a.
const WindowBase = 0x80000

// WindowSize is the number of bytes that a host maps of a kernel.
const WindowSize = 0x100000

// Controls are the registers of a run. Writes during a run change nothing.
func Controls() []Control {
	return []Control{
		{"control", 0x00, 32, "bit 0: write 1 to begin a run, reads 1 during it; bit 1: a run has ended; bit 2: idle"},
		{inputAddress, 0x10, 64, "of the transfers, a multiple of 4096"},
		{transferCount, 0x18, 32, "how many transfers there are"},
		{outputAddress, 0x20, 64, "of the results, a multiple of 4096"},
		{resultRoom, 0x28, 32, "how many results have room there"},
		{"results", 0x30, 32, "read only: how many results the run made, those without room included"},
		{"status", 0x38, 32,
			"read only; bit 0: results had no room or came late; bit 1: a read failed; bit 2: a write failed"},
		{"cycles", 0x40, 32, "read only: cycles of the run"},
	}
}
