package auth

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// carry authenticates a host with a responder as a transport would: sends, and receives of MaxMessage bytes padded.
func carry(t testing.TB, h *Host, r *Responder) error {
	var in []byte
	for {
		out, done, err := h.Step(in)
		if out != nil {
			_ = r.Send(out)
		}
		if err != nil || done {
			return err
		}
		m, err := r.Receive(MaxMessage)
		require.NoError(t, err)
		in = make([]byte, MaxMessage)
		copy(in, m)
	}
}

func TestResponder(t *testing.T) {
	for _, both := range []bool{false, true} {
		ho, co := keysOf(t, both)
		r, err := NewResponder(co)
		require.NoError(t, err)
		assert.False(t, r.Authenticated())
		assert.False(t, r.InProgress())
		h, err := NewHost(ho)
		require.NoError(t, err)
		require.NoError(t, carry(t, h, r))
		assert.True(t, r.Authenticated())
		assert.False(t, r.InProgress())
		assert.False(t, r.Broken())
		assert.Equal(t, Agreed{SHA512, FFDHE3072}, r.Agreed())

		// Again, on the queue in use: it stays usable meanwhile, and a wrong key then ends it.
		ho.Transaction++
		h, err = NewHost(ho)
		require.NoError(t, err)
		offer, _, err := h.Step(nil)
		require.NoError(t, err)
		require.NoError(t, r.Send(offer))
		assert.True(t, r.Authenticated())
		assert.True(t, r.InProgress())
		m, err := r.Receive(MaxMessage)
		require.NoError(t, err)
		out, _, err := h.Step(m)
		require.NoError(t, err)
		require.NoError(t, r.Send(out))
		m, err = r.Receive(MaxMessage)
		require.NoError(t, err)
		out, done, err := h.Step(m)
		require.NoError(t, err)
		require.True(t, done)
		if both {
			require.NoError(t, r.Send(out))
		}
		assert.True(t, r.Authenticated())

		ho.Transaction, ho.Key = ho.Transaction+1, newTestKey(t, NoHash)
		h, err = NewHost(ho)
		require.NoError(t, err)
		require.ErrorIs(t, carry(t, h, r), NotAuthenticated)
		assert.False(t, r.Authenticated())
		assert.True(t, r.Broken())
		require.Error(t, r.Send(offer), "a broken queue takes nothing more")
		assert.True(t, r.Broken())
	}
	_, err := NewResponder(ControllerOptions{})
	require.ErrorIs(t, err, ErrOptions)
}

func TestResponderAllocation(t *testing.T) {
	ho, co := keysOf(t, false)
	co.Groups = []Group{NullGroup}
	r, err := NewResponder(co)
	require.NoError(t, err)
	h, err := NewHost(ho)
	require.NoError(t, err)
	offer, _, err := h.Step(nil)
	require.NoError(t, err)
	require.NoError(t, r.Send(offer))
	for _, n := range []int{0, 1, 79} {
		_, err = r.Receive(n)
		require.ErrorIs(t, err, ErrAllocation)
	}
	m, err := r.Receive(80)
	require.NoError(t, err)
	assert.Len(t, m, 80)
}

// Every message out of turn leads to AUTH_Failure1 and the end of the connection.
func TestResponderOutOfTurn(t *testing.T) {
	ho, co := keysOf(t, true)
	ho.Groups = []Group{NullGroup}
	offer := func(t *testing.T) []byte {
		h, err := NewHost(ho)
		require.NoError(t, err)
		m, _, err := h.Step(nil)
		require.NoError(t, err)
		return m
	}
	for name, do := range map[string]func(t *testing.T, r *Responder){
		"receive first": func(*testing.T, *Responder) {},
		"two sends": func(t *testing.T, r *Responder) {
			require.NoError(t, r.Send(offer(t)))
			require.Error(t, r.Send(offer(t)))
		},
		"two receives": func(t *testing.T, r *Responder) {
			require.NoError(t, r.Send(offer(t)))
			_, err := r.Receive(4096)
			require.NoError(t, err)
		},
		"garbage":          func(t *testing.T, r *Responder) { require.Error(t, r.Send([]byte("hello"))) },
		"garbage repeated": func(t *testing.T, r *Responder) { require.Error(t, r.Send(nil)); require.Error(t, r.Send(nil)) },
		"success2 first":   func(t *testing.T, r *Responder) { require.Error(t, r.Send((&Success2{}).Marshal())) },
		"failure2 first": func(t *testing.T, r *Responder) {
			require.Error(t, r.Send((&FailureMessage{ID: MessageFailure2}).Marshal()))
		},
		"message after end": func(t *testing.T, r *Responder) {
			h, err := NewHost(ho)
			require.NoError(t, err)
			require.NoError(t, carry(t, h, r))
			require.True(t, r.Authenticated())
			require.Error(t, r.Send((&Success2{Transaction: ho.Transaction}).Marshal()))
		},
		"second send while success1 waits": func(t *testing.T, r *Responder) {
			o := ho
			o.ControllerKey = Key{}
			h, err := NewHost(o)
			require.NoError(t, err)
			m, _, err := h.Step(nil)
			require.NoError(t, err)
			require.NoError(t, r.Send(m))
			m, err = r.Receive(4096)
			require.NoError(t, err)
			m, _, err = h.Step(m)
			require.NoError(t, err)
			require.NoError(t, r.Send(m))
			require.True(t, r.Authenticated())
			require.Error(t, r.Send(offer(t)))
			require.False(t, r.Authenticated())
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewResponder(co)
			require.NoError(t, err)
			do(t, r)
			m, err := r.Receive(4096)
			require.NoError(t, err)
			f, err := ParseFailure(m)
			require.NoError(t, err)
			assert.Equal(t, MessageFailure1, f.ID)
			assert.Contains(t, []Reason{IncorrectMessage, IncorrectPayload}, f.Reason)
			assert.True(t, r.Broken())
			assert.False(t, r.Authenticated())
		})
	}
}

// A host reports a failure after the responder's last message.
func TestResponderHearsOfFailureAfterTheEnd(t *testing.T) {
	ho, co := keysOf(t, false)
	r, err := NewResponder(co)
	require.NoError(t, err)
	h, err := NewHost(ho)
	require.NoError(t, err)
	require.NoError(t, carry(t, h, r))
	require.True(t, r.Authenticated())
	require.ErrorIs(t, r.Send((&FailureMessage{MessageFailure2, ho.Transaction, HashUnusable}).Marshal()), HashUnusable)
	assert.False(t, r.Authenticated())
	assert.True(t, r.Broken())
}

func TestResponderHearsOfFailure(t *testing.T) {
	ho, co := keysOf(t, true)
	ho.ControllerKey = newTestKey(t, NoHash)
	r, err := NewResponder(co)
	require.NoError(t, err)
	h, err := NewHost(ho)
	require.NoError(t, err)
	require.ErrorIs(t, carry(t, h, r), NotAuthenticated)
	assert.True(t, r.Broken(), "the host found us out: nothing waits to be received")
	assert.False(t, r.Authenticated())
}
