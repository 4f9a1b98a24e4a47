package auth

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func addMessages(f *testing.F) {
	for _, v := range readVectors(f) {
		if v.Group > FFDHE2048 {
			continue
		}
		for _, m := range [][]byte{v.Negotiate, v.Challenge, v.Reply, v.Success1, v.Success2} {
			f.Add(m)
		}
	}
	f.Add((&FailureMessage{MessageFailure1, 1, NotAuthenticated}).Marshal())
	f.Add((&FailureMessage{MessageFailure2, 1, GroupUnusable}).Marshal())
}

// A parser fails only with a *TransactionError, and a message that it accepts can be laid out and read again.
func FuzzMessages(f *testing.F) {
	addMessages(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		failure := func(err error) {
			var f *TransactionError
			require.ErrorAs(t, err, &f)
			require.NotZero(t, f.Reason)
		}
		if n, err := ParseNegotiate(b); err != nil {
			failure(err)
		} else {
			again, err := n.Marshal()
			require.NoError(t, err)
			m, err := ParseNegotiate(again)
			require.NoError(t, err)
			require.Equal(t, n, m)
		}
		if c, err := ParseChallenge(b); err != nil {
			failure(err)
		} else {
			m, err := ParseChallenge(c.Marshal())
			require.NoError(t, err)
			require.Equal(t, c, m)
		}
		for _, hash := range allHashes {
			for _, group := range []Group{NullGroup, FFDHE2048, FFDHE8192} {
				if r, err := ParseReply(b, hash, group); err != nil {
					failure(err)
				} else {
					m, err := ParseReply(r.Marshal(), hash, group)
					require.NoError(t, err)
					require.Equal(t, r, m)
				}
			}
			if s, err := ParseSuccess1(b, hash); err != nil {
				failure(err)
			} else {
				m, err := ParseSuccess1(s.Marshal(), hash)
				require.NoError(t, err)
				require.Equal(t, s, m)
			}
		}
		if _, err := ParseSuccess2(b); err != nil {
			failure(err)
		}
		if _, err := ParseFailure(b); err != nil {
			failure(err)
		}
	})
}

// A host that does not hold the key cannot get a queue with any messages: the input is cut into messages.
func FuzzResponder(f *testing.F) {
	for _, v := range readVectors(f) {
		if v.Group <= FFDHE2048 {
			f.Add(append([]byte{byte(len(v.Negotiate))}, v.Negotiate...), []byte(v.Reply), []byte(v.Success2))
		}
	}
	key, ctrlKey := newTestKey(f, SHA256), newTestKey(f, NoHash)
	f.Fuzz(func(t *testing.T, first, second, third []byte) {
		r, err := NewResponder(ControllerOptions{HostNQN: testHost, SubsystemNQN: testSubsys, Key: key,
			ControllerKey: ctrlKey,
			Groups:        []Group{FFDHE2048, NullGroup}})
		require.NoError(t, err)
		for _, in := range [][]byte{first, second, third, first} {
			_ = r.Send(in)
			out, err := r.Receive(MaxMessage)
			require.NoError(t, err)
			_, _, ok := Header(out)
			require.True(t, ok)
			require.False(t, r.Authenticated())
		}
	})
}

// A host never accepts a controller that does not hold the keys, for any messages.
func FuzzHost(f *testing.F) {
	for _, v := range readVectors(f) {
		if v.Group <= FFDHE2048 {
			f.Add([]byte(v.Challenge), []byte(v.Success1))
		}
	}
	key, ctrlKey := newTestKey(f, SHA256), newTestKey(f, NoHash)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		h, err := NewHost(HostOptions{HostNQN: testHost, SubsystemNQN: testSubsys, Key: key, ControllerKey: ctrlKey,
			Groups: []Group{FFDHE2048, NullGroup}, Transaction: 0x4242})
		require.NoError(t, err)
		_, _, err = h.Step(nil)
		require.NoError(t, err)
		for _, in := range [][]byte{first, second} {
			_, _, _ = h.Step(in)
			require.NotEqual(t, Authenticated, h.state)
		}
	})
}
