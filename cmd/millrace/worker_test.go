package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWorkerRunsAndDrains checks that a worker prints where it serves and with which engine, is ready without a
// control plane that answers, and ends with status 0 on the signal to drain.
func TestWorkerRunsAndDrains(t *testing.T) {
	conf := file(t, "worker.yaml", "name: from-the-file\nthreads: 7\ncontrol: ['http://127.0.0.1:1']\n"+
		"listen: ['127.0.0.1:0']\nlog: {format: text}\n")
	out, errs := &firstValue{whole: make(chan struct{})}, &bytes.Buffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- run(context.Background(), []string{"worker", "run", "--config", conf, "--name", "w1", "--threads", "2",
			"--memory", "128MiB", "--drain-on", "HUP", "--output", "json"},
			streams{in: strings.NewReader(""), out: out, err: errs})
	}()
	select {
	case <-out.whole:
	case code := <-ended:
		require.Fail(t, "it ended", "%d: %s", code, errs)
	}
	var r workerReady
	out.mu.Lock()
	require.NoError(t, json.Unmarshal(out.b.Bytes(), &r))
	out.mu.Unlock()
	assert.Equal(t, "w1", r.Name, "flags go before the file")
	assert.Equal(t, 2, r.Threads)
	assert.EqualValues(t, 128<<20, r.Memory)
	assert.Equal(t, []string{"http://127.0.0.1:1"}, r.Control)
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(end))
		resp, err := http.Get(r.URLs[0] + "/readyz")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		if resp.StatusCode == http.StatusOK {
			break
		}
	}
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGHUP))
	assert.Zero(t, <-ended)
	assert.Contains(t, errs.String(), "node closed")
	http.DefaultClient.CloseIdleConnections()
}

func TestWorkerFlags(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`--drain-on "USR9"`, []string{"--drain-on", "USR9", "--control", "http://127.0.0.1:1"}},
		{"threads: -3", []string{"--threads", "-3", "--control", "http://127.0.0.1:1"}},
		{"control[0]", []string{"--control", "nonsense"}},
		{"memory", []string{"--memory", "1MiB", "--control", "http://127.0.0.1:1"}},
		{"none.yaml", []string{"--config", "none.yaml"}},
		{"drive: ", []string{"--drive", "card0", "--control", "http://127.0.0.1:1"}},
		{"leave one of the two out", []string{"--drive", "mem:?size=0", "--threads", "1", "--control", "http://127.0.0.1:1"}},
	} {
		code, _, errs := millrace(t, append([]string{"worker", "run"}, c.args...)...)
		assert.NotZero(t, code, c.args)
		assert.Contains(t, errs, c.want, c.args)
	}
}
