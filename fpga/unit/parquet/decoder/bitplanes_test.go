package decoder

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// TestQuestions compares answers about levels with levels read one by one, for every width, both ways of packing, and
// runs cut at every place of a batch.
func TestQuestions(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	for width := uint(0); width <= 6; width++ {
		for range 60 {
			limit := uint32(1)<<width - 1
			if width > 0 && r.Intn(2) == 0 {
				limit -= uint32(r.Intn(1 << (width - 1)))
			}
			if levelWidth(uint8(limit)) != width {
				continue
			}
			n := 1 + r.Intn(levelBatchSize)
			levels := make([]byte, n)
			for i := range levels {
				if i > 0 && r.Intn(3) > 0 {
					levels[i] = levels[i-1]
				} else {
					levels[i] = byte(r.Intn(int(limit) + 1))
				}
			}
			section := runs{}
			if r.Intn(4) == 0 {
				section = newBitPacked(packMSB(levels, width), n, width, limit)
			} else {
				section = newRuns(packRuns(r, levels, width), width, limit)
			}
			whole := section
			first := r.Intn(n + 1)
			answers := make([]bitmap, limit+2)
			questions := make([]levelQuestion, len(answers))
			for i := range questions {
				questions[i] = levelQuestion{uint32(i), &answers[i]}
				answers[i].setRange(r.Intn(2000), 2001+r.Intn(2000)) // of another batch
			}
			for _, part := range [][]byte{levels[:first], levels[first:]} {
				require.NoError(t, section.answer(len(part), questions))
				for threshold := range limit + 2 {
					got := &answers[threshold]
					from := r.Intn(len(part) + 1)
					var ones []int32
					for i, l := range part {
						is := uint32(l) >= threshold
						if is != (got[i>>6]>>(i&63)&1 == 1) {
							require.Fail(t, "wrong answer", "width %d, level %d of %d at least %d", width, i, n,
								threshold)
						}
						if i >= from && is {
							if i%97 == 0 {
								require.Equal(t, i, got.nthSet(len(ones), from, len(part)))
							}
							ones = append(ones, int32(i))
						}
					}
					if tail := len(part) & 63; tail > 0 {
						require.Zero(t, got[len(part)>>6]>>tail, "bits behind the levels")
					}
					require.Equal(t, len(ones), got.countRange(from, len(part)))
					require.Equal(t, len(part), got.nthSet(len(ones), from, len(part)))
					where := make([]int32, len(ones)+positionSlack)
					setPositions(where, got, from, len(part))
					require.Equal(t, ones, append([]int32(nil), where[:len(ones)]...))
				}
			}
			if limit > 0 {
				// The same levels where one less is allowed.
				top := byte(0)
				for _, l := range levels {
					top = max(top, l)
				}
				if uint32(top) == limit && levelWidth(uint8(limit-1)) == width {
					whole.limit--
					require.Error(t, whole.answer(n, questions))
				}
			}
		}
	}
}

// TestOneBit compares levels of one bit with what was packed: runs of all lengths, of which the short ones have a loop
// of their own, in pieces, up to the section's last byte, and a level that is too high at every place.
func TestOneBit(t *testing.T) {
	r := rand.New(rand.NewSource(8))
	for range 400 {
		n := 1 + r.Intn(3000)
		levels := make([]byte, n)
		longest := 1 + r.Intn(1<<r.Intn(10))
		for i := 0; i < n; {
			k, v := 1+r.Intn(longest), byte(r.Intn(2))
			for ; k > 0 && i < n; k-- {
				levels[i] = v
				i++
			}
		}
		packed := packRuns(r, levels, 1)
		whole := newRuns(bytes.Clone(packed), 1, 1) // nothing behind the section can be read
		at := 0
		for at < n {
			k := min(1+r.Intn(n), n-at)
			dst := make([]uint64, (k+63)/64)
			require.NoError(t, whole.readBits(dst, k))
			for i, want := range levels[at : at+k] {
				if got := byte(dst[i>>6] >> (i & 63) & 1); got != want {
					require.Equal(t, want, got, "level %d of %d", at+i, n)
				}
			}
			at += k
		}
		require.Empty(t, whole.rest)
		short := newRuns(packed[:len(packed)-1], 1, 1)
		require.Error(t, short.readBits(make([]uint64, (n+63)/64), n))
	}
	for at := range 40 {
		var b []byte
		for range at {
			b = append(b, 3, 0xaa, 10, 1)
		}
		b = append(b, 10, 2)
		for range 10 {
			b = append(b, 3, 0xaa)
		}
		bad := newRuns(b, 1, 1)
		require.ErrorIs(t, bad.readBits(make([]uint64, 20), 13*at+5+80), format.ErrCorrupt)
	}
}

// packMSB is the deprecated BIT_PACKED.
func packMSB(levels []byte, width uint) []byte {
	b := make([]byte, (len(levels)*int(width)+7)/8)
	bit := 0
	for _, l := range levels {
		for k := int(width) - 1; k >= 0; k-- {
			b[bit>>3] |= l >> k & 1 << (7 - bit&7)
			bit++
		}
	}
	return b
}

// packRuns writes levels as runs of either kind, by chance.
func packRuns(r *rand.Rand, levels []byte, width uint) []byte {
	var b []byte
	header := func(h int) {
		for ; h >= 0x80; h >>= 7 {
			b = append(b, byte(h)|0x80)
		}
		b = append(b, byte(h))
	}
	for len(levels) > 0 {
		n := 1
		for n < len(levels) && levels[n] == levels[0] {
			n++
		}
		if len(levels) >= 8 && r.Intn(2) == 0 || width == 0 && len(levels) >= 8 {
			groups := 1 + r.Intn(len(levels)/8)
			header(groups<<1 | 1)
			packed := make([]byte, groups*int(width))
			for i, l := range levels[:8*groups] {
				for k := range int(width) {
					bit := i*int(width) + k
					packed[bit>>3] |= l >> k & 1 << (bit & 7)
				}
			}
			b, levels = append(b, packed...), levels[8*groups:]
			continue
		}
		n = 1 + r.Intn(n)
		header(n << 1)
		if width > 0 {
			b = append(b, levels[0])
		}
		levels = levels[n:]
	}
	return b
}
