package auth

import (
	"errors"
	"fmt"
)

// ErrAllocation is a message that does not fit into what an Authentication Receive allocates: the command fails with
// Invalid Field in Command, and the message can still be fetched by a larger one.
var ErrAllocation = errors.New("dh-hmac-chap: the allocation length is less than the message")

// Responder is the authentication of one queue as a target sees it: bytes that Authentication Send commands bring in, bytes
// that Authentication Receive commands fetch. It runs one Controller after the other: a host may authenticate again on a
// queue that is in use, and the queue stays usable meanwhile.
//
// Like nvmet, a target completes a Send with success even where it refuses the message; the host learns by AUTH_Failure1.
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

// Authenticated tells whether the queue may be used for other commands.
func (r *Responder) Authenticated() bool { return r.usable }

// Broken tells that authentication has failed and the host was told, or told us: the connection is to be closed.
func (r *Responder) Broken() bool { return r.broken }

// InProgress tells that a transaction has begun and is not over: a target limits how long that may last.
func (r *Responder) InProgress() bool { return r.started && !r.machine.ended() }

// Agreed is what the last transaction chose.
func (r *Responder) Agreed() Agreed { return r.machine.agreed }

// Send takes the data of an Authentication Send. The error, a *Failure, is for the log: the command itself succeeds.
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
	// A host that found fault with the last message of a transaction says so after the end.
	if id, _, ok := Header(in); ok && id == MessageFailure2 && r.machine.state == Authenticated {
		if err := r.machine.reported(in, MessageFailure2); err != nil {
			r.usable, r.broken, r.pending = false, true, nil
			return err
		}
	}
	// Two sends without a receive between them: what was made for the first was not fetched, so the second cannot answer it.
	if r.pending != nil {
		r.usable = false
		out, _, err := r.machine.fail(&Failure{Reason: IncorrectMessage, Detail: "a second message before the first was answered"}, MessageFailure1)
		r.pending = out
		return err
	}
	r.started = true
	out, done, err := r.machine.Step(in)
	r.pending = out
	if f, ok := errors.AsType[*Failure](err); ok {
		r.usable = false
		if r.broken = f.Remote; !f.Remote && out == nil {
			r.pending = r.failure(f.Reason) // a message after the end: the host is told so
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

// Receive gives the data of an Authentication Receive that allocates n bytes: a message, which the target pads with zeros
// to n. Where none is due it is AUTH_Failure1. The error is ErrAllocation; nothing has changed then.
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
