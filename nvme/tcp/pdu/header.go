package pdu

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/nvme"
)

// Type is a PDU's type.
type Type uint8

// The types of PDUs.
const (
	TypeICReq       Type = 0x00 // Initialize Connection Request
	TypeICResp      Type = 0x01
	TypeH2CTermReq  Type = 0x02 // host to controller Terminate Connection Request
	TypeC2HTermReq  Type = 0x03
	TypeCapsuleCmd  Type = 0x04
	TypeCapsuleResp Type = 0x05
	TypeH2CData     Type = 0x06
	TypeC2HData     Type = 0x07
	TypeR2T         Type = 0x09 // Ready To Transfer
)

// Sizes in bytes. A header size counts the common header.
const (
	CommonSize      = 8
	ICSize          = 128
	TermSize        = 24
	CapsuleCmdSize  = CommonSize + nvme.CommandSize
	CapsuleRespSize = CommonSize + nvme.CompletionSize
	DataSize        = 24 // H2CData and C2HData
	R2TSize         = 24
	DigestSize      = 4
	MaxHeader       = ICSize
	MaxTermData     = 128 // bytes of the offending header that a termination request copies
)

// Flags of the common header.
const (
	FlagHeaderDigest = 1 << 0
	FlagDataDigest   = 1 << 1
	FlagLast         = 1 << 2 // the last data PDU of a transfer
	FlagSuccess      = 1 << 3 // C2HData: the command succeeded, and no response capsule follows
)

// kind holds what the specification fixes for a type of PDU.
type kind struct {
	name    string
	size    uint8 // The header has as many bytes.
	flags   uint8 // They may be set, beside the digests'.
	digests bool  // whether header and data digests apply
	data    bool  // whether data may follow
}

var kinds = map[Type]kind{
	TypeICReq:       {name: "ICReq", size: ICSize},
	TypeICResp:      {name: "ICResp", size: ICSize},
	TypeH2CTermReq:  {name: "H2CTermReq", size: TermSize, data: true},
	TypeC2HTermReq:  {name: "C2HTermReq", size: TermSize, data: true},
	TypeCapsuleCmd:  {name: "CapsuleCmd", size: CapsuleCmdSize, digests: true, data: true},
	TypeCapsuleResp: {name: "CapsuleResp", size: CapsuleRespSize, digests: true},
	TypeH2CData:     {name: "H2CData", size: DataSize, flags: FlagLast, digests: true, data: true},
	TypeC2HData:     {name: "C2HData", size: DataSize, flags: FlagLast | FlagSuccess, digests: true, data: true},
	TypeR2T:         {name: "R2T", size: R2TSize, digests: true},
}

// table is kinds by type, for the path that every PDU takes.
var table = func() (t [16]kind) {
	for i, k := range kinds {
		t[i] = k
	}
	return t
}()

// String names the type.
func (t Type) String() string {
	if k, ok := kinds[t]; ok {
		return k.name
	}
	return fmt.Sprintf("type %02xh", uint8(t))
}

// Header is a PDU's common header.
type Header struct {
	Type   Type
	Flags  uint8
	Size   uint8  // HLEN: of the header, digest not counted
	Offset uint8  // PDO: of the data from the PDU's first byte; 0 without data
	Length uint32 // PLEN: of the whole PDU
}

// Put writes the common header's eight bytes.
func (h Header) Put(b []byte) {
	_ = b[7]
	b[0], b[1], b[2], b[3] = uint8(h.Type), h.Flags, h.Size, h.Offset
	binary.LittleEndian.PutUint32(b[4:], h.Length)
}

// String shows the header for a log.
func (h Header) String() string {
	return fmt.Sprintf("%s flags %02xh hlen %d pdo %d plen %d", h.Type, h.Flags, h.Size, h.Offset, h.Length)
}

// Rules are the rules for the PDUs that a side receives: what was negotiated for the connection, and the most data of a
// PDU.
type Rules struct {
	HeaderDigest, DataDigest bool
	Align                    int    // the data offset is a multiple of Align bytes: 4 (CPDA or HPDA 0) to 128; 0 means 4
	MaxData                  uint32 // most bytes of data in a PDU
}

// Frame says where the parts of a PDU lie.
type Frame struct {
	Header
	Pad    int    // bytes between header (with digest) and data
	Data   uint32 // bytes of data
	Digest bool   // the data is followed by a digest
}

