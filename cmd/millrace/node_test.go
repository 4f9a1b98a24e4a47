package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
)

// firstValue is a writer that tells when its first JSON value is whole.
type firstValue struct {
	mu    sync.Mutex
	b     bytes.Buffer
	whole chan struct{}
	once  sync.Once
}

func (l *firstValue) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.b.Write(p)
	if strings.HasSuffix(l.b.String(), "}\n") {
		l.once.Do(func() { close(l.whole) })
	}
	return n, err
}

// TestNodeRunsAndStops checks that a node prints where it serves, is ready, and ends with status 0 on a signal.
func TestNodeRunsAndStops(t *testing.T) {
	data := generate(t, "--rows", "600", "--partitions", "1")
	drive := "file:" + t.TempDir() + "/d0.flash"
	must(t, "drive", "create", drive+"?size=8MiB&slm=64MiB")
	must(t, "drive", "put", drive, data+"/part-00000.parquet")
	conf := file(t, "node.yaml", "name: n1\nlisten: ['127.0.0.1:0']\ndrives: [{name: d0, uri: '"+drive+
		"'}]\nlog: {format: text}\n")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, errs := &firstValue{whole: make(chan struct{})}, &bytes.Buffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"node", "run", "--config", conf, "--output", "json"},
			cli.Streams{In: strings.NewReader(""), Out: out, Err: errs})
	}()
	select {
	case <-out.whole:
	case code := <-ended:
		require.Fail(t, "it ended", "%d: %s", code, errs)
	}
	var r nodeReady
	out.mu.Lock()
	require.NoError(t, json.Unmarshal(out.b.Bytes(), &r))
	out.mu.Unlock()
	assert.Equal(t, "n1", r.Name)
	assert.Equal(t, []string{"d0"}, r.Drives)
	require.Len(t, r.URLs, 1)
	for {
		resp, err := http.Get(r.URLs[0] + "/readyz")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		if resp.StatusCode == http.StatusOK {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	assert.Zero(t, <-ended)
	assert.Contains(t, errs.String(), "node closed")
	http.DefaultClient.CloseIdleConnections()
}

func TestNodeConfigurations(t *testing.T) {
	bad := file(t, "bad.yaml", "name: n\ndrives:\n  - {name: a, url: x}\n")
	for _, args := range [][]string{{"node", "run", "--config", bad}, {"config", "check", bad}} {
		code, _, errs := millrace(t, args...)
		assert.Equal(t, exitFailed, code)
		assert.Contains(t, errs, "line 3, column 15: drives[0]: unknown key \"url\"")
	}
	for _, args := range [][]string{
		{"node", "run"}, {"config", "check"}, {"config", "print-defaults"}, {"config", "print-defaults", "control"},
	} {
		code, _, _ := millrace(t, args...)
		assert.Equal(t, exitUsage, code, "%v", args)
	}
	printed := must(t, "config", "print-defaults", "node")
	good := file(t, "node.yaml", printed)
	assert.Contains(t, must(t, "config", "check", good), "0 drives, looked at as ")
}
