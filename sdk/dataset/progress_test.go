package dataset

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestProgressInOrder(t *testing.T) {
	p := NewProgress(Digest{}, 2, 3)
	for i := range uint64(3) {
		assert.Equal(t, i, p.Mark())
		assert.False(t, p.Done())
		require.NoError(t, p.Ack(i))
	}
	assert.True(t, p.Done())
	assert.Empty(t, p.Token().Ranges)
	_, ok := p.Pending(0)
	assert.False(t, ok)
	require.ErrorIs(t, p.Ack(3), ErrNumber)
}

func TestProgressJoinsRuns(t *testing.T) {
	p := NewProgress(Digest{}, 0, 20)
	for _, step := range []struct {
		ack    uint64
		mark   uint64
		ranges []Range
	}{
		{5, 0, []Range{{5, 6}}},
		{5, 0, []Range{{5, 6}}},
		{7, 0, []Range{{5, 6}, {7, 8}}},
		{6, 0, []Range{{5, 8}}},
		{4, 0, []Range{{4, 8}}},
		{8, 0, []Range{{4, 9}}},
		{2, 0, []Range{{2, 3}, {4, 9}}},
		{0, 1, []Range{{2, 3}, {4, 9}}},
		{1, 3, []Range{{4, 9}}},
		{1, 3, []Range{{4, 9}}},
		{19, 3, []Range{{4, 9}, {19, 20}}},
		{3, 9, []Range{{19, 20}}},
	} {
		require.NoError(t, p.Ack(step.ack))
		assert.Equal(t, step.mark, p.Mark(), "after %d", step.ack)
		assert.Equal(t, step.ranges, p.Token().Ranges, "after %d", step.ack)
	}
	assert.EqualValues(t, 10, p.Count())
	n, ok := p.Pending(19)
	assert.False(t, ok, "%d", n)
	n, ok = p.Pending(0)
	assert.True(t, ok)
	assert.EqualValues(t, 9, n)
}

// Against a set of numbers, with a checkpoint and a resume at any moment.
func TestProgressIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Uint64Range(0, 60).Draw(t, "total")
		job := Digest{1}
		p := NewProgress(job, rapid.Uint64().Draw(t, "epoch"), total)
		acked := map[uint64]bool{}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			n := rapid.Uint64Range(0, 62).Draw(t, "number")
			err := p.Ack(n)
			if n >= total {
				require.ErrorIs(t, err, ErrNumber)
				continue
			}
			require.NoError(t, err)
			acked[n] = true
			if rapid.IntRange(0, 9).Draw(t, "crash") == 0 {
				text, err := p.Token().MarshalText()
				require.NoError(t, err)
				var token Token
				require.NoError(t, token.UnmarshalText(text))
				epoch := p.Epoch()
				p, err = Resume(token, job, total)
				require.NoError(t, err)
				require.Equal(t, epoch, p.Epoch())
			}
		}
		require.EqualValues(t, len(acked), p.Count())
		require.Equal(t, uint64(len(acked)) == total, p.Done())
		pending := total
		for n := int64(total); n >= 0; n-- {
			if uint64(n) < total && !acked[uint64(n)] {
				pending = uint64(n)
			}
			require.Equal(t, acked[uint64(n)], p.Acked(uint64(n)))
			got, ok := p.Pending(uint64(n))
			require.Equal(t, pending < total, ok)
			if ok {
				require.Equal(t, pending, got)
			}
		}
		require.Equal(t, pending, p.Mark())
	})
}

// The bytes were computed in Python from the layout in Token's comment.
func TestTokenGolden(t *testing.T) {
	token := Token{Job: counting(), Epoch: 3, Mark: 1000, Ranges: []Range{{1002, 1003}, {1300, math.MaxUint64}}}
	const (
		wantHex = "4d52435402000102030405060708090a0b0c0d0e0f" +
			"101112131415161718191a1b1c1d1e1f03e807020201a902ebf5ffffffffffffff012a01f3e1"
		wantText = "TVJDVAIAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHwPoBwICAakC6_X_________ASoB8-E"
	)
	b, err := token.MarshalBinary()
	require.NoError(t, err)
	assert.Equal(t, wantHex, hex.EncodeToString(b))
	text, err := token.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, wantText, string(text))
	var back Token
	require.NoError(t, back.UnmarshalText(text))
	assert.Equal(t, token, back)
	assert.Equal(t, "job 000102030405, epoch 3, mark 1000 and 2 runs above it", token.String())
}

func TestResumeRefuses(t *testing.T) {
	job := Digest{7}
	token := Token{Job: job, Mark: 3, Ranges: []Range{{5, 9}}}
	_, err := Resume(token, Digest{8}, 100)
	require.ErrorIs(t, err, ErrOtherJob)
	_, err = Resume(token, job, 8)
	require.ErrorIs(t, err, ErrToken, "beyond the plan")
	p, err := Resume(token, job, 9)
	require.NoError(t, err)
	require.NoError(t, p.Ack(4))
	assert.Equal(t, []Range{{5, 9}}, token.Ranges, "the token is not changed by what follows")
	_, err = Resume(Token{Job: job, Ranges: []Range{{0, 2}}}, job, 9)
	require.ErrorIs(t, err, ErrToken, "a run at the mark")
	_, err = Resume(Token{Job: job, Mark: 10}, job, 9)
	require.ErrorIs(t, err, ErrToken)
}

