package pdu

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/nvme"
)

var le = binary.LittleEndian

// Digests in byte 11 of ICReq and ICResp.
const (
	icHeaderDigest = 1 << 0
	icDataDigest   = 1 << 1
)

// MaxAlignment is the largest value of HPDA and CPDA: data offsets in multiples of 128 bytes.
const MaxAlignment = 31

// MinMaxH2CData is the least MAXH2CDATA that a controller may answer.
const MinMaxH2CData = 4096

// ICReq is a host's request when a connection begins.
type ICReq struct {
	Format                   uint16 // PFV: 0
	Alignment                uint8  // HPDA: data offsets from the controller are multiples of 4*(n+1) bytes
	HeaderDigest, DataDigest bool
	MaxR2T                   uint32 // 0's based: requests outstanding for a command
}

// ICResp is a controller's answer to ICReq.
type ICResp struct {
	Format                   uint16
	Alignment                uint8 // CPDA, of data offsets from the host
	HeaderDigest, DataDigest bool
	MaxH2CData               uint32 // most bytes of data in an H2CData PDU; a multiple of 4, at least 4096
}

func icFlags(header, data bool) (b byte) {
	if header {
		b |= icHeaderDigest
	}
	if data {
		b |= icDataDigest
	}
	return b
}

// Put writes the whole PDU into b and returns it.
func (q *ICReq) Put(b *[ICSize]byte) []byte {
	*b = [ICSize]byte{}
	Header{Type: TypeICReq, Size: ICSize, Length: ICSize}.Put(b[:])
	le.PutUint16(b[8:], q.Format)
	b[10], b[11] = q.Alignment, icFlags(q.HeaderDigest, q.DataDigest)
	le.PutUint32(b[12:], q.MaxR2T)
	return b[:]
}

// ParseICReq reads and checks a request. Its common header has been checked. The error is an *Error.
func ParseICReq(b *[ICSize]byte) (ICReq, error) {
	q := ICReq{le.Uint16(b[8:]), b[10], b[11]&icHeaderDigest != 0, b[11]&icDataDigest != 0, le.Uint32(b[12:])}
	switch {
	case q.Format != 0:
		return q, &Error{Status: FatalUnsupported, Info: 8, Why: fmt.Sprintf("PDU format version %d: want 0", q.Format)}
	case q.Alignment > MaxAlignment:
		return q, invalid(10, "data alignment %d: want 0 to %d", q.Alignment, MaxAlignment)
	case b[11]&^(icHeaderDigest|icDataDigest) != 0:
		return q, &Error{Status: FatalUnsupported, Info: 11, Why: fmt.Sprintf("digest types %02xh: there are header and data",
			b[11])}
	}
	return q, nil
}

// Put writes the whole PDU into b and returns it.
func (p *ICResp) Put(b *[ICSize]byte) []byte {
	*b = [ICSize]byte{}
	Header{Type: TypeICResp, Size: ICSize, Length: ICSize}.Put(b[:])
	le.PutUint16(b[8:], p.Format)
	b[10], b[11] = p.Alignment, icFlags(p.HeaderDigest, p.DataDigest)
	le.PutUint32(b[12:], p.MaxH2CData)
	return b[:]
}

// ParseICResp reads an answer and judges it by what was asked. The error is an Error.
func ParseICResp(b *[ICSize]byte, asked ICReq) (ICResp, error) {
	p := ICResp{le.Uint16(b[8:]), b[10], b[11]&icHeaderDigest != 0, b[11]&icDataDigest != 0, le.Uint32(b[12:])}
	switch {
	case p.Format != 0:
		return p, &Error{Status: FatalUnsupported, Info: 8, Why: fmt.Sprintf("PDU format version %d: want 0", p.Format)}
	case p.Alignment > MaxAlignment:
		return p, invalid(10, "data alignment %d: want 0 to %d", p.Alignment, MaxAlignment)
	case p.HeaderDigest != asked.HeaderDigest || p.DataDigest != asked.DataDigest:
		return p, invalid(11, "header digest %t and data digest %t where %t and %t were asked for", p.HeaderDigest,
			p.DataDigest, asked.HeaderDigest, asked.DataDigest)
	case p.MaxH2CData < MinMaxH2CData || p.MaxH2CData%4 != 0:
		return p, invalid(12, "MAXH2CDATA %d: want a multiple of 4 from %d on", p.MaxH2CData, MinMaxH2CData)
	}
	return p, nil
}

// Data is the header of an H2CData or C2HData PDU behind the common header.
type Data struct {
	CID    uint16 // CID is that of the command.
	Tag    uint16 // H2CData: of the R2T that is answered
	Offset uint32 // Offset is where the data begins in the command's buffer.
	Length uint32
}

// Put writes the header behind the common one.
func (d Data) Put(b []byte) {
	_ = b[DataSize-1]
	le.PutUint16(b[8:], d.CID)
	le.PutUint16(b[10:], d.Tag)
	le.PutUint32(b[12:], d.Offset)
	le.PutUint32(b[16:], d.Length)
	le.PutUint32(b[20:], 0)
}

// ParseData reads the header of a PDU whose frame has been judged. The error, an Error, says that its length is not the
// frame's.
func ParseData(f *Frame, b []byte) (Data, error) {
	_ = b[DataSize-1]
	d := Data{le.Uint16(b[8:]), le.Uint16(b[10:]), le.Uint32(b[12:]), le.Uint32(b[16:])}
	if d.Length != f.Data {
		return d, invalid(16, "%s: DATAL %d where %d bytes of data follow", f.Type, d.Length, f.Data)
	}
	return d, nil
}

// R2T asks the host for a part of a command's data.
type R2T struct {
	CID, Tag       uint16
	Offset, Length uint32
}

// Put writes the header behind the common one.
func (r R2T) Put(b []byte) { Data(r).Put(b) }

// ParseR2T reads the header of a PDU whose frame has been judged.
func ParseR2T(b []byte) R2T {
	_ = b[R2TSize-1]
	return R2T{le.Uint16(b[8:]), le.Uint16(b[10:]), le.Uint32(b[12:]), le.Uint32(b[16:])}
}

// PutCommand writes a command behind the common header.
func PutCommand(b []byte, c *nvme.Command) { copy(b[CommonSize:CapsuleCmdSize], c[:]) }

// CommandOf reads the command behind the common header.
func CommandOf(b []byte) nvme.Command { return nvme.Command(b[CommonSize:CapsuleCmdSize]) }

// PutCompletion writes a completion behind the common header.
func PutCompletion(b []byte, c *nvme.Completion) { copy(b[CommonSize:CapsuleRespSize], c[:]) }

// CompletionOf reads the completion behind the common header.
func CompletionOf(b []byte) nvme.Completion { return nvme.Completion(b[CommonSize:CapsuleRespSize]) }
