package pdu

import (
	"encoding/binary"

	"github.com/millrace/millrace/internal/crc32c"
)

// Digest is the CRC32C of b.
func Digest(b []byte) uint32 { return crc32c.Checksum(b) }

// UpdateDigest continues a digest over more bytes; the digest of none is 0.
func UpdateDigest(d uint32, b []byte) uint32 { return crc32c.Update(d, b) }

// PutDigest writes a digest's four bytes.
func PutDigest(b []byte, d uint32) { binary.LittleEndian.PutUint32(b, d) }

// DigestOf reads a digest's four bytes.
func DigestOf(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// CheckHeader checks the digest after a header; b holds the header and the digest. The error is an *Error.
func CheckHeader(b []byte) error {
	n := len(b) - DigestSize
	if got, want := Digest(b[:n]), DigestOf(b[n:]); got != want {
		return &Error{Status: FatalHeaderDigest, Info: want, Why: "the header's digest does not match"}
	}
	return nil
}
