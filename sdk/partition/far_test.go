package partition

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
)

// farReader is a partition elsewhere, whose reads end with their context.
type farReader struct{ io.ReaderAt }

func (f farReader) ReadAtContext(ctx context.Context, b []byte, off int64) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return f.ReadAt(b, off)
}

// TestReadsOfAPartitionElsewhereEndWithTheirContext checks that reads of a partition on another machine end with their
// context. Reads of a partition on this machine do not look at the context.
func TestReadsOfAPartitionElsewhereEndWithTheirContext(t *testing.T) {
	data := make([]byte, 160*3)
	open := func(r io.ReaderAt) *Partition {
		p, err := Open(t.Context(), "p", r, int64(len(data)), program.CriteoBinary, Options{})
		require.NoError(t, err)
		return p
	}
	here, far := open(bytes.NewReader(data)), open(farReader{bytes.NewReader(data)})
	assert.False(t, here.Remote())
	assert.True(t, far.Remote())
	gone := errors.New("the split was closed")
	ctx, cancel := context.WithCancelCause(t.Context())
	b := make([]byte, 16)
	n, err := far.ReadAtContext(ctx, b, 8)
	require.NoError(t, err)
	assert.Equal(t, len(b), n)
	cancel(gone)
	_, err = far.ReadAtContext(ctx, b, 8)
	require.ErrorIs(t, err, gone)
	_, err = here.ReadAtContext(ctx, b, 8)
	require.NoError(t, err)
}
