package hosttest

import (
	"context"
	"errors"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/discovery"
)

// discover: the discovery service at the same address names the subsystem.
func (s *suite) discover() {
	o := s.options()
	o.Subsystem = ""
	entries, err := discovery.Discover(s.Context(), o)
	require.NoError(s, err)
	for _, e := range entries {
		if e.NQN == s.Subsystem {
			assert.Equal(s, fabrics.NVM, e.Type)
			return
		}
	}
	require.Fail(s, "the subsystem is not there", "%v", entries)
}

// identify: questions are answered, and the answers are those of the subsystem that was asked for.
func (s *suite) identify() {
	h := s.dial()
	admin := func(cmd nvme.Command, n int) []byte {
		b := make([]byte, n)
		_, err := h.Admin(s.Context(), &cmd, b)
		require.NoError(s, err, cmd.String())
		return b
	}
	var id nvme.IdentifyController
	require.NoError(s, id.Unmarshal(admin(nvme.Identify(nvme.CNSController, 0, 0), nvme.IdentifySize)))
	assert.Equal(s, s.Subsystem, id.SubsystemNQN)
	list := nvme.UnmarshalNamespaceList(admin(nvme.Identify(nvme.CNSActiveNamespaces, 0, 0), nvme.IdentifySize))
	require.NotEmpty(s, list)
	assert.EqualValues(s, 1, list[0])
	var ns nvme.IdentifyNamespace
	require.NoError(s, ns.Unmarshal(admin(nvme.Identify(nvme.CNSNamespace, 1, 0), nvme.IdentifySize)))
	assert.GreaterOrEqual(s, ns.Size*uint64(s.BlockSize), uint64(MinSize))
	admin(nvme.GetLog(nvme.LogSMART, nvme.AllNamespaces, 0, nvme.SMARTLogSize), nvme.SMARTLogSize)
	admin(nvme.GetLog(nvme.LogErrors, nvme.AllNamespaces, 0, nvme.ErrorEntrySize), nvme.ErrorEntrySize)
	get := nvme.New(nvme.AdminGetFeatures, 0)
	get.SetDW(10, nvme.FeatureQueues)
	cpl, err := h.Admin(s.Context(), &get, nil)
	require.NoError(s, err)
	assert.NotZero(s, cpl.DW0()+1)
	alive := nvme.KeepAlive()
	_, err = h.Admin(s.Context(), &alive, nil)
	require.NoError(s, err)
	require.Zero(s, h.Stats())
}

// refused: the host reports an unknown subsystem and a host that is not served otherwise than a target that is away.
func (s *suite) refused() {
	_, err := tcp.Dial(s.Context(), s.options(func(o *tcp.DialOptions) { o.Subsystem = "nqn.2024-01.io.millrace:nobody" }))
	require.ErrorIs(s, err, tcp.ErrRefused)
	if s.OtherHost != "" {
		_, err := tcp.Dial(s.Context(), s.options(func(o *tcp.DialOptions) { o.HostNQN = s.OtherHost }))
		require.ErrorIs(s, err, tcp.ErrRefused)
	}
}

// readsAndWrites: everything that a connection can be agreed to be, with data of every kind of size in both directions.
func (s *suite) readsAndWrites() {
	sizes := []int{1, 8, 16, 17, 128, 256, 2048} // blocks of 512
	for i, o := range combinations() {
		h := s.dial(func(d *tcp.DialOptions) {
			d.HeaderDigest, d.DataDigest, d.NoFlowControl = o.HeaderDigest, o.DataDigest, o.NoFlowControl
			d.Queues, d.Depth = o.Queues, o.Depth
		})
		for k, n := range sizes {
			n = max(n*512/int(s.BlockSize), 1) * int(s.BlockSize)
			if !s.both(h, uint64(k)<<20, pattern(n, byte(i*16+k))) {
				s.Fatalf("with %s", combination(o))
			}
		}
		flush := nvme.Flush(1)
		_, err := h.IO(s.Context(), &flush, nil)
		require.NoError(s, err)
		require.Zero(s, h.Stats(), combination(o))
	}
}

