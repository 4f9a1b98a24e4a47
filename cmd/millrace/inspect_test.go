package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/health"
	"github.com/millrace/millrace/host/inspection"
)

// daemon runs a command that serves until the test ends, and reads what it says with --output json when it is ready.
func daemon(t *testing.T, ready any, args ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, errs := &firstValue{whole: make(chan struct{})}, &bytes.Buffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append(args, "--output", "json"), cli.Streams{In: strings.NewReader(""), Out: out, Err: errs})
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	select {
	case <-out.whole:
	case code := <-ended:
		ended <- code
		require.Fail(t, "it ended", "%d: %s", code, errs)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	require.NoError(t, json.Unmarshal(out.b.Bytes(), ready))
}

// awaitOK waits until a URL answers 200.
func awaitOK(t *testing.T, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}, time.Minute, 5*time.Millisecond)
}

// TestADriveInServiceIsAskedThroughItsNode: the runbook and the alerts send people to these commands while a node
// serves the drive.
func TestADriveInServiceIsAskedThroughItsNode(t *testing.T) {
	data := generate(t, "--rows", "600", "--partitions", "1")
	drive := "file:" + filepath.Join(t.TempDir(), "d0.flash")
	must(t, "drive", "create", drive+"?size=8MiB&slm=64MiB")
	must(t, "drive", "put", drive, data+"/part-00000.parquet")
	files, images := must(t, "drive", "ls", drive, "--output", "json"), must(t, "image", "list", drive)
	var control controlStarted
	daemon(t, &control, "control", "run", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--progress", "none")
	conf := file(t, "node.yaml", "name: n1\nlisten: ['127.0.0.1:0']\ncontrol: ['"+control.URL+
		"']\nmeasure: 1ms\ndrives: [{name: d0, uri: '"+drive+"'}]\n")
	var node nodeReady
	daemon(t, &node, "node", "run", "--config", conf)
	awaitOK(t, node.URLs[0]+"/readyz")
	t.Setenv("MILLRACE_CONTROL", control.URL)
	awaitText(t, "ready", "nodes", "list")

	for _, how := range [][]string{{drive}, {"n1/d0"}, {"d0", "--node", node.URLs[0]}} {
		ask := func(args ...string) string { return must(t, append(args, how...)...) }
		assert.Equal(t, files, ask("drive", "ls", "--output", "json"), "%v", how)
		assert.Contains(t, ask("drive", "ls"), "part-00000.parquet", "%v", how)
		assert.Equal(t, images, ask("image", "list"), "%v", how)
		assert.Contains(t, ask("drive", "smart"), "critical warnings  none", "%v", how)
		var r health.SMARTLog
		require.NoError(t, json.Unmarshal([]byte(ask("drive", "smart", "--output", "json")), &r))
		assert.Equal(t, drive, r.Drive)
		assert.EqualValues(t, 5, r.PowerCycles, "it was asked, not opened again")
		var d inspection.Description
		require.NoError(t, json.Unmarshal([]byte(ask("drive", "info", "--output", "json")), &d))
		assert.EqualValues(t, 8<<20, d.Size)
		assert.NotNil(t, d.Counters)
		assert.NotNil(t, d.Images)
	}
	shown := must(t, "nodes", "show", "n1")
	for _, want := range []string{"free bytes", "image", "version", buildVersion().Version} {
		assert.Contains(t, shown, want)
	}

	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"node n1 (process ", exitFailed, []string{"drive", "put", drive, data + "/part-00000.parquet"}},
		{"node n1 (process ", exitFailed, []string{"image", "trust", drive, "--image-policy", "warn"}},
		{"d9", exitFailed, []string{"drive", "smart", "n1/d9"}},
		{"no node \"n9\" is known", exitFailed, []string{"drive", "smart", "n9/d0"}},
		{"is a URI", exitUsage, []string{"drive", "info", drive, "--node", node.URLs[0]}},
		{"NODE/DRIVE", exitUsage, []string{"drive", "info", "d0"}},
		{"NODE/DRIVE", exitUsage, []string{"drive", "info", "ftp:/x/y"}},
	} {
		code, _, errs := millrace(t, c.args...)
		assert.Equal(t, c.code, code, "%v: %s", c.args, errs)
		assert.Contains(t, errs, c.want, "%v", c.args)
	}
}

// TestADriveThatIsServedIsAskedWhereItIs: by drive serve, at its address.
func TestADriveThatIsServedIsAskedWhereItIs(t *testing.T) {
	flash := filepath.Join(t.TempDir(), "d0.flash")
	must(t, "drive", "create", "file:"+flash+"?size=1MiB")
	var s serving
	daemon(t, &s, "drive", "serve", "--create", "--flash", flash, "--listen", "127.0.0.1:0", "--slm", "64MiB",
		"--progress", "none")
	var d inspection.Description
	require.NoError(t, json.Unmarshal([]byte(must(t, "drive", "info", "file:"+flash, "--output", "json")), &d))
	assert.Equal(t, s.URI, d.URI)
	assert.EqualValues(t, 1<<20, d.Size)
	assert.Contains(t, must(t, "drive", "smart", "file:"+flash), "critical warnings  none")
}
