package auth

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/transition"
)

// ErrOptions is wrapped by the errors of NewHost, NewController and NewResponder.
var ErrOptions = errors.New("cannot authenticate so")

// Agreed is the controller's choice from the host's offer.
type Agreed struct {
	Hash  Hash
	Group Group
}

func (a Agreed) String() string { return fmt.Sprintf("%v, %v", a.Hash, a.Group) }

// Defaults of the options' Hashes and Groups, in the order of a controller's preference: the longest hash first; and
// first the group whose strength RFC 7919 gives for today's use, before those that cost more and gain nothing here.
var (
	defaultHashes = []Hash{SHA512, SHA384, SHA256}
	defaultGroups = []Group{FFDHE3072, FFDHE4096, FFDHE6144, FFDHE8192, FFDHE2048, NullGroup}
)

// machine is the part that both sides have in common.
type machine struct {
	table    transition.Table[State, event]
	state    State
	terms    terms
	agreed   Agreed
	hashes   []Hash
	groups   []Group
	key      Key // the host's
	ctrlKey  Key // the controller's; zero: none
	sequence *Sequence
	random   io.Reader
	exchange *exchange
}

// Agreed returns what the controller chose, once the negotiation was taken.
func (m *machine) Agreed() Agreed { return m.agreed }

// maxNQN is the length in bytes of the longest NQN (Base Specification 2.x, 4.7).
const maxNQN = 223

// configure checks and sets the options that both sides have in common.
func (m *machine) configure(host, subsystem string, key, ctrlKey Key, hashes []Hash, groups []Group,
	s *Sequence) error {
	for _, nqn := range []string{host, subsystem} {
		if nqn == "" || len(nqn) > maxNQN || strings.ContainsRune(nqn, 0) {
			return fmt.Errorf("%w: NQN %q: 1 to %d bytes, none of them 00h, are needed", ErrOptions, nqn, maxNQN)
		}
	}
	if key.IsZero() {
		return fmt.Errorf("%w: the key of host %s is missing", ErrOptions, host)
	}
	if ctrlKey == key && !key.IsZero() {
		return fmt.Errorf("%w: host and controller have the same key; give them different ones", ErrOptions)
	}
	if len(hashes) == 0 {
		hashes = defaultHashes
	}
	if len(groups) == 0 {
		groups = defaultGroups
	}
	for _, h := range hashes {
		if h.Len() == 0 {
			return fmt.Errorf("%w: %v is not a hash function of DH-HMAC-CHAP", ErrOptions, h)
		}
	}
	for _, g := range groups {
		if !g.Known() {
			return fmt.Errorf("%w: %v is not a group of DH-HMAC-CHAP", ErrOptions, g)
		}
	}
	if len(hashes) > maxIdentities || len(groups) > maxIdentities {
		return fmt.Errorf("%w: more than %d hashes or groups", ErrOptions, maxIdentities)
	}
	if s == nil {
		s = new(Sequence)
	}
	m.terms.host, m.terms.subsys = strings.Clone(host), strings.Clone(subsystem)
	m.key, m.ctrlKey = key, ctrlKey
	m.hashes, m.groups = slices.Clone(hashes), slices.Clone(groups)
	m.sequence, m.random = s, rand.Reader
	return nil
}

// transition is the only function that changes a machine's state.
func (m *machine) transition(on event) error {
	next, ok := m.table.Next(m.state, on)
	if !ok {
		return fmt.Errorf("dh-hmac-chap: event %q is not possible in state %q", on, m.state)
	}
	m.state = next
	if m.ended() {
		m.exchange.forget()
		m.exchange = nil
		clear(m.terms.shared)
		m.terms.shared = nil
	}
	return nil
}

// ended reports whether the transaction is over.
func (m *machine) ended() bool { return m.table.Final(m.state) }

// fail ends the transaction. If answer is not 0, out is the failure message for the peer; there is none when the peer
// itself reported the failure.
func (m *machine) fail(err error, answer MessageID) (out []byte, done bool, failure error) {
	f, ok := errors.AsType[*TransactionError](err)
	if !ok {
		f = &TransactionError{Reason: NotAuthenticated, Detail: err.Error()}
	}
	f.State = m.state
	if !m.ended() {
		if err := m.transition(eventFail); err != nil {
			return nil, true, err
		}
	}
	if answer == 0 || f.Remote {
		return nil, true, f
	}
	out = (&FailureMessage{ID: answer, Transaction: m.terms.transaction, Reason: f.Reason}).Marshal()
	return out, true, f
}

// over is the error of a step after the end.
func (m *machine) over() error {
	return &TransactionError{Reason: IncorrectMessage, State: m.state, Detail: "the transaction is over"}
}

// reported returns the failure that the peer's message reports, or nil if it is another message.
func (m *machine) reported(in []byte, id MessageID) error {
	if got, _, ok := Header(in); !ok || got != id {
		return nil
	}
	f, err := ParseFailure(in)
	if err != nil {
		return err
	}
	return &TransactionError{Reason: f.Reason, Remote: true}
}

// sameTransaction checks a message's transaction identifier.
func (m *machine) sameTransaction(t uint16) error {
	if t != m.terms.transaction {
		return malformed("transaction %d where %d is under way", t, m.terms.transaction)
	}
	return nil
}

// draw returns n random bytes.
func (m *machine) draw(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(m.random, b); err != nil {
		return nil, fmt.Errorf("draw a challenge: %w", err)
	}
	return b, nil
}

// share computes the shared secret with the peer's public value, which parsing has found to be of the group's length.
func (m *machine) share(public []byte) error {
	if m.agreed.Group == NullGroup {
		return nil
	}
	if string(public) == string(m.exchange.public) {
		return malformed("the public value is our own")
	}
	s, err := m.exchange.shared(public)
	if err != nil {
		return malformed("%v", err)
	}
	m.terms.shared = s
	return nil
}