// statusIsAnError: what the target refuses is an error of the status, and the connection lives on.
func (s *suite) statusIsAnError() {
	h := s.dial()
	b := make([]byte, s.BlockSize)
	refused := func(err error) {
		s.Helper()
		var st nvme.Status
		require.True(s, errors.As(err, &st), "%v", err)
	}
	const far = 1 << 50
	refused(s.read(s.Context(), h, far, b))
	refused(s.write(s.Context(), h, far, make([]byte, 65536))) // whether its data is asked for or not
	refused(s.write(s.Context(), h, far, b))                   // its data is in the capsule
	for _, opcode := range []uint8{0x90, 0x91, 0x92} {
		bad := nvme.New(opcode, 1)
		var data []byte
		if opcode&3 != 0 {
			data = b
			bad.SetData(s.BlockSize)
		}
		_, err := h.IO(s.Context(), &bad, data)
		require.ErrorIs(s, err, nvme.InvalidOpcode)
		_, err = h.Admin(s.Context(), &bad, data)
		require.ErrorIs(s, err, nvme.InvalidOpcode)
	}
	nowhere := nvme.Read(0xfffffff0, 0, 1, s.BlockSize)
	_, err := h.IO(s.Context(), &nowhere, b)
	require.ErrorIs(s, err, nvme.InvalidNamespace)
	cmd := nvme.Read(1, 0, 2, s.BlockSize)
	_, err = h.IO(s.Context(), &cmd, b)
	require.ErrorIs(s, err, nvme.InvalidSGLLength, "a buffer of another size than the command says")
	s.both(h, 0, pattern(int(s.BlockSize), 1))
	require.Zero(s, h.Stats())
}

// work reads and writes in several places at a time, each of which no other goroutine touches.
func (s *suite) work(h *tcp.Host, first, places, rounds int) {
	var wg sync.WaitGroup
	for k := range places {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range rounds {
				n := []int{4096, 32768, 8192}[(i+k)%3]
				if !s.both(h, uint64(first+k)*32768, pattern(n, byte(first+k+16*i))) {
					return
				}
			}
		}()
	}
	wg.Wait()
}

// queuesAndDepth: more commands at once than there are places, in one queue and in more than the target may have.
func (s *suite) queuesAndDepth() {
	for _, o := range []struct{ queues, depth int }{{1, 2}, {1, 0}, {3, 3}, {1 << 10, 1 << 10}} {
		h := s.dial(func(d *tcp.DialOptions) { d.Queues, d.Depth = min(o.queues, 40), o.depth })
		s.work(h, 0, s.few(60), 6)
		require.Zero(s, h.Stats())
		require.NoError(s, h.Close())
	}
}

// manyHosts: several associations at once, each in its own blocks.
func (s *suite) manyHosts() {
	var wg sync.WaitGroup
	for w := range 4 {
		h := s.dial(func(o *tcp.DialOptions) { o.Queues, o.DataDigest, o.HeaderDigest = 1+w%3, w%2 == 0, w%3 == 0 })
		wg.Add(1)
		go func() {
			defer wg.Done()
			s.work(h, w*8, 8, s.few(20))
			assert.Zero(s, h.Stats())
		}()
	}
	wg.Wait()
}

// comesAndGoes: associations that are made and ended one after the other, with work and without.
func (s *suite) comesAndGoes() {
	for i := range s.few(40) {
		h, err := tcp.Dial(s.Context(), s.options(func(o *tcp.DialOptions) { o.Queues, o.Depth = 1+i%3, 4 }))
		require.NoError(s, err)
		if i%2 == 0 {
			s.both(h, 0, pattern(4096, byte(i)))
		}
		require.NoError(s, h.Close())
	}
}

// closed checks that Close waits for commands that run, and that later commands are refused.
func (s *suite) closed() {
	h := s.dial(func(o *tcp.DialOptions) { o.Queues = 2 })
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; ; i++ {
				if err := s.write(context.Background(), h, uint64(k)*65536, pattern(16384, byte(i))); err != nil {
					assert.ErrorIs(s, err, nvme.ErrClosed)
					return
				}
			}
		}()
	}
	require.NoError(s, s.read(s.Context(), h, 0, make([]byte, s.BlockSize)))
	require.NoError(s, h.Close())
	wg.Wait()
	require.ErrorIs(s, s.read(s.Context(), h, 0, make([]byte, s.BlockSize)), nvme.ErrClosed)
	require.NoError(s, h.Close())
}
