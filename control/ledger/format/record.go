package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"

	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// ErrRecord says that the bytes of a record are not whole, or are not those of the ledger that reads them.
var ErrRecord = errors.New("ledger: record")

// ChunkSplits is how many splits a chunk's bitmap covers.
const ChunkSplits = 1024

// MaxRuns bounds the runs of delivered numbers in an epoch's unfinished splits. It keeps a chunk's record below the
// 1.5 MiB that etcd takes. A trainer has few runs: one for each lease, and one for each mini-batch out of order.
const MaxRuns = 1 << 17

// A record is a header of 16 bytes, little-endian:
//
//	version u8 = 2 | kind u8 | n u16 | fence u64 | CRC32C u32 of all before it and of all after it
//
// and then, by kind,
//
//	ranks  n ranks, each: session's fence u64 | session's seq u64 | epoch u64
//	mark   n = 1: mark u64 | splits of the plan u64
//	chunk  n splits: (n+7)/8 bytes, bit i%8 of byte i/8 says that split 1024*chunk+i is delivered; bits above n are 0
//	       for each unfinished split of which some numbers are delivered, ascending: gap | number of runs |
//	       for each run of delivered numbers: gap | length
//
// The unnamed types are unsigned LEB128 in the fewest bytes. A gap counts what lies between an item and the item before
// it, or the beginning. Runs count the numbers of their split that the job owes: the numbers from which the job resumed
// are left out. So one state has one record.
const (
	RecordVersion = 2 // version of the records that this build writes and reads

	HeaderBytes = 16 // HeaderBytes is the length of a record's header: equal states have equal bytes behind it.
	rankBytes   = 24
	markBytes   = 16
)

// Kind is the kind of a record.
type Kind uint8

// The kinds of records.
const (
	RanksRecord Kind = iota // sessions and epochs of the ranks
	MarkRecord              // splits before the mark are delivered
	ChunkRecord             // what is delivered of 1,024 splits
)

var kindNames = [...]string{"ranks", "mark", "chunk"}

// String returns ranks, mark or chunk.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Record is a durable piece of a job's state.
type Record struct {
	Job   string
	Kind  Kind
	Epoch uint64 // Epoch is that of a mark or a chunk.
	Chunk uint32 // Chunk is the number of a chunk.
	Data  []byte // nil: delete the key
}

// Key returns the record's key below the job's key: "ranks", "e0/mark", "e0/c00000a" (the chunk in hex).
func (r Record) Key() string {
	switch r.Kind {
	case RanksRecord:
		return "ranks"
	case MarkRecord:
		return fmt.Sprintf("e%d/mark", r.Epoch)
	default:
		return fmt.Sprintf("e%d/c%06x", r.Epoch, r.Chunk)
	}
}

// RecordOf makes a record from a key below the job's key and a value. The error wraps ErrRecord.
func RecordOf(job, key string, data []byte) (Record, error) {
	r := Record{Job: job, Data: data}
	if key == "ranks" {
		return r, nil
	}
	epoch, rest, ok := strings.Cut(key, "/")
	if ok && strings.HasPrefix(epoch, "e") {
		var err error
		if r.Epoch, err = strconv.ParseUint(epoch[1:], 10, 64); err == nil {
			if rest == "mark" {
				r.Kind = MarkRecord
			} else if strings.HasPrefix(rest, "c") {
				r.Kind = ChunkRecord
				var c uint64
				c, err = strconv.ParseUint(rest[1:], 16, 32)
				r.Chunk = uint32(c)
			}
			if err == nil && r.Key() == key { // one record has one key
				return r, nil
			}
		}
	}
	return Record{}, fmt.Errorf("%w: job %s: key %q is none of ranks, eN/mark, eN/cHEX", ErrRecord, job, key)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal puts the header before a body.
func seal(k Kind, n int, fence uint64, body []byte) []byte {
	b := make([]byte, HeaderBytes+len(body))
	b[0], b[1] = RecordVersion, byte(k)
	binary.LittleEndian.PutUint16(b[2:], uint16(n))
	binary.LittleEndian.PutUint64(b[4:], fence)
	copy(b[HeaderBytes:], body)
	binary.LittleEndian.PutUint32(b[12:], checksum(b))
	return b
}

// checksum covers all bytes of a record except the checksum itself.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[HeaderBytes:])
}

