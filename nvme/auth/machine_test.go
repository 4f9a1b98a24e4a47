package auth

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/statediagram"
	"github.com/millrace/millrace/internal/transition"
)

const (
	testHost   = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001"
	testSubsys = "nqn.2025-01.example.millrace:drive0"
)

var allHashes = []Hash{SHA256, SHA384, SHA512}

func newTestKey(t testing.TB, h Hash) Key {
	k, err := GenerateKey(h)
	require.NoError(t, err)
	return k
}

// keysOf are options that fit together, with a controller key if both.
func keysOf(t testing.TB, both bool) (HostOptions, ControllerOptions) {
	h := HostOptions{HostNQN: testHost, SubsystemNQN: testSubsys, Key: newTestKey(t, SHA256), Transaction: 0x1234}
	if both {
		h.ControllerKey = newTestKey(t, SHA512)
	}
	return h, ControllerOptions{HostNQN: testHost, SubsystemNQN: testSubsys, Key: h.Key, ControllerKey: h.ControllerKey}
}

// run is a transaction of a host and a controller whose messages pass through change (nil: as they are).
type run struct {
	host               *Host
	controller         *Controller
	hostErr, ctrlErr   error
	messages           [][]byte
	hostDone, ctrlDone bool
}

func newRun(t testing.TB, h HostOptions, c ControllerOptions) *run {
	host, err := NewHost(h)
	require.NoError(t, err)
	ctrl, err := NewController(c)
	require.NoError(t, err)
	return &run{host: host, controller: ctrl}
}

// play passes messages to and fro until neither side has one. change may alter message n.
func (r *run) play(change func(n int, m []byte) []byte) *run {
	var in []byte
	for n := 0; ; n++ {
		var out []byte
		switch {
		case n%2 == 0 && !r.hostDone:
			out, r.hostDone, r.hostErr = r.host.Step(in)
		case n%2 == 1 && !r.ctrlDone:
			out, r.ctrlDone, r.ctrlErr = r.controller.Step(in)
		}
		if out == nil {
			return r
		}
		r.messages = append(r.messages, out)
		in = append([]byte(nil), out...)
		if change != nil {
			in = change(n, in)
		}
	}
}

// both reports whether both sides hold the other authentic.
func (r *run) both() bool {
	return r.host.state == Authenticated && r.controller.state == Authenticated && r.hostErr == nil && r.ctrlErr == nil
}

func TestEveryHashWithEveryGroup(t *testing.T) {
	for _, hash := range allHashes {
		for _, group := range allGroups {
			for _, both := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v %v both=%v", hash, group, both), func(t *testing.T) {
					h, c := keysOf(t, both)
					h.Hashes, c.Groups = []Hash{hash}, []Group{group}
					r := newRun(t, h, c).play(nil)
					require.NoError(t, r.hostErr)
					require.NoError(t, r.ctrlErr)
					assert.True(t, r.both())
					assert.Len(t, r.messages, map[bool]int{false: 4, true: 5}[both])
					assert.Equal(t, Agreed{hash, group}, r.host.Agreed())
					assert.Equal(t, Agreed{hash, group}, r.controller.Agreed())
					assert.Nil(t, r.host.exchange, "the private exponent is forgotten")
					assert.Nil(t, r.controller.terms.shared, "the shared secret is forgotten")
				})
			}
		}
	}
}

