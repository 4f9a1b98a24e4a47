package cs

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/nvme"
)

// ExecuteProgram is the I/O opcode of the Computational Programs command set.
const ExecuteProgram = 0x01

// MemoryRangeSize is the size of a memory range descriptor of the standard set in bytes: {namespace u32, length u32,
// first byte u64, 16 reserved}.
const MemoryRangeSize = 32

// MemoryRange is a memory range descriptor of the standard set.
type MemoryRange struct {
	NSID uint32 // the memory namespace
	Len  uint32
	Addr uint64
}

// AppendTo appends the descriptor.
func (r MemoryRange) AppendTo(b []byte) []byte {
	var x [MemoryRangeSize]byte
	put32(x[0:], r.NSID)
	put32(x[4:], r.Len)
	put64(x[8:], r.Addr)
	return append(b, x[:]...)
}

// ParseMemoryRange reads descriptor i of data that holds it whole.
func ParseMemoryRange(data []byte, i int) MemoryRange {
	b := data[i*MemoryRangeSize:][:MemoryRangeSize]
	return MemoryRange{le32(b), le32(b[4:]), le64(b[8:])}
}

// appendRanges appends ranges as descriptors of the SLM namespace.
func appendRanges(b []byte, ranges []Range) ([]byte, error) {
	for i, r := range ranges {
		if r.Len > math.MaxUint32 {
			return nil, fmt.Errorf("memory range %d: %d bytes do not fit the standard set's 32 bits", i, r.Len)
		}
		b = MemoryRange{NamespaceSLM, uint32(r.Len), r.Addr}.AppendTo(b)
	}
	return b, nil
}

// Execution holds the fields of an Execute Program. Its data is Ranges inline descriptors, and then the arguments.
type Execution struct {
	Slot    uint16 // PIND
	Set     uint16 // RSID of a memory range set; 0: none
	Ranges  uint32 // NUMR, inline ranges
	DataLen uint32 // DLEN, 0 where the kernel's passthrough could not carry it: then the data descriptor's length counts
	Param1  uint64 // CPARAM1, not used by images of type C1h
	Param2  uint64
}

// ParseExecution reads the fields of an Execute Program.
func ParseExecution(c *nvme.Command) Execution {
	return Execution{uint16(c.DW(2)), uint16(c.DW(2) >> 16), c.DW(3), c.DW(4), c.QW(10), c.QW(12)}
}

// Command builds the command, with DataLen bytes of data.
func (e Execution) Command() nvme.Command {
	c := nvme.New(ExecuteProgram, NamespaceCompute)
	c.SetDW(2, uint32(e.Slot)|uint32(e.Set)<<16)
	c.SetDW(3, e.Ranges)
	c.SetDW(4, e.DataLen)
	c.SetQW(10, e.Param1)
	c.SetQW(12, e.Param2)
	c.SetData(e.DataLen)
	return c
}

// Execute builds an Execute Program of the program in slot over inline ranges, and its data. The completion's result is
// the program's. Without ranges, ExecuteSet names a memory range set instead.
func Execute(slot uint16, ranges []Range, args []byte) (Transfer, error) {
	if len(ranges) > MaxRanges {
		return Transfer{}, fmt.Errorf("execute: %d memory ranges, at most %d", len(ranges), MaxRanges)
	}
	data, err := appendRanges(make([]byte, 0, len(ranges)*MemoryRangeSize+len(args)), ranges)
	if err != nil {
		return Transfer{}, fmt.Errorf("execute: %w", err)
	}
	data = append(data, args...)
	return Transfer{Execution{Slot: slot, Ranges: uint32(len(ranges)), DataLen: uint32(len(data))}.Command(), data}, nil
}

// ExecuteSet builds an Execute Program over memory range set rsid; its data is args.
func ExecuteSet(slot, rsid uint16, args []byte) Transfer {
	return Transfer{Execution{Slot: slot, Set: rsid, DataLen: uint32(len(args))}.Command(), args}
}

