package nvme

import "encoding/binary"

// Bits of dword 12 of NVM commands.
const (
	NVMForceUnitAccess = 1 << 30
	NVMDeallocate      = 1 << 25 // Write Zeroes
)

// MaxBlocks is the most logical blocks of one NVM command: its count is 0's based in 16 bits.
const MaxBlocks = 1 << 16

func blockCommand(opcode uint8, nsid uint32, slba uint64, blocks uint32) Command {
	c := New(opcode, nsid)
	c.SetQW(10, slba)
	c.SetDW(12, (blocks-1)&0xffff)
	return c
}

// Read builds a Read of 1 to MaxBlocks blocks of blockSize bytes from slba on.
func Read(nsid uint32, slba uint64, blocks, blockSize uint32) Command {
	c := blockCommand(NVMRead, nsid, slba, blocks)
	c.SetData(blocks * blockSize)
	return c
}

// Write builds a Write; with fua the data is on stable storage when the command completes.
func Write(nsid uint32, slba uint64, blocks, blockSize uint32, fua bool) Command {
	c := blockCommand(NVMWrite, nsid, slba, blocks)
	if fua {
		c.SetDW(12, c.DW(12)|NVMForceUnitAccess)
	}
	c.SetData(blocks * blockSize)
	return c
}

// Compare builds a Compare of the data with what the blocks hold.
func Compare(nsid uint32, slba uint64, blocks, blockSize uint32) Command {
	c := blockCommand(NVMCompare, nsid, slba, blocks)
	c.SetData(blocks * blockSize)
	return c
}

// WriteZeroes builds a Write Zeroes; with deallocate the drive may free the space of the blocks.
func WriteZeroes(nsid uint32, slba uint64, blocks uint32, deallocate bool) Command {
	c := blockCommand(NVMWriteZeroes, nsid, slba, blocks)
	if deallocate {
		c.SetDW(12, c.DW(12)|NVMDeallocate)
	}
	return c
}

// Flush builds a Flush of namespace nsid, or of all with AllNamespaces.
func Flush(nsid uint32) Command { return New(NVMFlush, nsid) }

// DatasetRangeSize is the size of a range of Dataset Management in bytes.
const DatasetRangeSize = 16

// DatasetRange is one range of a Dataset Management command.
type DatasetRange struct {
	Attributes uint32
	Blocks     uint32 // a count, not 0's based
	SLBA       uint64
}

// Deallocate builds a Dataset Management command that deallocates 1 to 256 ranges, and its data.
func Deallocate(nsid uint32, ranges []DatasetRange) (Command, []byte) {
	data := make([]byte, 0, len(ranges)*DatasetRangeSize)
	for _, r := range ranges {
		data = binary.LittleEndian.AppendUint32(data, r.Attributes)
		data = binary.LittleEndian.AppendUint32(data, r.Blocks)
		data = binary.LittleEndian.AppendUint64(data, r.SLBA)
	}
	c := New(NVMDataset, nsid)
	c.SetDW(10, uint32(len(ranges)-1)&0xff)
	c.SetDW(11, 1<<2)
	c.SetData(uint32(len(data)))
	return c, data
}

// ParseDatasetRange reads range i of the data of a Dataset Management command that holds it whole.
func ParseDatasetRange(data []byte, i int) DatasetRange {
	b := data[i*DatasetRangeSize:][:DatasetRangeSize]
	return DatasetRange{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]),
		binary.LittleEndian.Uint64(b[8:])}
}
