package rawsocket

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/host/identity"
)

func TestConnectionsCopy(t *testing.T) {
	for _, tr := range cluster.Transports() {
		dir, err := os.MkdirTemp("", "mr") // short, since a socket lies in it
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
		c := &cluster.Cluster{Transport: tr, Dir: dir}
		server, err := c.Identity(identity.Node, "n0")
		require.NoError(t, err)
		client, err := c.Identity(identity.Launcher, "bench")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := Connect(ctx, Options{
			Transport: tr, Dir: dir, Server: server, Client: client, Connections: 2, Block: 10_000,
			Buffers: 5, // no whole number for each connection
		})
		require.NoError(t, err)
		for range 2 {
			n, err := r.Run(5 * time.Millisecond)
			require.NoError(t, err)
			assert.Positive(t, n)
			assert.Zero(t, n%10_000)
			for _, b := range r.into {
				assert.Len(t, b, 10_000)
			}
			assert.Equal(t, r.block, r.into[0])
		}
		require.NoError(t, r.Close())
	}
}
