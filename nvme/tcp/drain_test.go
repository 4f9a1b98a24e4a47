package tcp

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// lateReader is a connection that, once hold is set, keeps received bytes unread until a write has failed, as on a
// connection whose drive sent bytes and closed its side. From then on every write fails. Bytes that were not read when
// the connection is closed are lost.
type lateReader struct {
	net.Conn
	hold   atomic.Bool
	came   chan struct{} // closed when there are unread bytes
	failed chan struct{} // closed when a write has failed
	wrote  atomic.Bool
	closed atomic.Bool
}

func (c *lateReader) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.hold.Swap(false) {
		return n, err
	}
	close(c.came)
	<-c.failed
	time.Sleep(50 * time.Millisecond) // a goroutine whose write failed closes the connection meanwhile
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *lateReader) Write(p []byte) (int, error) {
	select {
	case <-c.came:
		if !c.wrote.Swap(true) {
			close(c.failed)
		}
		return 0, syscall.EPIPE
	default:
		return c.Conn.Write(p)
	}
}

func (c *lateReader) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// TestAWriteThatFailsIsExplainedByWhatTheDriveSaid: the drive ends the connection with a termination request, and the
// host's next write fails. The error of the write is the drive's reason and ErrLost, not the broken pipe.
func TestAWriteThatFailsIsExplainedByWhatTheDriveSaid(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{})
	var conns []*lateReader
	h := s.dial(DialOptions{GiveUp: -1, KeepAlive: -1, DialContext: func(ctx context.Context, network,
		address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		c := &lateReader{Conn: nc, came: make(chan struct{}), failed: make(chan struct{})}
		conns = append(conns, c)
		return c, err
	}})
	queue := conns[1]
	queue.hold.Store(true)
	_, err := queue.Conn.Write([]byte{0xff, 0, pdu.CommonSize, 0, pdu.CommonSize, 0, 0, 0}) // a PDU of no known type
	require.NoError(t, err)
	<-queue.came
	err = write(t.Context(), h, 0, make([]byte, 512))
	var told *pdu.Error
	require.ErrorAs(t, err, &told)
	require.ErrorIs(t, err, ErrLost)
	require.NotErrorIs(t, err, syscall.EPIPE)
	require.NoError(t, h.Close())
}

// TestADriveThatRefusesWithoutAWord: a drive may close the connection before it has sent its reason for refusing the
// host. Then the host's error is ErrLost; its text names the step of the host and that the drive closed the connection.
func TestADriveThatRefusesWithoutAWord(t *testing.T) {
	noLeaks(t)
	_, o := keys(t)
	s := serve(t, o)
	_, err := Dial(context.Background(), DialOptions{
		Address: s.address, Subsystem: testNQN, HostNQN: hostNQN, Key: newKey(t, auth.SHA256),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, address)
			return &cutAfterFailure{Conn: nc, before: true}, err
		},
	})
	require.ErrorIs(t, err, ErrLost)
	require.NotErrorIs(t, err, auth.NotAuthenticated)
	require.ErrorContains(t, err, "authenticate: the connection was lost: queue 0: the drive closed the connection")
}

// TestALinkThatIsLostWhileQueuesAreMade closes the admin queue's connection when the host is about to connect an I/O
// queue. The error is ErrLost with what happened, whichever step of the host finds the link lost, or the status with
// which the drive refuses the I/O queue if its answer is earlier.
func TestALinkThatIsLostWhileQueuesAreMade(t *testing.T) {
	s := serve(t, TargetOptions{})
	for _, wait := range []time.Duration{0, 20 * time.Millisecond} { // the host finds it in another step
		var admin net.Conn
		_, err := Dial(t.Context(), DialOptions{Address: s.address, Subsystem: testNQN,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				nc, err := new(net.Dialer).DialContext(ctx, network, address)
				if admin == nil {
					admin = nc
				} else {
					_ = admin.Close()
					time.Sleep(wait)
				}
				return nc, err
			}})
		var st nvme.Status
		if errors.As(err, &st) {
			continue
		}
		require.ErrorIs(t, err, ErrLost)
		require.ErrorContains(t, err, "queue 0: ")
	}
}
