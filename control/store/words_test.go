package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// TestEtcdsWords: etcd's errors that end when etcd has a leader again become ErrAway, both as the client returns them
// and as they come over the wire. ErrNoSpace of etcd becomes the ErrNoSpace of this package, and other errors are
// returned as they are.
func TestEtcdsWords(t *testing.T) {
	for _, err := range []error{rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrNoLeader,
		rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.Error(rpctypes.ErrGRPCTimeout)} {
		got := words(fmt.Errorf("commit: %w", err))
		require.ErrorIs(t, got, ErrAway)
		require.ErrorIs(t, got, err)
	}
	assert.Equal(t, ErrNoSpace, words(rpctypes.ErrNoSpace))
	for _, err := range []error{rpctypes.ErrCompacted, rpctypes.ErrEmptyKey, errors.New("another")} {
		assert.Equal(t, err, words(err))
	}
}
