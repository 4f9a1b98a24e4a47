package auth

import (
	"errors"
	"fmt"
)

// ErrAllocation says that a message does not fit into what an Authentication Receive allocates. The command fails with
// Invalid Field in Command, and a larger one can still fetch the message.
var ErrAllocation = errors.New("dh-hmac-chap: the allocation length is less than the message")

// Responder is a target's side of one queue's authentication: bytes that Authentication Send commands bring, and bytes
// that Authentication Receive commands fetch. It runs one Controller after the other: a host may authenticate again on
// a queue that is in use, and the queue stays usable meanwhile.
//
// Like nvmet, a target completes a Send with success even where it refuses the message; AUTH_Failure1 says so to the
// host.
type Responder struct {
	options ControllerOptions
	machine *Controller
	pending []byte // for the next Receive
	started bool   // the machine has taken a message
	usable  bool
	broken  bool
}

// NewResponder makes the authentication of one queue. An error wraps ErrOptions.
func NewResponder(o ControllerOptions) (*Responder, error) {
	c, err := NewController(o)
	if err != nil {
		return nil, err
	}
	return &Responder{options: o, machine: c}, nil
}

// Authenticated reports whether the queue may be used for other commands.
func (r *Responder) Authenticated() bool { return r.usable }

// Broken reports whether authentication has failed and one side has reported that to the other: the connection is to be
// closed.
func (r *Responder) Broken() bool { return r.broken }

// InProgress reports whether a transaction has begun and is not over. A target limits how long that may last.
func (r *Responder) InProgress() bool { return r.started && !r.machine.ended() }

// Agreed returns the choice of the last transaction.
func (r *Responder) Agreed() Agreed { return r.machine.Agreed() }

// Send takes the data of an Authentication Send. The error, a *TransactionError, is for the log: the command itself
// succeeds.
func (r *Responder) Send(in []byte) error {
	if r.broken {
		return r.machine.over()
	}
	if id, _, ok := Header(in); ok && id == MessageNegotiate && r.machine.state == Authenticated && r.pending == nil {
		c, err := NewController(r.options)
		if err != nil {
			return err
		}
		r.machine = c
	}
	// A host that found a fault in the last message of a transaction reports it after the end.
	if id, _, ok := Header(in); ok && id == MessageFailure2 && r.machine.state == Authenticated {
		if err := r.machine.reported(in, MessageFailure2); err != nil {
			r.usable, r.broken, r.pending = false, true, nil
			return err
		}
	}
	// Two sends without a receive between them: what was made for the first was not fetched, so the second cannot answer
	// it.
	if r.pending != nil {
		r.usable = false
		out, _, err := r.machine.fail(&TransactionError{Reason: IncorrectMessage,
			Detail: "a second message before the first was answered"}, MessageFailure1)
		r.pending = out
		return err
	}
	r.started = true
	out, done, err := r.machine.Step(in)
	r.pending = out
	if f, ok := errors.AsType[*TransactionError](err); ok {
		r.usable = false
		if r.broken = f.Remote; !f.Remote && out == nil {
			r.pending = r.failure(f.Reason) // a message after the end: the answer to the host says so
		}
		return err
	}
	if err != nil {
		r.usable, r.broken = false, true
		return err
	}
	if done {
		r.usable = true
	}
	return nil
}

// Receive returns the data of an Authentication Receive that allocates n bytes: a message, which the target pads with
// zeros to n. Where no message is due it is AUTH_Failure1. The error is ErrAllocation; nothing has changed then.
func (r *Responder) Receive(n int) ([]byte, error) {
	out := r.pending
	if out == nil {
		out = r.failure(IncorrectMessage)
	}
	if len(out) > n {
		return nil, fmt.Errorf("%w: %d bytes for %d", ErrAllocation, n, len(out))
	}
	r.pending = nil
	if id, _, _ := Header(out); id == MessageFailure1 {
		r.usable, r.broken = false, true
	}
	return out, nil
}

func (r *Responder) failure(reason Reason) []byte {
	return (&FailureMessage{ID: MessageFailure1, Transaction: r.machine.terms.transaction, Reason: reason}).Marshal()
}
