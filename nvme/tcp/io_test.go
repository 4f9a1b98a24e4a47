package tcp

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
)

// Everything that a connection can be agreed to be, with data of every kind of size in both directions.
func TestReadsAndWrites(t *testing.T) {
	noLeaks(t)
	for _, o := range []DialOptions{
		{}, {HeaderDigest: true}, {DataDigest: true}, {HeaderDigest: true, DataDigest: true},
		{NoFlowControl: true}, {NoFlowControl: true, HeaderDigest: true, DataDigest: true}, {Queues: 4, Depth: 4},
	} {
		for _, most := range []int{0, 4096, 65536} {
			t.Run(fmt.Sprintf("digests %t %t, no flow control %t, queues %d, MAXH2CDATA %d", o.HeaderDigest, o.DataDigest, o.NoFlowControl, o.Queues, most), func(t *testing.T) {
				s := serve(t, TargetOptions{MaxH2CData: most})
				h := s.dial(o)
				ctx := context.Background()
				for i, n := range []int{512, 4096, 8192, 8704, 65536, 1 << 20} {
					want := pattern(n, byte(i))
					require.NoError(t, write(ctx, h, uint64(100*i), want))
					got := make([]byte, n)
					require.NoError(t, read(ctx, h, uint64(100*i), got))
					require.Equal(t, want, got)
				}
				flush := nvme.New(nvme.NVMFlush, 1)
				_, err := h.IO(ctx, &flush, nil)
				require.NoError(t, err)
				id := nvme.Identify(nvme.CNSController, 0, 0)
				b := make([]byte, 4096)
				_, err = h.Admin(ctx, &id, b)
				require.NoError(t, err)
				assert.Zero(t, h.Stats())
			})
		}
	}
}

func TestStatusIsAnError(t *testing.T) {
	s := serve(t, TargetOptions{})
	h := s.dial(DialOptions{})
	ctx := context.Background()
	b := make([]byte, 512)
	require.ErrorIs(t, read(ctx, h, 1<<40, b), nvme.LBAOutOfRange)
	require.ErrorIs(t, write(ctx, h, 1<<40, make([]byte, 65536)), nvme.LBAOutOfRange, "no data is asked for")
	require.ErrorIs(t, write(ctx, h, 1<<40, b), nvme.LBAOutOfRange, "the data was in the capsule")
	bad := nvme.New(0x91, 1)
	bad.SetData(512)
	_, err := h.IO(ctx, &bad, b)
	require.ErrorIs(t, err, nvme.InvalidOpcode)
	large := nvme.Read(1, 0, 4096, 512)
	_, err = h.IO(ctx, &large, make([]byte, 2<<20))
	require.ErrorIs(t, err, nvme.InvalidField, "more than MDTS")
	cmd := nvme.Read(1, 0, 2, 512)
	_, err = h.IO(ctx, &cmd, b)
	require.ErrorIs(t, err, nvme.InvalidSGLLength, "a buffer of another size than the command says")
	require.NoError(t, read(ctx, h, 0, b), "the connection lives on")
}
