package tcp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
)

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
