package service

import (
	"context"
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

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk/tensor"
)

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"no command":        {},
		"transport":         {Command: []string{"x"}, Transports: []Transport{"rdma"}},
		"no node":           {Command: []string{"x"}, Nodes: []int{0}},
		"rows":              {Command: []string{"x"}, Rows: -1},
		"splits":            {Command: []string{"x"}, Splits: MaxSplits + 1},
		"short-lived leads": {Command: []string{"x"}, LeaderTTL: time.Millisecond},
		"time":              {Command: []string{"x"}, Time: -1},
	} {
		_, err := Run(t.Context(), o)
		require.ErrorIs(t, err, ErrOptions, name)
	}
}

func TestAControlPlaneThatDoesNotStartSaysWhy(t *testing.T) {
	o := Options{
		Command: []string{"/bin/sh", "-c", "echo no disk >&2; exit 1"}, Nodes: []int{1}, Transports: []Transport{TCP},
		Rows: 10, Splits: -1, LeaderTTL: -1,
	}
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "no disk")
	o.Command = []string{"/nowhere/millrace"}
	_, err = Run(t.Context(), o)
	require.ErrorContains(t, err, "/nowhere/millrace")
}

// TestANodeOfTheBenchServesFrames: the name that is asked for, whole and valid, over every transport.
func TestANodeOfTheBenchServesFrames(t *testing.T) {
	batch, err := makeBatch(100)
	require.NoError(t, err)
	for _, tr := range Transports() {
		s := &stage{dir: t.TempDir()}
		if tr == TLS {
			require.NoError(t, s.issue())
		}
		dir, err := shortDir(t)
		require.NoError(t, err)
		n, err := startNode(t.Context(), dir, "n0", tr, s.identity[1], "http://127.0.0.1:1", batch, 1000)
		require.NoError(t, err)
		hc, err := identity.HTTPClient(s.identity[2])
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

func TestRawConnectionsCopy(t *testing.T) {
	for _, tr := range Transports() {
		s := &stage{dir: t.TempDir()}
		if tr == TLS {
			require.NoError(t, s.issue())
		}
		dir, err := shortDir(t)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := newRaw(ctx, dir, tr, s.identity[1], s.identity[2], 2, 10_000, 5) // 5: no whole number for each
		require.NoError(t, err)
		for range 2 {
			n, err := r.run(5 * time.Millisecond)
			require.NoError(t, err)
			assert.Positive(t, n)
			assert.Zero(t, n%10_000)
			for _, b := range r.into {
				assert.Len(t, b, 10_000)
			}
			assert.Equal(t, r.block, r.into[0])
		}
		require.NoError(t, r.close())
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
