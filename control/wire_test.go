package control

import (
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestWhatErrorsAreOnTheWire: a caller repeats a call or not depending on the error's code. A call that fails
// because etcd has no leader, found by killing members at random, is to be repeated.
func TestWhatErrorsAreOnTheWire(t *testing.T) {
	l := &leader{ctx: t.Context()}
	for _, c := range []struct {
		err  error
		code connect.Code
	}{
		{store.ErrAway, connect.CodeUnavailable},
		{fleet.ErrNotYet, connect.CodeUnavailable},
		{store.ErrNoSpace, connect.CodeResourceExhausted},
		{ledger.ErrSession, connect.CodeAborted},
		{ledger.ErrArgument, connect.CodeInvalidArgument},
		{dataset.ErrToken, connect.CodeInvalidArgument},
		{ledger.ErrUnknown, connect.CodeNotFound},
		{fleet.ErrRefused, connect.CodeFailedPrecondition},
		{errors.New("a fault of ours"), connect.CodeInternal},
	} {
		err := l.wireError(fmt.Errorf("attach: %w", c.err))
		assert.Equal(t, c.code, connect.CodeOf(err), "%v", c.err)
		assert.ErrorContains(t, err, c.err.Error())
	}
	assert.ErrorContains(t, ledger.ErrSession, apiv1.FencedOff, "launchers tell it from the end of a job by these words")
	assert.NoError(t, l.wireError(nil))
	wired := connect.NewError(connect.CodeDataLoss, errors.New("a node's word"))
	assert.Equal(t, wired, l.wireError(wired))
}
