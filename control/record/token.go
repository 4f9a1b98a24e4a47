package record

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"

	"github.com/millrace/millrace/sdk/dataset"
)

// TokenMagic begins a token of the service, which is
//
//	"MRT1" | a token of sdk/dataset | HMAC-SHA256 of all before it under the cluster's key, 32 bytes
//
// A job that resumes from a sealed token continues at the place at which this cluster stopped.
const TokenMagic = "MRT1"

// KeyBytes is the length of the cluster's key.
const KeyBytes = 32

// WrapToken seals a token of sdk/dataset under the cluster's key.
func WrapToken(key, token []byte) []byte {
	b := make([]byte, 0, len(TokenMagic)+len(token)+sha256.Size)
	b = append(append(b, TokenMagic...), token...)
	return append(b, tag(key, b)...)
}

// UnwrapToken returns the token that WrapToken sealed. For a token of sdk/dataset that was never sealed, sealed is
// false, and the caller decides whether to accept the token. The error wraps dataset.ErrToken.
func UnwrapToken(key, b []byte) (t dataset.Token, sealed bool, err error) {
	if len(b) > len(TokenMagic)+dataset.MaxTokenBytes+sha256.Size {
		return t, false, fmt.Errorf("%w: %d bytes are too many", dataset.ErrToken, len(b))
	}
	if len(b) >= len(TokenMagic) && string(b[:len(TokenMagic)]) == TokenMagic {
		if len(b) < len(TokenMagic)+sha256.Size {
			return t, true, fmt.Errorf("%w: %d bytes are too few for one of the service", dataset.ErrToken, len(b))
		}
		body, have := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
		if !hmac.Equal(have, tag(key, body)) {
			return t, true, fmt.Errorf("%w: its tag is not this cluster's: it was changed, or another cluster made it",
				dataset.ErrToken)
		}
		sealed, b = true, body[len(TokenMagic):]
	}
	err = t.UnmarshalBinary(b)
	return t, sealed, err
}

func tag(key, b []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(b)
	return m.Sum(nil)
}