func TestNegotiation(t *testing.T) {
	for _, c := range []struct {
		name        string
		host        []Hash
		ctrl        []Hash
		hostG       []Group
		ctrlG       []Group
		want        Agreed
		wantFailure Reason
	}{
		{name: "defaults", want: Agreed{SHA512, FFDHE3072}},
		{name: "the controller's order counts", host: []Hash{SHA512, SHA256}, ctrl: []Hash{SHA256, SHA512},
			hostG: []Group{FFDHE2048, NullGroup}, ctrlG: []Group{NullGroup, FFDHE2048}, want: Agreed{SHA256, NullGroup}},
		{name: "what both have", host: []Hash{SHA256, SHA384}, ctrl: []Hash{SHA512, SHA384},
			hostG: []Group{NullGroup, FFDHE2048},
			ctrlG: []Group{FFDHE3072, FFDHE2048}, want: Agreed{SHA384, FFDHE2048}},
		{name: "no hash", host: []Hash{SHA256}, ctrl: []Hash{SHA512}, wantFailure: HashUnusable},
		{name: "no group", hostG: []Group{NullGroup}, ctrlG: []Group{FFDHE2048, FFDHE3072}, wantFailure: GroupUnusable},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, o := keysOf(t, false)
			h.Hashes, h.Groups, o.Hashes, o.Groups = c.host, c.hostG, c.ctrl, c.ctrlG
			r := newRun(t, h, o).play(nil)
			if c.wantFailure != 0 {
				require.ErrorIs(t, r.ctrlErr, c.wantFailure)
				require.ErrorIs(t, r.hostErr, c.wantFailure)
				var f *TransactionError
				require.ErrorAs(t, r.hostErr, &f)
				assert.True(t, f.Remote)
				require.ErrorAs(t, r.ctrlErr, &f)
				assert.False(t, f.Remote)
				return
			}
			require.True(t, r.both())
			assert.Equal(t, c.want, r.host.Agreed())
		})
	}
}

func TestWrongKeys(t *testing.T) {
	for _, group := range []Group{NullGroup, FFDHE2048} {
		t.Run("host "+group.String(), func(t *testing.T) {
			h, c := keysOf(t, true)
			c.Groups = []Group{group}
			h.Key = newTestKey(t, SHA256)
			r := newRun(t, h, c).play(nil)
			require.ErrorIs(t, r.ctrlErr, NotAuthenticated)
			require.ErrorContains(t, r.ctrlErr, testHost)
			require.ErrorIs(t, r.hostErr, NotAuthenticated)
			require.ErrorContains(t, r.hostErr, "the peer reports")
			assert.Equal(t, Failed, r.host.state)
			assert.Equal(t, Failed, r.controller.state)
		})
		t.Run("controller "+group.String(), func(t *testing.T) {
			h, c := keysOf(t, true)
			c.Groups = []Group{group}
			h.ControllerKey = newTestKey(t, SHA256)
			r := newRun(t, h, c).play(nil)
			require.ErrorIs(t, r.hostErr, NotAuthenticated)
			require.ErrorContains(t, r.hostErr, "check the controller key")
			require.ErrorIs(t, r.ctrlErr, NotAuthenticated)
			assert.Equal(t, Failed, r.controller.state, "a controller that was refused may not be used")
			id, _, _ := Header(r.messages[4])
			assert.Equal(t, MessageFailure2, id)
		})
	}
	t.Run("the same secret, transformed otherwise", func(t *testing.T) {
		h, c := keysOf(t, false)
		secret := []byte(h.Key.secret)
		var err error
		c.Key, err = newKey(NoHash, secret)
		require.NoError(t, err)
		require.ErrorIs(t, newRun(t, h, c).play(nil).ctrlErr, NotAuthenticated)
	})
	t.Run("the controller has none", func(t *testing.T) {
		h, c := keysOf(t, true)
		c.ControllerKey = Key{}
		r := newRun(t, h, c).play(nil)
		require.ErrorIs(t, r.ctrlErr, NotAuthenticated)
		require.ErrorContains(t, r.ctrlErr, "has no key")
		assert.False(t, r.both())
	})
	t.Run("the host does not challenge", func(t *testing.T) {
		h, c := keysOf(t, true)
		h.ControllerKey = Key{}
		assert.True(t, newRun(t, h, c).play(nil).both())
	})
}

