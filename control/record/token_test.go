package record

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
)

var testKey = bytes.Repeat([]byte{1}, KeyBytes)

func bareToken(t testing.TB) []byte {
	b, err := dataset.Token{Job: dataset.Digest{7}, Epoch: 3, Mark: 100, Ranges: []dataset.Range{{From: 102,
		To: 110}}}.MarshalBinary()
	require.NoError(t, err)
	return b
}

func TestTokensAreSealed(t *testing.T) {
	bare := bareToken(t)
	sealed := WrapToken(testKey, bare)
	token, ok, err := UnwrapToken(testKey, sealed)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.EqualValues(t, 100, token.Mark)

	token, ok, err = UnwrapToken(testKey, bare)
	require.NoError(t, err)
	assert.False(t, ok, "a bare one is told apart")
	assert.EqualValues(t, 3, token.Epoch)

	_, _, err = UnwrapToken(bytes.Repeat([]byte{2}, KeyBytes), sealed)
	assert.ErrorIs(t, err, dataset.ErrToken, "another cluster's key")
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		_, _, err := UnwrapToken(testKey, changed)
		assert.ErrorIs(t, err, dataset.ErrToken, "byte %d", i)
	}
	for n := range sealed {
		_, _, err := UnwrapToken(testKey, sealed[:n])
		assert.ErrorIs(t, err, dataset.ErrToken, "cut to %d bytes", n)
	}
	_, _, err = UnwrapToken(testKey, append(bytes.Clone(sealed), 0))
	assert.ErrorIs(t, err, dataset.ErrToken)
	_, _, err = UnwrapToken(testKey, make([]byte, dataset.MaxTokenBytes+100))
	assert.ErrorIs(t, err, dataset.ErrToken)
	// A tag over bytes that are not a token seals nothing.
	_, _, err = UnwrapToken(testKey, WrapToken(testKey, []byte("no token")))
	assert.ErrorIs(t, err, dataset.ErrToken)
}

func FuzzUnwrapToken(f *testing.F) {
	bare := bareToken(f)
	f.Add(bare)
	f.Add(WrapToken(testKey, bare))
	f.Add(WrapToken(testKey, nil))
	f.Add([]byte("MRT1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		token, sealed, err := UnwrapToken(testKey, b)
		if err != nil {
			require.ErrorIs(t, err, dataset.ErrToken)
			return
		}
		// One token has one form, sealed or not.
		again, err := token.MarshalBinary()
		require.NoError(t, err)
		if sealed {
			again = WrapToken(testKey, again)
		}
		require.Equal(t, b, again)
	})
}
