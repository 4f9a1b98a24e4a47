package remote

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/identity"
)

// TestFirstContact: a wrong address is an error at once, and an address on which no process listens is an error when
// Contact is over; Patience, which would outlive the test, is for a control plane that has answered.
func TestFirstContact(t *testing.T) {
	dial := func(o Options) error {
		o.Patience = time.Hour
		c, err := Dial(o)
		require.NoError(t, err)
		_, err = c.List(t.Context())
		require.NoError(t, c.Close())
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	require.ErrorIs(t, dial(Options{Control: []string{at}, Contact: time.Millisecond}), ErrUnreachable)

	var mismatch *identity.MismatchError
	err = dial(Options{Control: []string{"https://127.0.0.1:1"}})
	require.ErrorAs(t, err, &mismatch)
	require.ErrorIs(t, err, ErrUnreachable)
	require.Equal(t, identity.NoIdentity, mismatch.Cause)

	_, err = Dial(Options{Control: []string{at}, Contact: -1})
	require.ErrorIs(t, err, ErrOptions)
}

// TestPatienceOnceMet: a control plane that has answered is waited for as long as ever.
func TestPatienceOnceMet(t *testing.T) {
	c, err := Dial(Options{Control: []string{"http://127.0.0.1:1"}, Patience: time.Hour, Contact: time.Second})
	require.NoError(t, err)
	require.Equal(t, time.Second, c.patience())
	c.noteAnswer()
	require.Equal(t, time.Hour, c.patience())
}
