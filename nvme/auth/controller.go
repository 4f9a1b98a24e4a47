package auth

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"slices"
)

// ControllerOptions describe the expected host, and the methods that the controller accepts. The NQNs and Key are
// required.
type ControllerOptions struct {
	HostNQN, SubsystemNQN string
	Key                   Key // the host's: what the host must prove to hold
	// ControllerKey answers a host that challenges the controller. Without it such a host is refused.
	ControllerKey Key
	Hashes        []Hash    // acceptable, most wanted first; empty: all three, SHA-512 first
	Groups        []Group   // acceptable, most wanted first; empty: all, ffdhe3072 first and the null group last
	Sequence      *Sequence // numbers the challenges; shared among a target's queues; nil: one of its own
}

// Controller is the controller's side of one transaction on one queue.
type Controller struct {
	machine
	challenge []byte // C1
	number    uint32 // S1
}

// NewController makes the machine of one transaction. An error wraps ErrOptions.
func NewController(o ControllerOptions) (*Controller, error) {
	c := &Controller{machine: machine{table: controllerTransitions, state: ControllerIdle}}
	if err := c.configure(o.HostNQN, o.SubsystemNQN, o.Key, o.ControllerKey, o.Hashes, o.Groups, o.Sequence); err != nil {
		return nil, err
	}
	return c, nil
}

// Step takes the next step of the transaction. in is the whole message of an Authentication Send. out, if not nil, is
// the message that the next Authentication Receive fetches. done with a nil error means that the host is authenticated,
// and the controller too if the host challenged it: the queue may be used. Every error is a *TransactionError, and then
// done is true: out, if not nil, is the AUTH_Failure1 for the host, after which the connection is to be closed.
func (c *Controller) Step(in []byte) (out []byte, done bool, err error) {
	if c.ended() {
		return nil, true, c.over()
	}
	// Before the negotiation there is nothing that a host could report.
	if c.state != ControllerIdle {
		err = c.reported(in, MessageFailure2)
	}
	if err == nil {
		switch c.state {
		case ControllerIdle:
			out, err = c.negotiate(in)
		case ControllerAwaitReply:
			out, err = c.verify(in)
		default:
			err = c.finish(in)
		}
	}
	if err != nil {
		return c.fail(err, MessageFailure1)
	}
	return out, c.ended(), nil
}

// negotiate takes the host's offer and makes the challenge.
func (c *Controller) negotiate(in []byte) ([]byte, error) {
	// The transaction is set first, so that a refusal of the rest names it.
	if _, t, ok := Header(in); ok {
		c.terms.transaction = t
	}
	n, err := ParseNegotiate(in)
	if err != nil {
		return nil, err
	}
	if n.Concatenation != noConcatenation {
		return nil, &TransactionError{Reason: ConcatMismatch, Detail: "secure channel concatenation is not offered"}
	}
	i := slices.IndexFunc(c.hashes, func(h Hash) bool { return slices.Contains(n.Hashes, h) })
	if i < 0 {
		return nil, &TransactionError{Reason: HashUnusable, Detail: fmt.Sprintf("the host offers %v, we accept %v", n.Hashes,
			c.hashes)}
	}
	j := slices.IndexFunc(c.groups, func(g Group) bool { return slices.Contains(n.Groups, g) })
	if j < 0 {
		return nil, &TransactionError{Reason: GroupUnusable, Detail: fmt.Sprintf("the host offers %v, we accept %v", n.Groups,
			c.groups)}
	}
	c.agreed = Agreed{Hash: c.hashes[i], Group: c.groups[j]}
	c.terms.hash = c.agreed.Hash

	m := Challenge{Transaction: c.terms.transaction, Hash: c.agreed.Hash, Group: c.agreed.Group}
	if c.challenge, err = c.draw(c.agreed.Hash.Len()); err != nil {
		return nil, err
	}
	if c.number, err = c.sequence.Next(); err != nil {
		return nil, err
	}
	if c.agreed.Group != NullGroup {
		if c.exchange, err = newExchange(c.agreed.Group, c.random); err != nil {
			return nil, err
		}
		m.Public = c.exchange.public
	}
	m.Value, m.Sequence = c.challenge, c.number
	return m.Marshal(), c.transition(eventNegotiate)
}

// verify takes the host's response and answers its challenge.
func (c *Controller) verify(in []byte) ([]byte, error) {
	r, err := ParseReply(in, c.agreed.Hash, c.agreed.Group)
	if err != nil {
		return nil, err
	}
	if err := c.sameTransaction(r.Transaction); err != nil {
		return nil, err
	}
	if err := c.share(r.Public); err != nil {
		return nil, err
	}
	expected := c.terms.hostResponse(c.key, c.challenge, c.number)
	if subtle.ConstantTimeCompare(r.Response, expected) != 1 {
		return nil, &TransactionError{Reason: NotAuthenticated,
			Detail: "the response of host " + c.terms.host + " is not that of its key"}
	}
	s := Success1{Transaction: c.terms.transaction, Hash: c.agreed.Hash}
	proved := eventReply
	if r.Challenge != nil {
		if c.ctrlKey.IsZero() {
			return nil, &TransactionError{Reason: NotAuthenticated,
				Detail: "host " + c.terms.host + " challenges the controller, which has no key"}
		}
		// A host that returns the controller's own challenge wants the controller to compute the response that the host
		// owes.
		if bytes.Equal(r.Challenge, c.challenge) {
			return nil, &TransactionError{Reason: NotAuthenticated, Detail: "host " + c.terms.host + " returned our own " +
				"challenge"}
		}
		s.Response = c.terms.controllerResponse(c.ctrlKey, r.Challenge, r.Sequence)
		proved = eventReplyMutual
	}
	return s.Marshal(), c.transition(proved)
}

// finish takes the host's word that the controller is authenticated.
func (c *Controller) finish(in []byte) error {
	s, err := ParseSuccess2(in)
	if err != nil {
		return err
	}
	if err := c.sameTransaction(s.Transaction); err != nil {
		return err
	}
	return c.transition(eventSuccess2)
}
