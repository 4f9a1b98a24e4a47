package cs

import (
	"fmt"

	"github.com/millrace/millrace/nvme"
)

// Opcodes of the Subsystem Local Memory command set. Memory Fill's opcode and layout are provisional: the sources
// differ.
const (
	SLMCopy  = 0x01
	SLMRead  = 0x02
	SLMFill  = 0x04
	SLMWrite = 0x05
)

// Formats of the source descriptors of a Memory Copy.
const (
	CopyFormatBlocks = 2 // logical blocks
	CopyFormatMemory = 4 // subsystem local memory
)

// MaxCopySources is the most source descriptors of a Memory Copy, CopySourceSize the size of one in bytes, and
// SLMGranularity what its addresses and lengths are multiples of for a host, in bytes.
const (
	MaxCopySources = 256
	CopySourceSize = 32
	SLMGranularity = 4
)

// MemoryRead builds a read of n bytes of subsystem local memory from addr on, both multiples of SLMGranularity.
func MemoryRead(addr uint64, n uint32) nvme.Command { return memory(SLMRead, NamespaceSLM, addr, n) }

// MemoryWrite builds a write of n bytes of subsystem local memory from addr on, both multiples of SLMGranularity.
func MemoryWrite(addr uint64, n uint32) nvme.Command {
	return memory(SLMWrite, NamespaceSLM, addr, n)
}

// MemoryFill builds a fill of n bytes from addr on with a repeated 32-bit pattern. Provisional.
func MemoryFill(addr uint64, n, pattern uint32) nvme.Command {
	c := memory(SLMFill, NamespaceSLM, addr, n)
	c.SetDW(13, pattern)
	c.SetData(0)
	return c
}

// MemoryCopy holds the fields of a Memory Copy.
type MemoryCopy struct {
	Len     uint64 // bytes, the sum over the sources
	Dest    uint64 // first byte of the destination
	Sources int    // 1 to MaxCopySources
	Format  uint8
}

// Command builds the command; its data is Sources descriptors.
func (m MemoryCopy) Command() nvme.Command {
	c := nvme.New(SLMCopy, NamespaceSLM)
	c.SetQW(2, m.Len)
	c.SetQW(10, m.Dest)
	c.SetDW(12, uint32(m.Sources-1)&0xff|uint32(m.Format&0xf)<<8)
	c.SetData(uint32(m.Sources) * CopySourceSize)
	return c
}

// ParseMemoryCopy reads the fields of a Memory Copy.
func ParseMemoryCopy(c *nvme.Command) MemoryCopy {
	return MemoryCopy{c.QW(2), c.QW(10), int(c.DW(12)&0xff) + 1, uint8(c.DW(12) >> 8 & 0xf)}
}

// BlockSource is a source of CopyFormatBlocks. On the wire {namespace u32, reserved u32, first LBA u64, blocks u16
// 0's based, 14 reserved}.
type BlockSource struct {
	NSID   uint32
	Blocks uint32 // a count, 1 to nvme.MaxBlocks
	SLBA   uint64
}

// AppendTo appends the source's descriptor.
func (s BlockSource) AppendTo(b []byte) []byte {
	var x [CopySourceSize]byte
	put32(x[0:], s.NSID)
	put64(x[8:], s.SLBA)
	put16(x[16:], uint16(s.Blocks-1))
	return append(b, x[:]...)
}

// ParseBlockSource reads descriptor i of data that holds it whole.
func ParseBlockSource(data []byte, i int) BlockSource {
	b := data[i*CopySourceSize:][:CopySourceSize]
	return BlockSource{le32(b), uint32(le16(b[16:])) + 1, le64(b[8:])}
}

// MemorySource is a source of CopyFormatMemory. On the wire {namespace u32, reserved u32, address u64, bytes u32, 12
// reserved}.
type MemorySource struct {
	NSID uint32
	Addr uint64
	Len  uint32
}

// AppendTo appends the source's descriptor.
func (s MemorySource) AppendTo(b []byte) []byte {
	var x [CopySourceSize]byte
	put32(x[0:], s.NSID)
	put64(x[8:], s.Addr)
	put32(x[16:], s.Len)
	return append(b, x[:]...)
}

// ParseMemorySource reads descriptor i of data that holds it whole.
func ParseMemorySource(data []byte, i int) MemorySource {
	b := data[i*CopySourceSize:][:CopySourceSize]
	return MemorySource{le32(b), le64(b[8:]), le32(b[16:])}
}

// Transfer is a command with its data.
type Transfer struct {
	Command nvme.Command
	Data    []byte
}

// MemoryCopies builds the Memory Copy commands that do what a Preprocess does with copies: the blocks of namespaces
// with blocks of blockSize bytes, in order, neighbours in memory joined into one command where they fit. A copy of no
// blocks is an error.
func MemoryCopies(copies []Copy, blockSize uint32) ([]Transfer, error) {
	var out []Transfer
	var m MemoryCopy
	var data []byte
	flush := func() {
		if m.Sources > 0 {
			out = append(out, Transfer{m.Command(), data})
		}
		m, data = MemoryCopy{}, nil
	}
	for i, c := range copies {
		if c.NLB == 0 {
			return nil, fmt.Errorf("copy %d of %d: no blocks", i, len(copies))
		}
		slba, dest, left := c.SLBA, c.Dest, c.NLB
		for left > 0 {
			n := min(left, nvme.MaxBlocks)
			if m.Sources == MaxCopySources || m.Sources > 0 && m.Dest+m.Len != dest {
				flush()
			}
			if m.Sources == 0 {
				m = MemoryCopy{Dest: dest, Format: CopyFormatBlocks}
			}
			data = BlockSource{c.NSID, n, slba}.AppendTo(data)
			bytes := uint64(n) * uint64(blockSize)
			m.Sources, m.Len = m.Sources+1, m.Len+bytes
			slba, dest, left = slba+uint64(n), dest+bytes, left-n
		}
	}
	flush()
	return out, nil
}

// Repeatable reports whether an I/O command may be executed twice within one association: reads and writes of the
// drive's memory.
func Repeatable(cmd *nvme.Command) bool {
	if cmd.NSID() == NamespaceSLM {
		return cmd.Opcode() == SLMRead || cmd.Opcode() == SLMWrite
	}
	return cmd.NSID() == NamespaceNVM && (cmd.Opcode() == IOFetch || cmd.Opcode() == IOStore)
}
