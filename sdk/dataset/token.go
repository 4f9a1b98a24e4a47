package dataset

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// ErrToken says that bytes are not a whole, untouched checkpoint token.
var ErrToken = errors.New("dataset: checkpoint token")

// Bounds of a token. Each range above the mark holds mini-batches that the trainer took out of order; no input queue
// holds a million of them.
const (
	MaxTokenRanges = 1 << 20
	MaxTokenBytes  = tokenFixed + 3*binary.MaxVarintLen64 + MaxTokenRanges*2*binary.MaxVarintLen64 + 4
)

// TokenVersion is the version of the tokens that this build writes and reads.
const TokenVersion = 2

const (
	tokenMagic = "MRCT"
	tokenFixed = len(tokenMagic) + 1 + len(Digest{})
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Token is a checkpoint: which mini-batches of which epoch of which job the trainer has acknowledged. It counts
// mini-batches, not rows or bytes, so that it holds on any number of drives.
//
// Its binary form is
//
//	"MRCT" | version, u8 = 2 | job digest, 32 bytes | epoch | mark | number of ranges |
//	for each range: gap since the mark or the last range's end, length | CRC32C of all before it, u32 little-endian
//
// where the unnamed types are unsigned LEB128 in the fewest bytes. Its text is the unpadded URL-safe base64 of that.
type Token struct {
	Job    Digest
	Epoch  uint64
	Mark   uint64  // all numbers below were acknowledged, this one was not
	Ranges []Range // acknowledged numbers above the mark
}

// Acknowledged returns every range of acknowledged numbers, those below the mark included.
func (t Token) Acknowledged() []Range {
	if t.Mark == 0 {
		return t.Ranges
	}
	return append([]Range{{To: t.Mark}}, t.Ranges...)
}

// validate refuses ranges that do not ascend, are empty or touch.
func (t *Token) validate() error {
	if len(t.Ranges) > MaxTokenRanges {
		return fmt.Errorf("%w: %d ranges above the mark, at most %d", ErrToken, len(t.Ranges), MaxTokenRanges)
	}
	end := t.Mark
	for i, r := range t.Ranges {
		if r.From <= end || r.To <= r.From {
			return fmt.Errorf("%w: range %d [%d, %d) does not follow %d", ErrToken, i, r.From, r.To, end)
		}
		end = r.To
	}
	return nil
}

// MarshalBinary returns the binary form. The error wraps ErrToken.
func (t Token) MarshalBinary() ([]byte, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	b := append([]byte(tokenMagic), TokenVersion)
	b = append(b, t.Job[:]...)
	b = binary.AppendUvarint(b, t.Epoch)
	b = binary.AppendUvarint(b, t.Mark)
	b = binary.AppendUvarint(b, uint64(len(t.Ranges)))
	end := t.Mark
	for _, r := range t.Ranges {
		b = binary.AppendUvarint(b, r.From-end)
		b = binary.AppendUvarint(b, r.To-r.From)
		end = r.To
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

// UnmarshalBinary reads the binary form. The error wraps ErrToken.
func (t *Token) UnmarshalBinary(b []byte) error {
	if len(b) > MaxTokenBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrToken, len(b), MaxTokenBytes)
	}
	if len(b) < tokenFixed+3+4 || string(b[:len(tokenMagic)]) != tokenMagic {
		return fmt.Errorf("%w: %d bytes that do not start with %s", ErrToken, len(b), tokenMagic)
	}
	switch v := b[len(tokenMagic)]; {
	case v == 1:
		return fmt.Errorf("%w: version 1, of a build that read units, decimals, NaN and the order of files "+
			"differently: its mini-batches are not those of this build; start again (train with a new --checkpoint, "+
			"millrace.open without state)", ErrToken)
	case v != TokenVersion:
		return fmt.Errorf("%w: version %d, this build reads %d", ErrToken, v, TokenVersion)
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return fmt.Errorf("%w: CRC32C %08x, it says %08x: it was changed or cut", ErrToken, got, sum)
	}
	r := tokenReader{rest: body[tokenFixed:]}
	var v Token
	copy(v.Job[:], body[len(tokenMagic)+1:])
	v.Epoch, v.Mark = r.uvarint(), r.uvarint()
	n := r.uvarint()
	// A range takes at least two bytes, so the count allocates no more than the token's length allows.
	if r.err == nil && (n > MaxTokenRanges || n > uint64(len(r.rest)/2)) {
		r.err = fmt.Errorf("%d ranges in %d bytes", n, len(r.rest))
	}
	if r.err == nil && n > 0 {
		v.Ranges = make([]Range, 0, n)
		end := v.Mark
		for range n {
			gap, length := r.uvarint(), r.uvarint()
			if r.err != nil {
				break
			}
			if gap == 0 || length == 0 || gap > math.MaxUint64-end || length > math.MaxUint64-end-gap {
				r.err = fmt.Errorf("a gap of %d and a range of %d after %d", gap, length, end)
				break
			}
			v.Ranges = append(v.Ranges, Range{end + gap, end + gap + length})
			end += gap + length
		}
	}
	if r.err == nil && len(r.rest) != 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.rest))
	}
	if r.err != nil {
		return fmt.Errorf("%w: %w", ErrToken, r.err)
	}
	*t = v
	return nil
}

// MarshalText returns the text form.
func (t Token) MarshalText() ([]byte, error) {
	b, err := t.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return base64.RawURLEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText reads the text form. The error wraps ErrToken.
func (t *Token) UnmarshalText(text []byte) error {
	if len(text) > base64.RawURLEncoding.EncodedLen(MaxTokenBytes) {
		return fmt.Errorf("%w: %d characters", ErrToken, len(text))
	}
	enc := base64.RawURLEncoding.Strict()
	b, err := enc.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("%w: not base64: %w", ErrToken, err)
	}
	// base64 skips line ends, and one token has one text.
	if enc.EncodedLen(len(b)) != len(text) {
		return fmt.Errorf("%w: line ends inside", ErrToken)
	}
	return t.UnmarshalBinary(b)
}

// String returns a description for people. It is not the text form.
func (t Token) String() string {
	return fmt.Sprintf("job %.12s, epoch %d, mark %d and %d runs above it", t.Job.String(), t.Epoch, t.Mark,
		len(t.Ranges))
}

// tokenReader reads numbers from a token's bytes. It keeps the first error and returns 0 from then on.
type tokenReader struct {
	rest []byte
	err  error
}

// uvarint reads an unsigned LEB128 number in the fewest bytes.
func (r *tokenReader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.err = errors.New("a number is cut or too large")
		return 0
	}
	if n > 1 && r.rest[n-1] == 0 {
		r.err = errors.New("a number takes more bytes than it needs")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}
