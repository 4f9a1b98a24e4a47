package cs

import (
	"fmt"

	"github.com/millrace/millrace/nvme"
)

// ComputeNamespace is the Identify Namespace structure of the Computational Programs command set (CNS 05h, CSI 4). The
// order and the offsets have one public source, so they are provisional.
type ComputeNamespace struct {
	MaxActive        uint16 // programs active at a time
	MaxRangeSets     uint16
	RangeGranularity uint16 // memory ranges of a set are multiples of 2^n bytes
	MaxRanges        uint8  // memory ranges of a set or an execution
	MaxProgramMiB    uint64 // bytes over all programs, in MiB
	LoadGranularity  uint8  // chunks are multiples of 2^n bytes
}

// Marshal writes the structure's 4096 bytes.
func (id *ComputeNamespace) Marshal() []byte {
	b := make([]byte, nvme.IdentifySize)
	put16(b[0:], id.MaxActive)
	put16(b[2:], id.MaxRangeSets)
	put16(b[4:], id.RangeGranularity)
	b[6] = id.MaxRanges
	put64(b[8:], id.MaxProgramMiB)
	b[16] = id.LoadGranularity
	return b
}

// MemoryNamespace is the Identify Namespace structure of the Subsystem Local Memory command set (CNS 05h, CSI 3). Its
// layout is ours, in the manner of the NVM command set's, and provisional.
type MemoryNamespace struct {
	Size        uint64 // bytes
	Granularity uint8  // host accesses are multiples of 2^n bytes
	Reserve     uint8  // reservations are multiples of 2^n bytes
}

// Marshal writes the structure's 4096 bytes.
func (id *MemoryNamespace) Marshal() []byte {
	b := make([]byte, nvme.IdentifySize)
	put64(b[0:], id.Size)
	b[16], b[17] = id.Granularity, id.Reserve
	return b
}

// Unmarshal reads the structure from at least 4096 bytes.
func (id *MemoryNamespace) Unmarshal(b []byte) error {
	if len(b) < nvme.IdentifySize {
		return fmt.Errorf("identify memory namespace: %w", ErrShort)
	}
	*id = MemoryNamespace{le64(b), b[16], b[17]}
	return nil
}
