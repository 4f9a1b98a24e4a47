package nvme

import (
	"encoding/binary"
	"fmt"
)

// IdentifyNamespace is the Identify Namespace data structure of the NVM command set (CNS 00h): the fields used here, at
// the offsets of the NVM Command Set Specification 1.0, figure 97.
type IdentifyNamespace struct {
	Size, Capacity, Utilization uint64 // NSZE, NCAP, NUSE: logical blocks
	Features                    uint8  // NSFEAT
	Format                      uint8  // FLBAS: which of Formats is in use
	MultiPath                   uint8  // NMIC; bit 0: shared by controllers
	Deallocate                  uint8  // DLFEAT; 1: deallocated blocks read as zeros, bit 3: Write Zeroes deallocates
	CapacityBytes               uint64 // NVMCAP
	Attributes                  uint8  // NSATTR; bit 0: write protected
	NGUID                       [16]byte
	EUI64                       [8]byte
	Formats                     []LBAFormat // 1 to 16
}

// LBAFormat is one format of logical blocks.
type LBAFormat struct {
	MetadataSize uint16
	BlockShift   uint8 // a block holds 2^BlockShift bytes
}

// Marshal writes the structure's 4096 bytes.
func (id *IdentifyNamespace) Marshal() []byte {
	b := make([]byte, IdentifySize)
	le := binary.LittleEndian
	le.PutUint64(b[0:], id.Size)
	le.PutUint64(b[8:], id.Capacity)
	le.PutUint64(b[16:], id.Utilization)
	n := min(len(id.Formats), 16)
	b[24], b[25], b[26], b[30], b[33] = id.Features, uint8(max(n, 1)-1), id.Format, id.MultiPath, id.Deallocate
	le.PutUint64(b[48:], id.CapacityBytes)
	b[99] = id.Attributes
	copy(b[104:], id.NGUID[:])
	copy(b[120:], id.EUI64[:])
	for i, f := range id.Formats[:n] {
		le.PutUint32(b[128+4*i:], uint32(f.MetadataSize)|uint32(f.BlockShift)<<16)
	}
	return b
}

// Unmarshal reads the structure from at least 4096 bytes.
func (id *IdentifyNamespace) Unmarshal(b []byte) error {
	if len(b) < IdentifySize {
		return fmt.Errorf("identify namespace: %d bytes where %d belong", len(b), IdentifySize)
	}
	le := binary.LittleEndian
	*id = IdentifyNamespace{
		Size: le.Uint64(b[0:]), Capacity: le.Uint64(b[8:]), Utilization: le.Uint64(b[16:]), Features: b[24], Format: b[26],
		MultiPath: b[30], Deallocate: b[33], CapacityBytes: le.Uint64(b[48:]), Attributes: b[99],
		NGUID: [16]byte(b[104:120]), EUI64: [8]byte(b[120:128]),
	}
	n := int(b[25]) + 1
	if n > 16 {
		return fmt.Errorf("identify namespace: %d LBA formats, at most 16 are known", n)
	}
	for i := range n {
		f := le.Uint32(b[128+4*i:])
		id.Formats = append(id.Formats, LBAFormat{uint16(f), uint8(f >> 16)})
	}
	return nil
}

// BlockSize is the size in bytes of a logical block in the format in use. It is an error where the structure does not
// say one from 512 bytes to 64 KiB.
func (id *IdentifyNamespace) BlockSize() (uint32, error) {
	i := int(id.Format & 0xf)
	if i >= len(id.Formats) || id.Formats[i].BlockShift < 9 || id.Formats[i].BlockShift > 16 {
		return 0, fmt.Errorf("identify namespace: format %d of %d has no usable block size", i, len(id.Formats))
	}
	return 1 << id.Formats[i].BlockShift, nil
}

// IndependentNamespace is the command set independent Identify Namespace structure (CNS 08h).
type IndependentNamespace struct {
	Features, MultiPath, Attributes uint8
	Ready                           bool // NSTAT.NRDY; Linux ignores a namespace that is not
}

// Marshal writes the structure's 4096 bytes.
func (id *IndependentNamespace) Marshal() []byte {
	b := make([]byte, IdentifySize)
	b[0], b[1], b[8] = id.Features, id.MultiPath, id.Attributes
	if id.Ready {
		b[14] = 1
	}
	return b
}

// NamespaceIDs are the identifiers of the Namespace Identification Descriptor list (CNS 03h). They are globally unique,
// and the same after every reconnection; otherwise Linux refuses the namespace.
type NamespaceIDs struct {
	NGUID [16]byte // all zeros: none
	UUID  [16]byte // all zeros: none
	CSI   uint8
}

// Namespace identifier types.
const (
	nidNGUID = 2
	nidUUID  = 3
	nidCSI   = 4
)

// Marshal writes the list's 4096 bytes.
func (id *NamespaceIDs) Marshal() []byte {
	b := make([]byte, 0, IdentifySize)
	if id.NGUID != [16]byte{} {
		b = append(append(b, nidNGUID, 16, 0, 0), id.NGUID[:]...)
	}
	if id.UUID != [16]byte{} {
		b = append(append(b, nidUUID, 16, 0, 0), id.UUID[:]...)
	}
	b = append(b, nidCSI, 1, 0, 0, id.CSI)
	return b[:IdentifySize]
}

// Unmarshal reads a descriptor list; descriptors of unknown types are passed over.
func (id *NamespaceIDs) Unmarshal(b []byte) error {
	*id = NamespaceIDs{}
	for len(b) >= 4 && b[1] != 0 {
		typ, n := b[0], int(b[1])
		if len(b) < 4+n {
			return fmt.Errorf("namespace descriptor of type %d: %d bytes where %d belong", typ, len(b)-4, n)
		}
		v := b[4 : 4+n]
		switch {
		case typ == nidNGUID && n == 16:
			id.NGUID = [16]byte(v)
		case typ == nidUUID && n == 16:
			id.UUID = [16]byte(v)
		case typ == nidCSI && n == 1:
			id.CSI = v[0]
		case typ == nidNGUID || typ == nidUUID || typ == nidCSI:
			return fmt.Errorf("namespace descriptor of type %d has length %d", typ, n)
		}
		b = b[4+n:]
	}
	return nil
}

// MarshalNamespaceList writes up to 1024 namespace identifiers as an Identify data structure (CNS 02h and 07h).
func MarshalNamespaceList(ids []uint32) []byte {
	b := make([]byte, IdentifySize)
	for i, id := range ids[:min(len(ids), IdentifySize/4)] {
		binary.LittleEndian.PutUint32(b[4*i:], id)
	}
	return b
}

// UnmarshalNamespaceList reads namespace identifiers up to the first 0, at most 1024.
func UnmarshalNamespaceList(b []byte) []uint32 {
	var ids []uint32
	for i := 0; i+4 <= min(len(b), IdentifySize); i += 4 {
		id := binary.LittleEndian.Uint32(b[i:])
		if id == 0 {
			break
		}
		ids = append(ids, id)
	}
	return ids
}
