package cs

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/nvme"
)

// ProgramTypeImage is the program type of a Millrace image, in the vendor specific range C0h to FFh.
const ProgramTypeImage = 0xc1

// StatusProgramFault (type 7h vendor, code C1h) completes an execution that the program itself gave up; the
// completion's 64-bit result says why, in the program's own codes.
const StatusProgramFault nvme.Status = 0x7c1

// Occupancy says what a program index holds.
type Occupancy uint8

// The content of a program index (PEOCC).
const (
	SlotEmpty      Occupancy = 0
	SlotDownloaded Occupancy = 1
	SlotDevice     Occupancy = 2 // device-defined, not downloadable
)

// String names the occupancy.
func (o Occupancy) String() string {
	switch o {
	case SlotEmpty:
		return "empty"
	case SlotDownloaded:
		return "downloaded"
	case SlotDevice:
		return "device-defined"
	}
	return fmt.Sprintf("reserved occupancy %d", uint8(o))
}

// Program is the entry of one program index in the program list.
type Program struct {
	Occupancy Occupancy
	Active    bool
	Type      uint8  // ProgramTypeImage
	PUID      uint64 // the image's program unique identifier
	Bytes     uint64 // size of the image; 0 for an empty index
}

// ProgramSize is the size of a program descriptor in bytes.
const ProgramSize = 64

// Identity kinds of a program (PIT).
const (
	IdentityNone = 0
	IdentityPUID = 1
)

func (p *Program) marshal(b []byte) {
	b[0] = byte(p.Occupancy & 3)
	if p.Active {
		b[0] |= 1 << 2
	}
	if p.Occupancy != SlotEmpty {
		b[0] |= IdentityPUID << 3
		b[1] = p.Type
		put64(b[8:], p.PUID)
		put64(b[16:], p.Bytes)
	}
}

// ErrShort is returned for a structure that ends before its length says.
var ErrShort = errors.New("structure is truncated")
