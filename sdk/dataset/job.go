package dataset

import (
	"crypto/sha256"
	"encoding/binary"
)

// jobMagic begins the bytes of which a job's digest is the SHA-256. Its last byte is the version of their form.
const jobMagic = "millrace.job\x01"

// JobDigest names a job: the SHA-256 of, in this order and little-endian,
//
//	"millrace.job" 01h | manifest digest, 32 bytes | length of pipeline, u64 | pipeline |
//	batch, u64 | tail, u8 (keep 0, drop 1) | shuffle, u8 (splits 0, none 1, rows 2) | window, u64 (0 unless rows) |
//	seed, u64 | split_batches, u64 | boundary, u8 = 1 (only if it is none)
//
// pipeline is the canonical form of the feature pipeline (sdk/pipeline). The epoch is not part of a job's identity.
// The error wraps ErrOptions.
func JobDigest(manifest Digest, pipeline []byte, o Options) (Digest, error) {
	return SelectedJobDigest(manifest, nil, pipeline, o)
}

// SelectedJobDigest is JobDigest for a job over selected rows: the digest of the selection, 32 bytes, comes
// last. Without a selection (nil) it is JobDigest. The error wraps ErrOptions.
func SelectedJobDigest(manifest Digest, selection *Digest, pipeline []byte, o Options) (Digest, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Digest{}, err
	}
	window := uint64(0)
	if o.Shuffle == ShuffleRows {
		window = uint64(o.Window)
	}
	h := sha256.New()
	b := append([]byte(jobMagic), manifest[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(pipeline)))
	h.Write(b)
	h.Write(pipeline)
	b = binary.LittleEndian.AppendUint64(b[:0], uint64(o.Batch))
	b = append(b, byte(o.Tail), byte(o.Shuffle))
	b = binary.LittleEndian.AppendUint64(b, window)
	b = binary.LittleEndian.AppendUint64(b, o.Seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(o.SplitBatches))
	if o.Boundary != BoundaryPartition {
		b = append(b, byte(o.Boundary))
	}
	if selection != nil {
		b = append(b, selection[:]...)
	}
	h.Write(b)
	return Digest(h.Sum(nil)), nil
}