// Prefix is the number of bytes before the data, and all there are where there is none.
func (f *Frame) Prefix() int { return int(f.Size) + f.headerDigest() + f.Pad }

func (f *Frame) headerDigest() int {
	if f.Flags&FlagHeaderDigest != 0 {
		return DigestSize
	}
	return 0
}

// Parse judges the eight bytes of a common header. The error is an Error.
func (r *Rules) Parse(b *[CommonSize]byte) (Frame, error) {
	h := Header{Type(b[0]), b[1], b[2], b[3], binary.LittleEndian.Uint32(b[4:])}
	if int(h.Type) >= len(table) || table[h.Type].size == 0 {
		return Frame{Header: h}, invalid(fieldType, "%s is not a type", h.Type)
	}
	k := &table[h.Type]
	f := Frame{Header: h}
	var want uint8
	if k.digests {
		if r.HeaderDigest {
			want |= FlagHeaderDigest
		}
		if r.DataDigest && k.data {
			want |= FlagDataDigest
		}
	}
	// A data digest belongs to data: a capsule without data has no digest, even if the flag is set.
	if got := h.Flags &^ k.flags; got != want && (!k.data || got != want&^FlagDataDigest) {
		return f, invalid(fieldFlags, "%s: flags %02xh where %02xh were negotiated", k.name, h.Flags, want)
	}
	if h.Size != k.size {
		return f, invalid(fieldSize, "%s: header of %d bytes where %d belong", k.name, h.Size, k.size)
	}
	head := uint32(h.Size) + uint32(f.headerDigest())
	if !k.data || h.Length <= head {
		if h.Length != head {
			return f, invalid(fieldLength, "%s: %d bytes where %d belong", k.name, h.Length, head)
		}
		if h.Type == TypeH2CData || h.Type == TypeC2HData {
			return f, invalid(fieldLength, "%s without data", k.name)
		}
		return f, nil
	}
	if !k.digests { // a termination request: the data is part of an offending header, right behind its own
		if h.Length > head+MaxTermData {
			return f, invalid(fieldLength, "%s: %d bytes", k.name, h.Length)
		}
		f.Data = h.Length - head
		return f, nil
	}
	align := uint32(max(r.Align, 4))
	at := uint32(h.Offset)
	if at < head || at%align != 0 {
		return f, invalid(fieldOffset, "%s: data at byte %d: want a multiple of %d from %d on", k.name, at, align, head)
	}
	tail := uint32(0)
	if r.DataDigest {
		if h.Flags&FlagDataDigest == 0 {
			return f, invalid(fieldFlags, "%s: data without the digest that was negotiated", k.name)
		}
		tail, f.Digest = DigestSize, true
	}
	if h.Length <= at+tail {
		return f, invalid(fieldLength, "%s: %d bytes hold no data behind byte %d", k.name, h.Length, at)
	}
	f.Pad, f.Data = int(at-head), h.Length-at-tail
	if f.Data > r.MaxData {
		return f, &Error{Status: FatalLimit, Why: fmt.Sprintf("%s: %d bytes of data where at most %d are taken", k.name,
			f.Data, r.MaxData)}
	}
	return f, nil
}

// Layout says how a sender lays out a PDU of a type with n bytes of data (0: none).
func (r *Rules) Layout(t Type, flags uint8, n uint32) Frame {
	k := &table[t]
	f := Frame{Header: Header{Type: t, Flags: flags, Size: k.size}, Data: n}
	head := uint32(k.size)
	if r.HeaderDigest && k.digests {
		f.Flags |= FlagHeaderDigest
		head += DigestSize
	}
	f.Length = head
	if n == 0 {
		return f
	}
	at := head
	if k.digests {
		align := uint32(max(r.Align, 4))
		at = (head + align - 1) / align * align
		f.Offset = uint8(at)
	}
	f.Pad = int(at - head)
	f.Length = at + n
	if r.DataDigest && k.digests {
		f.Flags |= FlagDataDigest
		f.Digest = true
		f.Length += DigestSize
	}
	return f
}

// Seal completes the prefix of a PDU in b after the caller has written what follows the common header: it writes the
// common header, the header digest if there is one, and the padding. It returns the prefix.
func (f *Frame) Seal(b []byte) []byte {
	f.Put(b)
	n := int(f.Size)
	if f.Flags&FlagHeaderDigest != 0 {
		PutDigest(b[n:], Digest(b[:n]))
		n += DigestSize
	}
	clear(b[n : n+f.Pad])
	return b[:n+f.Pad]
}
