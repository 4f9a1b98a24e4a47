package splits

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// of returns a request whose split counts to an owner.
func of(owner string, q Request) Request {
	q.Owner = owner
	return q
}

// owners returns the accounts of the owners.
func owners(s *Table) map[string]share {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]share{}
	for name, o := range s.accounts.owners {
		all[name] = *o
	}
	return all
}

// TestAnOwnersSplitsAreBounded checks the bound from both sides, and that it binds no other owner.
func TestAnOwnersSplitsAreBounded(t *testing.T) {
	d := &drive{}
	s := table(t, d, func(o *Options) { o.OwnerSplits = 2 })
	held := []*Response{take(t, s, of("ads", ask(0, 0, 1))), take(t, s, of("ads", ask(1, 16, 17)))}
	_, err := s.Get(t.Context(), of("ads", ask(2, 32, 33)), func() {})
	require.ErrorIs(t, err, ErrOwner)
	assert.ErrorContains(t, err, "ads has 2")
	held = append(held, take(t, s, of("ads", ask(0, 1, 2))), take(t, s, of("news", ask(3, 48, 49))),
		take(t, s, ask(4, 64, 65)))
	assert.Equal(t, 2, owners(s)["ads"].splits)
	for _, p := range held {
		s.Done(p, true)
	}
	for n := uint64(2); n < 16; n++ {
		s.Done(take(t, s, of("ads", ask(0, n, 16))), true)
	}
	eventually(t, func() bool { return owners(s)["ads"].splits == 1 })
	s.Done(take(t, s, of("ads", ask(2, 32, 33))), true)
	s.Close()
	assert.Empty(t, owners(s), "an owner that has nothing has no account")
}

// TestAnOwnersBytesAreBounded checks that an owner's jobs together make nothing ahead past the bound. A mini-batch that
// a request waits for is made all the same, and another owner's, too.
func TestAnOwnersBytesAreBounded(t *testing.T) {
	d := &drive{}
	s := table(t, d, func(o *Options) { o.OwnerBytes = 4 * size })
	other := of("ads", ask(1, 16, 32))
	other.Job[0] = 1
	p := take(t, s, of("ads", ask(0, 0, 16)))
	eventually(t, func() bool { return owners(s)["ads"].Bytes == 4*size })
	q := take(t, s, other)
	assert.EqualValues(t, 5*size, owners(s)["ads"].Bytes, "it was waited for")
	r := take(t, s, of("news", ask(2, 32, 48)))
	eventually(t, func() bool { return owners(s)["news"].Bytes == 4*size })
	s.Done(p, true)
	s.Done(q, true)
	s.Done(r, true)
	for n := uint64(1); n < 16; n++ {
		s.Done(take(t, s, of("ads", ask(0, n, 16))), true)
		assert.LessOrEqual(t, owners(s)["ads"].Bytes, int64(5*size))
	}
	s.Close()
	assert.Empty(t, owners(s))
}
