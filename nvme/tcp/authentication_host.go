package tcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/fabrics"
)

// ErrAuthentication says that host and drive did not authenticate each other. Trying again does not help.
var ErrAuthentication = errors.New("authentication")

// authenticate proves the host to the drive, and the drive to the host where there is a key for that, if the drive
// demands it (dw0 is Connect's) or the host does.
func (q *queue) authenticate(ctx context.Context, dw0 uint32) error {
	o := &q.l.h.opt
	asked := dw0&fabrics.WantsAuthentication != 0
	switch {
	case dw0&fabrics.WantsConcatenation != 0:
		return fmt.Errorf("%w: the drive wants a secure channel (TLS), which this host does not offer", ErrAuthentication)
	// A host that wants the drive to prove itself cannot leave it to the drive whether it does.
	case !asked && o.ControllerKey.IsZero():
		return nil
	case o.Key.IsZero():
		return fmt.Errorf("%w: the drive wants the host to authenticate: give the host's key", ErrAuthentication)
	}
	if err := q.exchangeMessages(ctx); err != nil {
		if st, ok := errors.AsType[nvme.Status](err); ok && !asked && st.Is(nvme.InvalidOpcode) {
			return fmt.Errorf("%w: a controller key was given, and the drive does not authenticate: %w", ErrAuthentication, err)
		}
		if f, ok := errors.AsType[*auth.TransactionError](err); ok {
			return fmt.Errorf("%w: %w", ErrAuthentication, f)
		}
		return fmt.Errorf("authenticate: %w", err)
	}
	return nil
}

// authentication returns the options of the host's side.
func (o *DialOptions) authentication() auth.HostOptions {
	return auth.HostOptions{HostNQN: o.HostNQN, SubsystemNQN: o.Subsystem, Key: o.Key, ControllerKey: o.ControllerKey,
		Hashes: o.AuthHashes, Groups: o.AuthGroups}
}

// exchangeMessages carries the messages of one transaction.
func (q *queue) exchangeMessages(ctx context.Context) error {
	m := q.l.h.opt.authentication()
	m.Transaction, m.Sequence = q.id, &q.l.h.sequence // one transaction a queue of an association
	machine, err := auth.NewHost(m)
	if err != nil {
		return err
	}
	buf := make([]byte, auth.MaxMessage)
	for in := []byte(nil); ; in = buf {
		out, done, failure := machine.Step(in)
		if out != nil {
			cmd := fabrics.AuthSend(uint32(len(out)))
			if _, err := q.executeCommand(ctx, q.free, &cmd, out, 0); err != nil && failure == nil {
				return err
			}
		}
		if failure != nil || done {
			return failure
		}
		cmd := fabrics.AuthReceive(uint32(len(buf)))
		clear(buf)
		if _, err := q.executeCommand(ctx, q.free, &cmd, buf, 0); err != nil {
			// nvmet ends the connection as soon as it has said why, which may be before the completion.
			if id, _, _ := auth.Header(buf); id == auth.MessageFailure1 {
				_, _, err = machine.Step(buf)
			}
			return err
		}
	}
}
