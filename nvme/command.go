package nvme

import (
	"encoding/binary"
	"fmt"
)

// CommandSize and CompletionSize are the sizes of a submission and a completion queue entry in bytes.
const (
	CommandSize    = 64
	CompletionSize = 16
)

// Command is a submission queue entry, little endian, as it travels. The zero Command is Flush or Delete Queue to
// namespace 0 with no data described; use New so that the data pointer is well formed.
type Command [CommandSize]byte

// New makes a command for namespace nsid without data.
func New(opcode uint8, nsid uint32) Command {
	var c Command
	c[0] = opcode
	c.SetNSID(nsid)
	c.SetData(0)
	return c
}

// Direction is the direction of a command's data. Its values are the low two bits of every opcode.
type Direction uint8

// Directions of transfer. Bidirectional commands do not exist here: Linux resets a controller that answers one.
const (
	NoData           Direction = 0
	HostToController Direction = 1
	ControllerToHost Direction = 2
	Bidirectional    Direction = 3
)

// String names the direction.
func (d Direction) String() string {
	return [...]string{"no data", "host to controller", "controller to host", "bidirectional"}[d&3]
}

// Opcode is byte 0.
func (c *Command) Opcode() uint8 { return c[0] }

// Direction returns the low two bits of the opcode.
func (c *Command) Direction() Direction { return Direction(c[0] & 3) }

// Fuse is the fused operation field; nothing here supports fused commands, so it must be 0.
func (c *Command) Fuse() uint8 { return c[1] & 3 }

// PSDT returns the form of the data pointer: 1 is SGL, the only form here.
func (c *Command) PSDT() uint8 { return c[1] >> 6 }

// CID is the command identifier, unique among the outstanding commands of a queue. It is not an index.
func (c *Command) CID() uint16 { return binary.LittleEndian.Uint16(c[2:]) }

// SetCID sets the command identifier.
func (c *Command) SetCID(id uint16) { binary.LittleEndian.PutUint16(c[2:], id) }

// NSID is the namespace identifier.
func (c *Command) NSID() uint32 { return binary.LittleEndian.Uint32(c[4:]) }

// SetNSID sets the namespace identifier.
func (c *Command) SetNSID(id uint32) { binary.LittleEndian.PutUint32(c[4:], id) }

// DW is command dword n, 0 to 15; 0 for any other n.
func (c *Command) DW(n int) uint32 {
	if n < 0 || n > 15 {
		return 0
	}
	return binary.LittleEndian.Uint32(c[n*4:])
}

// SetDW sets command dword n, 0 to 15, and does nothing for any other n.
func (c *Command) SetDW(n int, v uint32) {
	if n >= 0 && n <= 15 {
		binary.LittleEndian.PutUint32(c[n*4:], v)
	}
}

// QW is the 64-bit value in command dwords n and n+1, n from 0 to 14; 0 for any other n.
func (c *Command) QW(n int) uint64 {
	if n < 0 || n > 14 {
		return 0
	}
	return binary.LittleEndian.Uint64(c[n*4:])
}

// SetQW sets command dwords n and n+1, n from 0 to 14, and does nothing for any other n.
func (c *Command) SetQW(n int, v uint64) {
	if n >= 0 && n <= 14 {
		binary.LittleEndian.PutUint64(c[n*4:], v)
	}
}

// SGL descriptor types with their subtype, as the descriptor's last byte.
const (
	SGLDataBlockOffset    = 0x01 // data in the capsule, at an offset
	SGLTransportDataBlock = 0x5a // the transport moves the data
)

// SGL is the one descriptor in a command's data pointer, bytes 24 to 39.
type SGL struct {
	Address uint64
	Length  uint32 // bytes
	Type    uint8  // type and subtype
}

// SGL returns the command's data descriptor.
func (c *Command) SGL() SGL {
	return SGL{binary.LittleEndian.Uint64(c[24:]), binary.LittleEndian.Uint32(c[32:]), c[39]}
}

// SetSGL writes the data descriptor and says in PSDT that it is one.
func (c *Command) SetSGL(s SGL) {
	c[1] = c[1]&0x3f | 1<<6
	binary.LittleEndian.PutUint64(c[24:], s.Address)
	binary.LittleEndian.PutUint32(c[32:], s.Length)
	c[36], c[37], c[38], c[39] = 0, 0, 0, s.Type
}

// SetData describes n bytes of data that the transport moves; 0 describes none.
func (c *Command) SetData(n uint32) { c.SetSGL(SGL{Length: n, Type: SGLTransportDataBlock}) }

// DataLength is the descriptor's length in bytes.
func (c *Command) DataLength() uint32 { return binary.LittleEndian.Uint32(c[32:]) }

// String shows the command for a log: opcode, identifier, namespace, length, and dwords 10 to 15.
func (c *Command) String() string {
	return fmt.Sprintf("opcode %02xh cid %d nsid %d len %d cdw10..15 %08x %08x %08x %08x %08x %08x", c.Opcode(), c.CID(),
		c.NSID(),
		c.DataLength(), c.DW(10), c.DW(11), c.DW(12), c.DW(13), c.DW(14), c.DW(15))
}

// Completion is a completion queue entry, little endian, as it travels. The phase tag is 0, as over fabrics.
type Completion [CompletionSize]byte

// NewCompletion makes a completion of command cid.
func NewCompletion(cid uint16, s Status) Completion {
	var c Completion
	binary.LittleEndian.PutUint16(c[12:], cid)
	c.SetStatus(s)
	return c
}

// DW0 is the first command specific dword.
func (c *Completion) DW0() uint32 { return binary.LittleEndian.Uint32(c[0:]) }

// Result is dwords 0 and 1: the 64-bit return value of an execution.
func (c *Completion) Result() uint64 { return binary.LittleEndian.Uint64(c[0:]) }

// SetResult sets dwords 0 and 1.
func (c *Completion) SetResult(v uint64) { binary.LittleEndian.PutUint64(c[0:], v) }

// SQHead is the submission queue head pointer.
func (c *Completion) SQHead() uint16 { return binary.LittleEndian.Uint16(c[8:]) }

// SetSQHead sets the submission queue head pointer.
func (c *Completion) SetSQHead(v uint16) { binary.LittleEndian.PutUint16(c[8:], v) }

// SQID is the submission queue identifier; 0 over fabrics.
func (c *Completion) SQID() uint16 { return binary.LittleEndian.Uint16(c[10:]) }

// CID is the identifier of the completed command.
func (c *Completion) CID() uint16 { return binary.LittleEndian.Uint16(c[12:]) }

// Status is the status field.
func (c *Completion) Status() Status { return Status(binary.LittleEndian.Uint16(c[14:]) >> 1) }

// SetStatus sets the status field and clears the phase tag.
func (c *Completion) SetStatus(s Status) { binary.LittleEndian.PutUint16(c[14:], uint16(s)<<1) }

// String shows the completion for a log.
func (c *Completion) String() string {
	return fmt.Sprintf("cid %d result %#x %s", c.CID(), c.Result(), c.Status().String())
}

// Idempotent reports whether a command may be executed twice, also after a reset: of an admin queue queries, of an I/O
// queue commands to the blocks of a namespace, which the caller knows to have blocks.
func (c *Command) Idempotent(admin bool) bool {
	if admin {
		switch c.Opcode() {
		case AdminIdentify, AdminGetLogPage, AdminGetFeatures, AdminKeepAlive:
			return true
		}
		return false
	}
	switch c.Opcode() {
	case NVMFlush, NVMRead, NVMWrite, NVMCompare, NVMWriteZeroes, NVMDataset:
		return true
	}
	return false
}
