package hosttest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp"
)

// Target is the target that a host is tried against: a subsystem with a namespace 1 of at least MinSize bytes, which
// are overwritten.
type Target struct {
	Address   string // host:port
	Subsystem string // NQN
	HostNQN   string // HostNQN is that of a host that is served.
	BlockSize uint32 // BlockSize is that of namespace 1; 0 means 512.

	// OtherHost is the NQN of a host that is not served; empty: every host is.
	OtherHost string

	// Aborts reports whether the target ends a command that is aborted, even one that waits for ever. The kernel's target
	// does not.
	Aborts bool
	// KeepsConnection says that data from the host which does not match its digest fails its command and nothing else. The
	// kernel's target ends the connection.
	KeepsConnection bool
	// Slow is a target that takes its time, such as one in an emulated machine: everything waits longer, and large
	// transfers are fewer.
	Slow bool
}

// MinSize is the number of bytes of namespace 1 that are written.
const MinSize = 16 << 20

// Run tries the host of package tcp against a target.
func Run(t *testing.T, target Target) {
	if target.BlockSize == 0 {
		target.BlockSize = 512
	}
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"discover", (*suite).discover}, {"identify", (*suite).identify}, {"refused", (*suite).refused},
		{"reads and writes", (*suite).readsAndWrites}, {"a status is an error", (*suite).statusIsAnError},
		{"queues and depth", (*suite).queuesAndDepth}, {"many hosts", (*suite).manyHosts},
		{"reads of one byte", (*suite).readsOfOneByte}, {"digests of the drive's data", (*suite).drivesDigests},
		{"digests of the host's data", (*suite).hostsDigests}, {"header digests", (*suite).headerDigests},
		{"connections lost", (*suite).connectionsLost}, {"lost while connecting", (*suite).lostWhileConnecting},
		{"cancelled", (*suite).cancelled}, {"too late", (*suite).tooLate}, {"keep alive", (*suite).keepAlive},
		{"comes and goes", (*suite).comesAndGoes}, {"closed", (*suite).closed},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(&suite{t, target}) })
	}
}

// suite is one subtest's view of the target.
type suite struct {
	*testing.T
	Target
}

func (s *suite) options(change ...func(*tcp.DialOptions)) tcp.DialOptions {
	o := tcp.DialOptions{Address: s.Address, Subsystem: s.Subsystem, HostNQN: s.HostNQN, FirstDelay: time.Millisecond}
	if s.Slow {
		o.ConnectTimeout, o.FirstDelay = time.Minute, 20*time.Millisecond
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

// dial connects; the end of the subtest ends the association.
func (s *suite) dial(change ...func(*tcp.DialOptions)) *tcp.Host {
	s.Helper()
	h, err := tcp.Dial(s.Context(), s.options(change...))
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, h.Close()) })
	return h
}

// few is the number of repetitions of what a slow target does rarely.
func (s *suite) few(n int) int {
	if s.Slow {
		return max(n/5, 3)
	}
	return n
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// read reads from byte off of namespace 1 on.
func (s *suite) read(ctx context.Context, c nvme.Conn, off uint64, b []byte) error {
	cmd := nvme.Read(1, off/uint64(s.BlockSize), uint32(len(b))/s.BlockSize, s.BlockSize)
	_, err := c.IO(ctx, &cmd, b)
	return err
}

func (s *suite) write(ctx context.Context, c nvme.Conn, off uint64, b []byte) error {
	cmd := nvme.Write(1, off/uint64(s.BlockSize), uint32(len(b))/s.BlockSize, s.BlockSize, false)
	_, err := c.IO(ctx, &cmd, b)
	return err
}

// both writes and reads back.
func (s *suite) both(c nvme.Conn, off uint64, want []byte) bool {
	got := make([]byte, len(want))
	return assert.NoError(s, s.write(context.Background(), c, off, want)) &&
		assert.NoError(s, s.read(context.Background(), c, off, got)) &&
		assert.True(s, string(want) == string(got), "%d bytes at %d are not what was written", len(want), off)
}

// combinations are everything that a connection can be agreed to be.
func combinations() []tcp.DialOptions {
	return []tcp.DialOptions{
		{}, {HeaderDigest: true}, {DataDigest: true}, {HeaderDigest: true, DataDigest: true},
		{NoFlowControl: true}, {NoFlowControl: true, HeaderDigest: true, DataDigest: true}, {Queues: 4, Depth: 4},
	}
}

func combination(o tcp.DialOptions) string {
	var words []string
	for word, on := range map[string]bool{"header": o.HeaderDigest, "data": o.DataDigest} {
		if on {
			words = append(words, word+" digests")
		}
	}
	if len(words) == 2 {
		words = []string{"both digests"}
	}
	if o.NoFlowControl {
		words = append(words, "no flow control")
	}
	if o.Queues > 0 {
		words = append(words, fmt.Sprintf("%d queues of %d", o.Queues, o.Depth))
	}
	if words == nil {
		return "plain"
	}
	return strings.Join(words, ", ")
}