func TestTokenRefusesBadRuns(t *testing.T) {
	for name, runs := range map[string][]Range{
		"at the mark": {{10, 12}},
		"below it":    {{3, 4}},
		"empty":       {{12, 12}},
		"backwards":   {{14, 12}},
		"touching":    {{12, 14}, {14, 16}},
		"out of order": {
			{20, 21}, {12, 14},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Token{Mark: 10, Ranges: runs}.MarshalBinary()
			require.ErrorIs(t, err, ErrToken)
			_, err = Token{Mark: 10, Ranges: runs}.MarshalText()
			require.ErrorIs(t, err, ErrToken)
		})
	}
}

// Any change of a token's bytes or text is found.
func TestTamperedTokenIsRefused(t *testing.T) {
	token := Token{Job: counting(), Epoch: 3, Mark: 1000, Ranges: []Range{{1002, 1003}, {1300, 9999}}}
	b, err := token.MarshalBinary()
	require.NoError(t, err)
	for i := range b {
		for bit := range 8 {
			c := append([]byte(nil), b...)
			c[i] ^= 1 << bit
			require.ErrorIs(t, new(Token).UnmarshalBinary(c), ErrToken, "byte %d bit %d", i, bit)
		}
		require.ErrorIs(t, new(Token).UnmarshalBinary(b[:i]), ErrToken, "cut to %d", i)
	}
	require.ErrorIs(t, new(Token).UnmarshalBinary(append(b, 0)), ErrToken)

	text, err := token.MarshalText()
	require.NoError(t, err)
	for i := range text {
		c := append([]byte(nil), text...)
		c[i] ^= 1
		require.ErrorIs(t, new(Token).UnmarshalText(c), ErrToken, "character %d", i)
	}
	require.ErrorIs(t, new(Token).UnmarshalText(append(text, '\n')), ErrToken)
	require.ErrorIs(t, new(Token).UnmarshalText(append(text, '=')), ErrToken)
	require.ErrorIs(t, new(Token).UnmarshalText(make([]byte, base64.RawURLEncoding.EncodedLen(MaxTokenBytes)+1)),
		ErrToken)
}

// signed ends a token's body with its right CRC, so that the test finds the fault inside the body.
func signed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

func TestTokenRefusesWrongBodies(t *testing.T) {
	head := func(numbers ...byte) []byte {
		b := append([]byte("MRCT\x02"), make([]byte, 32)...)
		return append(b, numbers...)
	}
	require.NoError(t, new(Token).UnmarshalBinary(signed(head(0, 5, 1, 2, 3))))
	for name, body := range map[string][]byte{
		"the former version":     append([]byte("MRCT\x01"), head(0, 0, 0)[5:]...),
		"another version":        append([]byte("MRCT\x03"), head(0, 0, 0)[5:]...),
		"a number padded":        head(0x80, 0, 5, 0),
		"a number cut":           head(0, 5, 0x80),
		"a number over 64 bits":  head(0, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"more runs than bytes":   head(0, 5, 2, 2, 3),
		"a count of runs absurd": head(0, 5, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, 3),
		"a gap of zero":          head(0, 5, 1, 0, 3),
		"a run of zero":          head(0, 5, 1, 2, 0),
		"a run past 2^64":        append(head(0, 5, 1, 2), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		"a gap past 2^64":        append(head(0, 5, 1), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1),
		"bytes left over":        head(0, 5, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, new(Token).UnmarshalBinary(signed(body)), ErrToken)
		})
	}
}

func TestTokenBoundsItsRuns(t *testing.T) {
	token := Token{Mark: 0}
	for i := range uint64(MaxTokenRanges) {
		token.Ranges = append(token.Ranges, Range{2*i + 1, 2*i + 2})
	}
	b, err := token.MarshalBinary()
	require.NoError(t, err)
	var back Token
	require.NoError(t, back.UnmarshalBinary(b))
	assert.Equal(t, token, back)
	token.Ranges = append(token.Ranges, Range{1 << 40, 1<<40 + 1})
	_, err = token.MarshalBinary()
	require.ErrorIs(t, err, ErrToken)
}

func FuzzToken(f *testing.F) {
	for _, t := range []Token{{}, {Job: counting(), Epoch: 3, Mark: 1000, Ranges: []Range{{1002, 1003},
		{1300, math.MaxUint64}}}} {
		b, err := t.MarshalBinary()
		require.NoError(f, err)
		f.Add(b[:len(b)-4])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_ = new(Token).UnmarshalBinary(body)
		_ = new(Token).UnmarshalText(body)
		b := signed(body)
		var token Token
		if err := token.UnmarshalBinary(b); err != nil {
			require.ErrorIs(t, err, ErrToken)
			return
		}
		again, err := token.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, b, again, "one token has one form")
		if p, err := Resume(token, token.Job, math.MaxUint64); err == nil {
			require.Equal(t, token.Mark, p.Token().Mark)
		}
	})
}
