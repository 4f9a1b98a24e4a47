package auth

import (
	"crypto/subtle"
	"fmt"
	"slices"
)

// HostOptions describe a host and its demands. The NQNs and Key are required.
type HostOptions struct {
	HostNQN, SubsystemNQN string
	Key                   Key // the host's: proves the host to the controller
	// ControllerKey, if not zero, makes the host challenge the controller. A controller without this key is refused.
	ControllerKey Key
	Hashes        []Hash  // offered, most wanted first; empty: all three
	Groups        []Group // offered, most wanted first; empty: all, the null group last
	// Transaction identifies the transaction: each of one association gets another number.
	Transaction uint16
	Sequence    *Sequence // numbers the host's challenges; nil: one of its own
}

// Host is the host's side of one transaction on one queue.
type Host struct {
	machine
	challenge []byte // C2; nil: the controller is not challenged
	expected  []byte // R2, if the controller holds its key
}

// NewHost makes the machine of one transaction. An error wraps ErrOptions.
func NewHost(o HostOptions) (*Host, error) {
	h := &Host{machine: machine{table: hostTransitions, state: HostIdle}}
	if err := h.configure(o.HostNQN, o.SubsystemNQN, o.Key, o.ControllerKey, o.Hashes, o.Groups, o.Sequence); err != nil {
		return nil, err
	}
	h.terms.transaction = o.Transaction
	return h, nil
}

// Step takes the next step of the transaction. in is nil the first time, and then the data of an Authentication
// Receive, which may be longer than its message. out, if not nil, is to be sent by an Authentication Send; unless done,
// an Authentication Receive follows. done with a nil error means that the queue may be used once out was sent. Every
// error is a *TransactionError, and then done is true: out, if not nil, is the AUTH_Failure2 for the controller, after
// which the connection is to be closed.
func (h *Host) Step(in []byte) (out []byte, done bool, err error) {
	if h.ended() {
		return nil, true, h.over()
	}
	if h.state != HostIdle {
		err = h.reported(in, MessageFailure1)
	}
	if err == nil {
		switch h.state {
		case HostIdle:
			out, err = h.negotiate()
		case HostAwaitChallenge:
			out, err = h.reply(in)
		default:
			out, err = h.finish(in)
		}
	}
	if err != nil {
		return h.fail(err, MessageFailure2)
	}
	return out, h.ended(), nil
}

func (h *Host) negotiate() ([]byte, error) {
	m := Negotiate{Transaction: h.terms.transaction, Hashes: h.hashes, Groups: h.groups}
	out, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	return out, h.transition(eventStart)
}

// reply takes the challenge.
func (h *Host) reply(in []byte) ([]byte, error) {
	c, err := ParseChallenge(in)
	if err != nil {
		return nil, err
	}
	if err := h.sameTransaction(c.Transaction); err != nil {
		return nil, err
	}
	// The controller is wrong to choose what was not offered, or the offer was changed on its way.
	if !slices.Contains(h.hashes, c.Hash) {
		return nil, &TransactionError{Reason: HashUnusable, Detail: fmt.Sprintf("%v was not offered", c.Hash)}
	}
	if !slices.Contains(h.groups, c.Group) {
		return nil, &TransactionError{Reason: GroupUnusable, Detail: fmt.Sprintf("%v was not offered", c.Group)}
	}
	if c.Sequence == 0 {
		return nil, malformed("%v with sequence number 0", MessageChallenge)
	}
	h.agreed = Agreed{Hash: c.Hash, Group: c.Group}
	h.terms.hash = c.Hash

	r := Reply{Transaction: h.terms.transaction}
	if c.Group != NullGroup {
		if h.exchange, err = newExchange(c.Group, h.random); err != nil {
			return nil, err
		}
		if err := h.share(c.Public); err != nil {
			return nil, err
		}
		r.Public = h.exchange.public
	}
	r.Response = h.terms.hostResponse(h.key, c.Value, c.Sequence)
	if !h.ctrlKey.IsZero() {
		if h.challenge, err = h.draw(c.Hash.Len()); err != nil {
			return nil, err
		}
		if r.Sequence, err = h.sequence.Next(); err != nil {
			return nil, err
		}
		r.Challenge = h.challenge
		h.expected = h.terms.controllerResponse(h.ctrlKey, r.Challenge, r.Sequence)
	}
	return r.Marshal(), h.transition(eventChallenge)
}

// finish takes the controller's message that the host is authenticated, and the controller's response if it was
// challenged.
func (h *Host) finish(in []byte) ([]byte, error) {
	s, err := ParseSuccess1(in, h.agreed.Hash)
	if err != nil {
		return nil, err
	}
	if err := h.sameTransaction(s.Transaction); err != nil {
		return nil, err
	}
	switch {
	case h.expected == nil && s.Response != nil:
		return nil, malformed("%v with a response that nobody asked for", MessageSuccess1)
	case h.expected == nil:
		return nil, h.transition(eventSuccess1)
	case s.Response == nil:
		return nil, &TransactionError{Reason: NotAuthenticated, Detail: "the controller did not answer our challenge"}
	case subtle.ConstantTimeCompare(s.Response, h.expected) != 1:
		return nil, &TransactionError{Reason: NotAuthenticated,
			Detail: "the controller's response is not that of its key; check the " +
				"controller key of " + h.terms.subsys}
	}
	if err := h.transition(eventSuccess1); err != nil {
		return nil, err
	}
	return (&Success2{Transaction: h.terms.transaction}).Marshal(), nil
}