// unseal checks a record's header and length and returns its n and its body.
func unseal(k Kind, b []byte) (n int, body []byte, err error) {
	if len(b) < HeaderBytes {
		return 0, nil, fmt.Errorf("%w: %v of %d bytes, the header alone has %d", ErrRecord, k, len(b), HeaderBytes)
	}
	if got, sum := checksum(b), binary.LittleEndian.Uint32(b[12:]); got != sum {
		return 0, nil, fmt.Errorf("%w: %v has CRC32C %08x, it says %08x: it was changed or cut", ErrRecord, k, got, sum)
	}
	if b[0] != RecordVersion {
		return 0, nil, fmt.Errorf("%w: %v of version %d, this build reads %d", ErrRecord, k, b[0], RecordVersion)
	}
	if Kind(b[1]) != k {
		return 0, nil, fmt.Errorf("%w: %v under the key of a %v", ErrRecord, Kind(b[1]), k)
	}
	n, body = int(binary.LittleEndian.Uint16(b[2:])), b[HeaderBytes:]
	want := 0
	switch k {
	case RanksRecord:
		want = n * rankBytes
	case MarkRecord:
		want = n * markBytes
	case ChunkRecord:
		want = max((n+7)/8, len(body)) // what follows the bitmap has any length
	}
	if len(body) != want {
		return 0, nil, fmt.Errorf("%w: %v of %d entries has %d bytes, want %d", ErrRecord, k, n, len(body), want)
	}
	return n, body, nil
}

// Rank is a rank's part of the ranks record.
type Rank struct{ Fence, Generation, Epoch uint64 }

// EncodeRanks returns the bytes of a ranks record. fence is that of the leader that writes the record.
func EncodeRanks(fence uint64, ranks []Rank) []byte {
	body := make([]byte, 0, len(ranks)*rankBytes)
	for _, r := range ranks {
		body = binary.LittleEndian.AppendUint64(body, r.Fence)
		body = binary.LittleEndian.AppendUint64(body, r.Generation)
		body = binary.LittleEndian.AppendUint64(body, r.Epoch)
	}
	return seal(RanksRecord, len(ranks), fence, body)
}

// DecodeRanks returns the ranks of a ranks record. The error wraps ErrRecord.
func DecodeRanks(b []byte) ([]Rank, error) {
	n, body, err := unseal(RanksRecord, b)
	if err != nil {
		return nil, err
	}
	ranks := make([]Rank, n)
	for i := range ranks {
		e := body[i*rankBytes:]
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(e[8*i:]) }
		ranks[i] = Rank{Fence: word(0), Generation: word(1), Epoch: word(2)}
	}
	return ranks, nil
}

// EncodeMark returns the bytes of a mark record: every split of the plan before the mark is delivered.
func EncodeMark(fence uint64, mark, splits int) []byte {
	body := binary.LittleEndian.AppendUint64(nil, uint64(mark))
	body = binary.LittleEndian.AppendUint64(body, uint64(splits))
	return seal(MarkRecord, 1, fence, body)
}

// DecodeMark returns the mark of a mark record, which it checks against the plan's splits. The error wraps ErrRecord.
func DecodeMark(b []byte, splits int) (mark int, err error) {
	n, body, err := unseal(MarkRecord, b)
	if err != nil {
		return 0, err
	}
	if n != 1 {
		return 0, fmt.Errorf("%w: %d marks", ErrRecord, n)
	}
	m, s := binary.LittleEndian.Uint64(body), binary.LittleEndian.Uint64(body[8:])
	if s != uint64(splits) || m > s {
		return 0, fmt.Errorf("%w: mark %d of %d splits, the plan has %d", ErrRecord, m, s, splits)
	}
	return int(m), nil
}