// The key of one host is of no use to another, nor for another subsystem.
func TestResponsesAreBoundToNames(t *testing.T) {
	for name, change := range map[string]func(*HostOptions){
		"host":      func(h *HostOptions) { h.HostNQN += "x" },
		"subsystem": func(h *HostOptions) { h.SubsystemNQN += "x" },
	} {
		for _, hash := range []Hash{NoHash, SHA256} {
			h, c := keysOf(t, false)
			h.Key = newTestKey(t, hash)
			c.Key = h.Key
			change(&h)
			require.ErrorIs(t, newRun(t, h, c).play(nil).ctrlErr, NotAuthenticated, "%s %v", name, hash)
		}
	}
}

// A controller without the key cannot pass by claiming that it was not challenged.
func TestControllerMayNotLeaveOutItsResponse(t *testing.T) {
	h, c := keysOf(t, true)
	r := newRun(t, h, c).play(func(n int, m []byte) []byte {
		if n == 3 {
			m = (&Success1{Transaction: h.Transaction, Hash: SHA512}).Marshal()
		}
		return m
	})
	require.ErrorIs(t, r.hostErr, NotAuthenticated)
	require.ErrorContains(t, r.hostErr, "did not answer")
	assert.Equal(t, Failed, r.controller.state)
}

func TestHostTakesOnlyWhatItOffered(t *testing.T) {
	h, c := keysOf(t, false)
	h.Hashes, h.Groups = []Hash{SHA512}, []Group{FFDHE2048}
	// Somebody on the path makes the offer weaker.
	for name, x := range map[string]struct {
		offer Negotiate
		want  Reason
	}{
		"hash":  {Negotiate{Transaction: h.Transaction, Hashes: []Hash{SHA256}, Groups: []Group{FFDHE2048}}, HashUnusable},
		"group": {Negotiate{Transaction: h.Transaction, Hashes: []Hash{SHA512}, Groups: []Group{NullGroup}}, GroupUnusable},
	} {
		r := newRun(t, h, c).play(func(n int, m []byte) []byte {
			if n == 0 {
				m, _ = x.offer.Marshal()
			}
			return m
		})
		require.ErrorIs(t, r.hostErr, x.want, name)
		require.ErrorContains(t, r.hostErr, "not offered")
		require.ErrorIs(t, r.ctrlErr, x.want, "the controller is told")
	}
}

// free are the bytes of a message that say nothing: reserved ones, and unused places of lists.
func free(id MessageID, at int) bool {
	switch {
	case at == 2 || at == 3:
		return true
	case id == MessageNegotiate:
		d := at - negotiateLen
		return d == 1 || d >= 4+len(allHashes) && d < groupsAt || d >= groupsAt+1
	case id == MessageSuccess1:
		return at == 7 || at >= 9 && at < success1Len
	case id == MessageSuccess2:
		return at >= headerLen
	case id == MessageChallenge:
		return at == 7
	case id == MessageReply:
		return at == 7 || at == 9
	}
	return false
}

// If any byte of any message is changed on its way, the two sides do not both end authenticated; a change of a byte
// without a meaning has no effect.
func TestTampering(t *testing.T) {
	for _, group := range []Group{NullGroup, FFDHE2048} {
		h, c := keysOf(t, true)
		h.Groups = []Group{group}
		clean := newRun(t, h, c).play(nil)
		require.True(t, clean.both())
		require.Len(t, clean.messages, 5)
		for n, m := range clean.messages {
			id, _, _ := Header(m)
			for at := range m {
				for _, flip := range []byte{0x01, 0x80, 0xff} {
					// With a group, which takes long, every seventh byte of a value and one flip in it: which one does not matter.
					if group != NullGroup && at >= challengeLen && (flip != 0x80 || at%7 != 0) {
						continue
					}
					r := newRun(t, h, c).play(func(k int, m []byte) []byte {
						if k == n {
							m[at] ^= flip
						}
						return m
					})
					switch {
					case free(id, at):
						require.True(t, r.both(), "%v %v byte %d ^ %02x", group, id, at, flip)
					case id == MessageNegotiate && r.both():
						// The offer is not protected: a struck hash leaves a weaker one, of those that were offered.
						require.Contains(t, []int{negotiateLen + 2, negotiateLen + 4, negotiateLen + 5, negotiateLen + 6}, at)
					default:
						require.False(t, r.both(), "%v %v byte %d ^ %02x", group, id, at, flip)
						require.True(t, r.hostErr != nil || r.ctrlErr != nil)
					}
				}
			}
		}
	}
}