// Selections of Load Program, Program Activation Management and Memory Range Set Management.
const (
	SelectLoad       = 0
	SelectUnload     = 1
	SelectDeactivate = 0
	SelectActivate   = 1
	SelectCreate     = 0
	SelectDelete     = 1
)

// Load holds the fields of a Load Program.
type Load struct {
	Chunk
	Type     uint8 // PTYPE
	Unload   bool  // SEL
	Identity uint8 // PIT
}

// LoadProgram builds the transfer of one chunk of an image of type ProgramTypeImage.
func LoadProgram(k Chunk) nvme.Command {
	c := nvme.New(nvme.AdminLoadProgram, NamespaceCompute)
	c.SetDW(10, uint32(k.Slot)|ProgramTypeImage<<16|IdentityPUID<<25)
	c.SetDW(11, k.Size)
	c.SetQW(12, k.PUID)
	c.SetDW(14, k.Len)
	c.SetDW(15, k.Offset)
	c.SetData(k.Len)
	return c
}

// UnloadProgram builds the emptying of a slot that is not active.
func UnloadProgram(slot uint16) nvme.Command {
	c := nvme.New(nvme.AdminLoadProgram, NamespaceCompute)
	c.SetDW(10, uint32(slot)|SelectUnload<<24)
	return c
}

// ParseLoad reads the fields of a Load Program.
func ParseLoad(c *nvme.Command) Load {
	d := c.DW(10)
	return Load{Chunk{uint16(d), c.DW(11), c.DW(15), c.DW(14), c.QW(12)}, uint8(d >> 16), d>>24&1 != 0, uint8(d >> 25 & 7)}
}

// Activation builds a Program Activation Management that activates the program in a slot, or deactivates it.
func Activation(slot uint16, activate bool) nvme.Command {
	c := nvme.New(nvme.AdminProgramActivation, NamespaceCompute)
	c.SetDW(10, uint32(slot))
	if activate {
		c.SetDW(10, uint32(slot)|SelectActivate<<16)
	}
	return c
}

// ParseActivation reads the slot and the selection of a Program Activation Management.
func ParseActivation(c *nvme.Command) (slot uint16, sel uint8) {
	return uint16(c.DW(10)), uint8(c.DW(10) >> 16 & 0xf)
}

// CreateRangeSet builds the creation of a memory range set, and its data. Creating it reserves what of the ranges is
// not yet the association's. The completion's dword 0 is the set's identifier, 1 or above.
func CreateRangeSet(ranges []Range) (Transfer, error) {
	if len(ranges) == 0 || len(ranges) > MaxRanges {
		return Transfer{}, fmt.Errorf("create memory range set: %d memory ranges, 1 to %d are possible", len(ranges),
			MaxRanges)
	}
	data, err := appendRanges(nil, ranges)
	if err != nil {
		return Transfer{}, fmt.Errorf("create memory range set: %w", err)
	}
	c := nvme.New(nvme.AdminMemoryRangeSetManage, NamespaceCompute)
	c.SetDW(11, uint32(len(ranges)))
	c.SetData(uint32(len(data)))
	return Transfer{c, data}, nil
}

// DeleteRangeSet builds the deletion of a memory range set.
func DeleteRangeSet(rsid uint16) nvme.Command {
	c := nvme.New(nvme.AdminMemoryRangeSetManage, NamespaceCompute)
	c.SetDW(10, SelectDelete|uint32(rsid)<<16)
	return c
}

// RangeSet holds the fields of a Memory Range Set Management.
type RangeSet struct {
	Select uint8
	ID     uint16 // RSID, for a deletion
	Ranges int    // NUMR, for a creation
}

// ParseRangeSet reads the fields of a Memory Range Set Management.
func ParseRangeSet(c *nvme.Command) RangeSet {
	return RangeSet{uint8(c.DW(10) & 0xf), uint16(c.DW(10) >> 16), int(c.DW(11) & 0xff)}
}
