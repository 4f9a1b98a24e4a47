package cs

import "github.com/millrace/millrace/nvme"

// The namespaces of a computing drive.
const (
	NamespaceNVM     = 1 // NVM command set; the vendor I/O commands are sent here too
	NamespaceSLM     = 2 // Subsystem Local Memory command set
	NamespaceCompute = 3 // Computational Programs command set; of a drive without flash, the vendor I/O commands too
)

// MaxRegions is the most regions of a drive. Region r is namespace NamespaceCompute + r of the Computational Programs
// command set; the vendor commands name a region in dword 14, where 0 is region 0.
const MaxRegions = 7

// RegionNamespace returns the namespace of computational programs that is a region.
func RegionNamespace(region int) uint32 { return NamespaceCompute + uint32(region) }

// InRegion makes a vendor command that runs a program, activates an image or reserves memory address a region.
func InRegion(c nvme.Command, region int) nvme.Command {
	c.SetDW(14, uint32(region))
	return c
}

// ParseRegion reads the region of a vendor command.
func ParseRegion(c *nvme.Command) uint32 { return c.DW(14) }

// MaxRegionWeight is the largest weight of a region; the smallest is 1.
const MaxRegionWeight = 16

// RegionWindow returns the share of a region in subsystem local memory of size bytes, where each region has a weight:
// the regions' windows follow one another, have lengths in proportion to the weights, and begin at multiples of
// ReserveGranularity. The only region has all of the memory.
func RegionWindow(size uint64, weights []int, region int) Range {
	if len(weights) <= 1 {
		return Range{Len: size}
	}
	var total, before uint64
	for i, w := range weights {
		total += uint64(w)
		if i < region {
			before += uint64(w)
		}
	}
	unit := size / total / ReserveGranularity * ReserveGranularity // of a weight of 1
	return Range{Addr: before * unit, Len: uint64(weights[region]) * unit}
}

// Opcodes of the vendor set. Their low two bits are the direction of the data.
const (
	IOPreprocess = 0x81
	IOFetch      = 0x82
	IOStore      = 0x85

	AdminImageDownload = 0xc1
	AdminImageActivate = 0xc4
	AdminSLMReserve    = 0xc8
	AdminSLMRelease    = 0xcc
)

// AnyAddress asks SLM Reserve for the first range that is free.
const AnyAddress = ^uint64(0)

// ReserveGranularity is the granularity of the address and length of a reservation, in bytes.
const ReserveGranularity = 4096

// PreprocessCommand builds a Preprocess whose marshalled descriptor has n bytes. The completion's result is the
// program's.
func PreprocessCommand(n uint32) nvme.Command {
	c := nvme.New(IOPreprocess, NamespaceNVM)
	c.SetData(n)
	return c
}

// Fetch builds a read of n bytes of subsystem local memory from byte addr on; any alignment.
func Fetch(addr uint64, n uint32) nvme.Command { return memory(IOFetch, NamespaceNVM, addr, n) }

// Store builds a write of n bytes of subsystem local memory from byte addr on; any alignment.
func Store(addr uint64, n uint32) nvme.Command { return memory(IOStore, NamespaceNVM, addr, n) }

func memory(opcode uint8, nsid uint32, addr uint64, n uint32) nvme.Command {
	c := nvme.New(opcode, nsid)
	c.SetQW(10, addr)
	c.SetDW(12, n)
	c.SetData(n)
	return c
}

// Memory holds the fields of Fetch, Store, Memory Read and Memory Write: Len bytes from Addr on.
type Memory struct {
	Addr uint64
	Len  uint32
}

// ParseMemory reads the fields of Fetch, Store, Memory Read and Memory Write.
func ParseMemory(c *nvme.Command) Memory { return Memory{c.QW(10), c.DW(12)} }

// SLMReserve builds a reservation of length bytes from addr on, or wherever there is room for AnyAddress; both are
// multiples of ReserveGranularity. The completion's result is the address.
func SLMReserve(addr, length uint64) nvme.Command { return reservation(AdminSLMReserve, addr, length) }

// SLMRelease builds the end of a reservation, named exactly as it was made.
func SLMRelease(addr, length uint64) nvme.Command { return reservation(AdminSLMRelease, addr, length) }

func reservation(opcode uint8, addr, length uint64) nvme.Command {
	c := nvme.New(opcode, 0)
	c.SetQW(10, addr)
	c.SetQW(12, length)
	return c
}

// ParseReservation reads the fields of SLM Reserve and SLM Release.
func ParseReservation(c *nvme.Command) Range { return Range{c.QW(10), c.QW(12)} }

// Chunk is a part of an image that is being loaded into an image slot, in either command set. Chunks come in order:
// Offset is the number of bytes that were loaded before, and 0 starts again.
type Chunk struct {
	Slot   uint16
	Size   uint32 // Size is that of the whole image.
	Offset uint32
	Len    uint32 // Len is the length of this chunk's data.
	PUID   uint64
}

// ImageDownload builds the transfer of one chunk of an image.
func ImageDownload(k Chunk) nvme.Command {
	c := nvme.New(AdminImageDownload, 0)
	c.SetDW(10, uint32(k.Slot))
	c.SetDW(11, k.Size)
	c.SetDW(12, k.Offset)
	c.SetDW(13, k.Len)
	c.SetQW(14, k.PUID)
	c.SetData(k.Len)
	return c
}

// ParseImageDownload reads the fields of an Image Download.
func ParseImageDownload(c *nvme.Command) Chunk {
	return Chunk{uint16(c.DW(10)), c.DW(11), c.DW(12), c.DW(13), c.QW(14)}
}

// ImageActivate builds the activation of the image in a slot, in place of the active one.
func ImageActivate(slot uint16) nvme.Command {
	c := nvme.New(AdminImageActivate, 0)
	c.SetDW(10, uint32(slot))
	return c
}

// ImageTest builds an Image Activate that only tests: the drive verifies the image in a slot and runs its self-test,
// and the active image stays. Bit 0 of dword 11 says so.
func ImageTest(slot uint16) nvme.Command {
	c := ImageActivate(slot)
	c.SetDW(11, 1)
	return c
}

// ParseImageActivate reads the slot of an Image Activate, and whether it only tests.
func ParseImageActivate(c *nvme.Command) (slot uint16, test bool) {
	return uint16(c.DW(10)), c.DW(11)&1 != 0
}