// Every message cut at every length: an error, never more.
func TestTruncation(t *testing.T) {
	h, c := keysOf(t, true)
	h.Groups = []Group{NullGroup}
	clean := newRun(t, h, c).play(nil)
	for n, whole := range clean.messages {
		for cut := range whole {
			r := newRun(t, h, c).play(func(k int, m []byte) []byte {
				if k == n {
					m = m[:cut]
				}
				return m
			})
			require.False(t, r.both(), "message %d cut to %d", n, cut)
		}
	}
	// A message to a controller has an exact length; a host receives a message in a longer buffer.
	for n := range clean.messages {
		r := newRun(t, h, c).play(func(k int, m []byte) []byte {
			if k == n {
				m = append(m, 0)
			}
			return m
		})
		require.Equal(t, n%2 == 1, r.both(), "message %d with a byte more", n)
	}
}

// The messages of one queue do not open another queue.
func TestReplay(t *testing.T) {
	for _, group := range []Group{NullGroup, FFDHE2048} {
		h, c := keysOf(t, true)
		h.Groups = []Group{group}
		heard := newRun(t, h, c).play(nil)
		require.True(t, heard.both())

		t.Run("to the controller "+group.String(), func(t *testing.T) {
			ctrl, err := NewController(c)
			require.NoError(t, err)
			_, _, err = ctrl.Step(heard.messages[0])
			require.NoError(t, err)
			_, _, err = ctrl.Step(heard.messages[2])
			require.ErrorIs(t, err, NotAuthenticated)
		})
		t.Run("to the host "+group.String(), func(t *testing.T) {
			host, err := NewHost(h)
			require.NoError(t, err)
			_, _, err = host.Step(nil)
			require.NoError(t, err)
			_, _, err = host.Step(heard.messages[1])
			require.NoError(t, err)
			_, _, err = host.Step(heard.messages[3])
			require.ErrorIs(t, err, NotAuthenticated)
		})
	}
}

// A host without the key that has the controller answer its own challenge gains nothing.
func TestReflection(t *testing.T) {
	_, c := keysOf(t, true)
	ctrl, err := NewController(c)
	require.NoError(t, err)
	offer, err := (&Negotiate{Hashes: []Hash{SHA256}, Groups: []Group{FFDHE2048}}).Marshal()
	require.NoError(t, err)
	out, _, err := ctrl.Step(offer)
	require.NoError(t, err)
	challenge, err := ParseChallenge(out)
	require.NoError(t, err)

	t.Run("public value", func(t *testing.T) {
		ctrl := *ctrl
		_, _, err = ctrl.Step((&Reply{Response: make([]byte, 32), Public: challenge.Public}).Marshal())
		require.ErrorIs(t, err, IncorrectPayload)
		require.ErrorContains(t, err, "our own")
	})
	t.Run("challenge", func(t *testing.T) {
		// Even a host that holds its key.
		ctrl, err := NewController(c)
		require.NoError(t, err)
		offer, err := (&Negotiate{Hashes: []Hash{SHA256}, Groups: []Group{NullGroup}}).Marshal()
		require.NoError(t, err)
		out, _, err := ctrl.Step(offer)
		require.NoError(t, err)
		challenge, err := ParseChallenge(out)
		require.NoError(t, err)
		terms := terms{hash: SHA256, host: testHost, subsys: testSubsys}
		r := Reply{Response: terms.hostResponse(c.Key, challenge.Value, challenge.Sequence), Challenge: challenge.Value,
			Sequence: 1}
		_, _, err = ctrl.Step(r.Marshal())
		require.ErrorIs(t, err, NotAuthenticated)
		require.ErrorContains(t, err, "our own challenge")
	})
}