// Part is an unfinished split of a chunk, of which some numbers are delivered.
type Part struct {
	Split int            // Split is the number of the split in the chunk.
	Runs  numberset.Runs // Runs has the delivered ones of the numbers that the job owes, counted from the split's first.
}

// EncodeChunk encodes the n splits of a chunk, from the bits of a whole epoch and the chunk's parts, ascending.
func EncodeChunk(fence uint64, done numberset.Bits, chunk, n int, parts []Part) []byte {
	var bitmap [ChunkSplits / 8]byte
	for w := range (n + 63) / 64 {
		binary.LittleEndian.PutUint64(bitmap[8*w:], done[chunk*(ChunkSplits/64)+w])
	}
	body, next := bitmap[:(n+7)/8:(n+7)/8], 0
	for _, p := range parts {
		body = binary.AppendUvarint(body, uint64(p.Split-next))
		body = binary.AppendUvarint(body, uint64(len(p.Runs)))
		end := uint64(0)
		for _, r := range p.Runs {
			body = binary.AppendUvarint(body, r.From-end)
			body = binary.AppendUvarint(body, r.To-r.From)
			end = r.To
		}
		next = p.Split + 1
	}
	return seal(ChunkRecord, n, fence, body)
}

// DecodeChunk returns a chunk's bits and its parts; n is how many splits of the plan it covers. The error wraps
// ErrRecord.
func DecodeChunk(b []byte, n int) (done numberset.Bits, parts []Part, err error) {
	m, body, err := unseal(ChunkRecord, b)
	if err != nil {
		return nil, nil, err
	}
	if m != n || n > ChunkSplits {
		return nil, nil, fmt.Errorf("%w: chunk of %d splits, the plan has %d there", ErrRecord, m, n)
	}
	var bitmap [ChunkSplits / 8]byte
	copy(bitmap[:], body[:(n+7)/8])
	done = make(numberset.Bits, ChunkSplits/64)
	for w := range done {
		done[w] = binary.LittleEndian.Uint64(bitmap[8*w:])
	}
	if done.Next(n, ChunkSplits, true) != ChunkSplits {
		return nil, nil, fmt.Errorf("%w: chunk of %d splits has bits above them", ErrRecord, n)
	}
	parts, ok := decodeParts(body[(n+7)/8:], n, done)
	if !ok {
		return nil, nil, fmt.Errorf("%w: chunk of %d splits: %d bytes do not describe its unfinished splits", ErrRecord, n,
			len(body)-(n+7)/8)
	}
	return done, parts, nil
}

// decodeParts reads the parts of a chunk of n splits. It reports false for bytes that EncodeChunk does not write.
func decodeParts(b []byte, n int, done numberset.Bits) (parts []Part, ok bool) {
	r := numberReader{b}
	for next := 0; len(r.rest) > 0; {
		gap, runs := r.number(), r.number()
		if gap >= uint64(n-next) || runs == 0 || runs > uint64(len(r.rest)/2) || done.Get(next+int(gap)) {
			return nil, false
		}
		p := Part{Split: next + int(gap), Runs: make(numberset.Runs, 0, runs)}
		end := uint64(0)
		for i := range runs {
			skipped, length := r.number(), r.number()
			if skipped > dataset.MaxSplitFragments-end || i > 0 && skipped == 0 {
				return nil, false
			}
			from := end + skipped
			if length == 0 || length > dataset.MaxSplitFragments-from {
				return nil, false
			}
			end = from + length
			p.Runs = append(p.Runs, dataset.Range{From: from, To: end})
		}
		parts, next = append(parts, p), p.Split+1
	}
	return parts, true
}

// numberReader reads unsigned LEB128 numbers in the fewest bytes.
type numberReader struct{ rest []byte }

// number returns the next number. It returns the greatest number and ends the bytes if they do not begin with a number.
func (r *numberReader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.rest = nil
		return math.MaxUint64
	}
	r.rest = r.rest[n:]
	return v
}
