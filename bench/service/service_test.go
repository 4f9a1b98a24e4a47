package service

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/cluster"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk/tensor"
)

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no command":        {},
		"transport":         {Command: []string{"x"}, Transports: []cluster.Transport{"rdma"}},
		"no node":           {Command: []string{"x"}, Nodes: []int{0}},
		"rows":              {Command: []string{"x"}, Rows: -1},
		"splits":            {Command: []string{"x"}, Splits: MaxSplits + 1},
		"short-lived leads": {Command: []string{"x"}, LeaderTTL: time.Millisecond},
		"time":              {Command: []string{"x"}, Time: -1},
		"threads":           {Command: []string{"x"}, Threads: 1 << 20},
		"rows of a drive":   {Command: []string{"x"}, DriveRows: MaxDriveRows + 1},
	} {
		_, err := Run(t.Context(), o)
		require.ErrorIs(t, err, ErrOptions, name)
	}
}

func TestAControlPlaneThatDoesNotStartSaysWhy(t *testing.T) {
	o := Options{
		Command: []string{"/bin/sh", "-c", "echo no disk >&2; exit 1"}, Nodes: []int{1},
		Transports: []cluster.Transport{cluster.TCP}, Rows: 10, Splits: -1, LeaderTTL: -1, DriveRows: -1,
	}
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "no disk")
	o.Command = []string{"/nowhere/millrace"}
	_, err = Run(t.Context(), o)
	require.ErrorContains(t, err, "/nowhere/millrace")
}

// TestAStandInServesFrames: the name that is asked for, whole and valid, over every transport.
func TestAStandInServesFrames(t *testing.T) {
	batch, err := makeBatch(100)
	require.NoError(t, err)
	for _, tr := range cluster.Transports() {
		c := &cluster.Cluster{Transport: tr, Dir: t.TempDir()}
		server, err := c.Identity(identity.Node, "n0")
		require.NoError(t, err)
		launcher, err := c.Identity(identity.Launcher, "bench")
		require.NoError(t, err)
		dir, err := shortDir(t)
		require.NoError(t, err)
		n, err := startNode(t.Context(), dir, "n0", tr, server, "http://127.0.0.1:1", batch, 1000)
		require.NoError(t, err)
		hc, err := identity.HTTPClient(launcher)
		require.NoError(t, err)
		base, err := identity.BaseURL(n.status.Urls[0])
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+apiv1.MiniBatchPath+"?job="+
			strings.Repeat("ab", 32)+"&epoch=2&drive=d0&number=7&until=9", nil)
		require.NoError(t, err)
		resp, err := hc.Do(req)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		frame := make([]byte, resp.ContentLength)
		_, err = readFull(resp, frame)
		require.NoError(t, err)
		mb, err := tensor.ReadFrame(frame)
		require.NoError(t, err)
		assert.EqualValues(t, 7, mb.Name.Number)
		assert.EqualValues(t, 2, mb.Name.Epoch)
		assert.Equal(t, 100, mb.Rows)
		require.NoError(t, mb.ValidateIDs())
		hc.CloseIdleConnections()
		require.NoError(t, n.close())
		assert.Equal(t, resp.Header.Get("Content-Length"), strconv.FormatInt(n.bytes.Load(), 10))
	}
}

// shortDir is a folder whose path leaves room for a socket's name.
func shortDir(t *testing.T) (string, error) {
	dir, err := os.MkdirTemp("", "mr")
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir, err
}

func readFull(resp *http.Response, b []byte) (int, error) {
	n, err := io.ReadFull(resp.Body, b)
	return n, errors.Join(err, resp.Body.Close())
}
