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

	"github.com/millrace/millrace/cmd/cli"
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
			cli.Streams{In: strings.NewReader(""), Out: out, Err: errs})
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

// TestConfigCheckOfWorkers checks that a worker's document is known by its keys, that faults are named with line and
// column, and that what it names is looked at.
func TestConfigCheckOfWorkers(t *testing.T) {
	const head = "name: w0\nlisten: ['127.0.0.1:0']\n"
	good := file(t, "any.yaml", head+"threads: 1\nmemory: 1GiB\n")
	r := decode[configChecked](t, must(t, "config", "check", good, "--user", currentUser(), "--output", "json"))
	assert.Equal(t, []string{"worker", "w0"}, []string{r.Kind, r.Name})
	assert.NotEmpty(t, r.Findings)
	shared := file(t, "shared.yaml", head)
	for kind, args := range map[string][]string{"node": nil, "worker": {"--kind", "worker"}} {
		out := must(t, append([]string{"config", "check", "--document", shared}, args...)...)
		assert.Contains(t, out, kind+" w0")
	}
	for text, want := range map[string]string{
		head + "memory: 1GiB\nthreds: 1\n":                              `unknown key "threds"`,
		head + "memory: 1MiB\n":                                         "memory: ",
		head + "drive: card0\n":                                         "drive: ",
		head + "memory: 1GiB\ndrive: tcp://127.0.0.1:1/nqn.x:y\n":       "1 of",
		head + "memory: 1GiB\npartitions: ['http://127.0.0.1:1/a.b']\n": "1 of",
	} {
		code, out, errs := millrace(t, "config", "check", file(t, "worker.yaml", text), "--user", currentUser())
		assert.Equal(t, exitFailed, code, text)
		assert.Contains(t, out+errs, want, text)
	}
	code, _, errs := millrace(t, "config", "check", good, "--kind", "control")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "want node or worker")
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