// Each message in each state: what is not due ends the transaction.
func TestMessagesOutOfTurn(t *testing.T) {
	h, c := keysOf(t, true)
	h.Groups = []Group{NullGroup}
	clean := newRun(t, h, c).play(nil).messages
	takes := map[State]MessageID{
		ControllerIdle: MessageNegotiate, ControllerAwaitReply: MessageReply, ControllerAwaitSuccess: MessageSuccess2,
	}
	steps := map[State]int{ControllerIdle: 0, ControllerAwaitReply: 1, ControllerAwaitSuccess: 2, Authenticated: 3}
	for state, n := range steps {
		for sent, m := range append(clean, []byte{}, []byte{0, 0x77, 0, 0, 0x34, 0x12}) {
			r := newRun(t, h, c)
			var in []byte
			for range n {
				out, _, err := r.host.Step(in)
				require.NoError(t, err)
				in, _, err = r.controller.Step(out)
				require.NoError(t, err)
			}
			require.Equal(t, state, r.controller.state)
			if id, _, _ := Header(m); state != Authenticated && id == takes[state] && len(m) > 6 {
				continue // its turn
			}
			out, done, err := r.controller.Step(m)
			require.True(t, done)
			var f *TransactionError
			require.ErrorAs(t, err, &f, "%v message %d", state, sent)
			assert.Contains(t, []Reason{IncorrectMessage, IncorrectPayload}, f.Reason)
			assert.Equal(t, state, f.State)
			if state == Authenticated {
				assert.Nil(t, out)
				assert.Equal(t, Authenticated, r.controller.state, "the caller decides what a message after the end means")
			} else {
				id, _, _ := Header(out)
				assert.Equal(t, MessageFailure1, id)
				assert.Equal(t, Failed, r.controller.state)
			}
			_, done, err = r.controller.Step(m)
			require.True(t, done)
			require.ErrorIs(t, err, IncorrectMessage)
		}
	}
}

func TestFailureReports(t *testing.T) {
	h, c := keysOf(t, false)
	report := func(id MessageID) []byte {
		return (&FailureMessage{ID: id, Transaction: h.Transaction, Reason: 0x2a}).Marshal()
	}
	host := newRun(t, h, c).host
	_, _, err := host.Step(nil)
	require.NoError(t, err)
	out, done, err := host.Step(report(MessageFailure1))
	require.True(t, done)
	require.Nil(t, out, "a failure is not answered by a failure")
	require.ErrorIs(t, err, Reason(0x2a))
	require.EqualError(t, err, "dh-hmac-chap: awaiting challenge: the peer reports: reason 2Ah")

	// A host never gets an AUTH_Failure2, nor a controller an AUTH_Failure1.
	host = newRun(t, h, c).host
	_, _, err = host.Step(nil)
	require.NoError(t, err)
	_, _, err = host.Step(report(MessageFailure2))
	require.ErrorIs(t, err, IncorrectMessage)

	// A host that cannot use the challenge says so where a reply is due.
	r := newRun(t, h, c)
	out, _, err = r.host.Step(nil)
	require.NoError(t, err)
	_, _, err = r.controller.Step(out)
	require.NoError(t, err)
	out, _, err = r.controller.Step(report(MessageFailure2))
	require.Nil(t, out)
	require.ErrorIs(t, err, Reason(0x2a))
	assert.Equal(t, Failed, r.controller.state)
}

func TestConcatenationIsRefused(t *testing.T) {
	_, c := keysOf(t, false)
	ctrl, err := NewController(c)
	require.NoError(t, err)
	offer, err := (&Negotiate{Transaction: 7, Concatenation: 2, Hashes: allHashes, Groups: allGroups}).Marshal()
	require.NoError(t, err)
	out, _, err := ctrl.Step(offer)
	require.ErrorIs(t, err, ConcatMismatch)
	f, err := ParseFailure(out)
	require.NoError(t, err)
	assert.Equal(t, &FailureMessage{ID: MessageFailure1, Transaction: 7, Reason: ConcatMismatch}, f)
}

