package control

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDescriptionsOfAnOwner checks that the descriptions of one owner's jobs, which are kept in etcd, are bounded
// together, and those of callers without an owner are not.
func TestDescriptionsOfAnOwner(t *testing.T) {
	l := &leader{o: &Options{OwnerShare: 0.5}}
	l.mu.claims = map[string]claim{}
	submit := func(name, owner string, pieces int) error {
		l.mu.claims[name] = claim{owner: owner}
		err := l.claimPieces(name, owner, pieces)
		if err != nil {
			delete(l.mu.claims, name)
		}
		return err
	}
	require.NoError(t, submit("first", "ads", maxPieces/2-1))
	err := submit("second", "ads", 2)
	assert.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), "%v", err)
	assert.ErrorContains(t, err, "at most 256MiB of one owner's")
	require.NoError(t, submit("second", "ads", 1))
	assert.Error(t, submit("third", "ads", 1))
	require.NoError(t, submit("other", "news", maxPieces/2))
	require.NoError(t, submit("of an operator", "", maxPieces))
	delete(l.mu.claims, "second")
	require.NoError(t, submit("third", "ads", 1))
	l.o.OwnerShare = 1e-9
	require.NoError(t, submit("alone", "small", 1), "one job is always let in")
}
