package remote

import (
	"fmt"

	"github.com/millrace/millrace/sdk/dataset"
)

// A token of the service is tokenMagic, a token of sdk/dataset, and a tag that only the control plane can make and
// check: HMAC-SHA256 under the cluster's key.
const (
	tokenMagic = "MRT1"
	tokenTag   = 32
)

// ReadToken reads a token of [Job.Checkpoint] or of sdk/dataset. It does not check the tag, which the control plane
// checks. The error wraps dataset.ErrToken.
func ReadToken(b []byte) (dataset.Token, error) {
	var t dataset.Token
	if len(b) >= len(tokenMagic) && string(b[:len(tokenMagic)]) == tokenMagic {
		if len(b) < len(tokenMagic)+tokenTag {
			return t, fmt.Errorf("%w: %d bytes are too few for one of the service", dataset.ErrToken, len(b))
		}
		b = b[len(tokenMagic) : len(b)-tokenTag]
	}
	err := t.UnmarshalBinary(b)
	return t, err
}