func TestWithoutRandomness(t *testing.T) {
	h, c := keysOf(t, true)
	for _, side := range []string{"host", "controller"} {
		r := newRun(t, h, c)
		if side == "host" {
			r.host.random = failing{}
		} else {
			r.controller.random = failing{}
		}
		r.play(nil)
		assert.False(t, r.both())
		require.ErrorContains(t, fmt.Errorf("%w %w", r.hostErr, r.ctrlErr), "no entropy")
	}
}

func TestOptions(t *testing.T) {
	good, _ := keysOf(t, true)
	_, err := NewHost(good)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*HostOptions)
		says   string
	}{
		"no host":          {func(o *HostOptions) { o.HostNQN = "" }, "NQN"},
		"long subsystem":   {func(o *HostOptions) { o.SubsystemNQN = strings.Repeat("n", 224) }, "NQN"},
		"NUL in NQN":       {func(o *HostOptions) { o.HostNQN = "nqn\x00x" }, "NQN"},
		"no key":           {func(o *HostOptions) { o.Key = Key{} }, "missing"},
		"one key for both": {func(o *HostOptions) { o.ControllerKey = o.Key }, "different"},
		"unknown hash":     {func(o *HostOptions) { o.Hashes = []Hash{SHA256, 9} }, "hash 09h"},
		"no hash":          {func(o *HostOptions) { o.Hashes = []Hash{NoHash} }, "none"},
		"unknown group":    {func(o *HostOptions) { o.Groups = []Group{6} }, "group 06h"},
		"too many":         {func(o *HostOptions) { o.Groups = make([]Group, 31) }, "more than 30"},
	} {
		o := good
		c.change(&o)
		_, err := NewHost(o)
		require.ErrorIs(t, err, ErrOptions, name)
		require.ErrorContains(t, err, c.says, name)
		_, err = NewController(ControllerOptions(struct {
			HostNQN, SubsystemNQN string
			Key, ControllerKey    Key
			Hashes                []Hash
			Groups                []Group
			Sequence              *Sequence
		}{o.HostNQN, o.SubsystemNQN, o.Key, o.ControllerKey, o.Hashes, o.Groups, nil}))
		require.ErrorIs(t, err, ErrOptions, name)
	}
}

func TestSequence(t *testing.T) {
	s := &Sequence{last: ^uint32(0) - 1}
	for _, want := range []uint32{^uint32(0), 1, 2} {
		got, err := s.Next()
		require.NoError(t, err)
		assert.Equal(t, want, got, "0 is left out")
	}
	var zero Sequence
	a, err := zero.Next()
	require.NoError(t, err)
	b, err := zero.Next()
	require.NoError(t, err)
	assert.NotZero(t, a)
	assert.NotEqual(t, a, b)
}

// TestStateTables holds the tables together, and against docs/architecture.md: every state is reached, each but the
// final ones may fail, and the final ones take nothing.
func TestStateTables(t *testing.T) {
	const file = "../../docs/architecture.md"
	type picture = statediagram.Picture[State, event]
	picture{File: file, Name: "authentication, host", Table: hostTransitions, Start: []State{HostIdle}}.Document(t)
	picture{
		File: file, Name: "authentication, controller", Table: controllerTransitions, Start: []State{ControllerIdle},
	}.Document(t)
	for s := range State(len(stateNames)) {
		assert.NotEmpty(t, s.String())
		for _, table := range []transition.Table[State, event]{hostTransitions, controllerTransitions} {
			if _, ok := table[s]; !ok {
				continue
			}
			final := s == Authenticated || s == Failed
			assert.Equal(t, final, table.Final(s), s)
			next, ok := table.Next(s, eventFail)
			assert.Equal(t, !final, ok, s)
			if ok {
				assert.Equal(t, Failed, next)
			}
		}
	}
	m := machine{table: hostTransitions, state: Authenticated}
	require.ErrorContains(t, m.transition(eventStart), `event "start" is not possible in state "authenticated"`)
	assert.Equal(t, Authenticated, m.state)
}
