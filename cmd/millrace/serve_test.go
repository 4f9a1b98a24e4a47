package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/discovery"
)

// lineWriter gives each line written to it to a channel.
type lineWriter struct {
	mu    sync.Mutex
	b     bytes.Buffer
	lines chan string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p)
	for {
		line, err := w.b.ReadString('\n')
		if err != nil {
			w.b.WriteString(line)
			return len(p), nil
		}
		select {
		case w.lines <- line:
		default:
		}
	}
}

// startServe runs drive serve until the test ends, or stop is called, and returns its first line.
func startServe(t *testing.T, args ...string) (line string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out := &lineWriter{lines: make(chan string, 1)}
	var errs lineWriter
	code := make(chan int, 1)
	go func() {
		serve := []string{"drive", "serve", "--create", "--listen", "127.0.0.1:0", "--slm", "64MiB"}
		code <- run(ctx, append(serve, args...), cli.Streams{In: strings.NewReader(""), Out: out, Err: &errs})
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			assert.Zero(t, <-code)
		}
	}
	t.Cleanup(stop)
	select {
	case line = <-out.lines:
	case c := <-code:
		stopped = true
		errs.mu.Lock()
		defer errs.mu.Unlock()
		require.Failf(t, "serve ended", "status %d: %s", c, errs.b.String())
	case <-time.After(time.Minute):
		require.Fail(t, "serve did not say that it is ready")
	}
	return line, stop
}

// TestServe checks that preprocess gives the same bytes for files and for a drive on the network, also after the
// drive was stopped and served again.
func TestServe(t *testing.T) {
	const nqn = "nqn.2024-01.io.millrace:d0"
	data := generate(t, "--rows", "700", "--partitions", "2")
	dir := t.TempDir()
	flash := dir + "/d0.flash"
	want := dir + "/want"
	must(t, "preprocess", "--pipeline", "rm1", "--in", data, "--out", want, "--batch", "128", "--progress", "none")

	line, stop := startServe(t, "--flash", flash, "--size", "16MiB", "--lba", "4096", "--nqn", nqn,
		"--discovery-listen", "127.0.0.1:0", "--advertise", "192.0.2.7", "--referral", "192.0.2.8:8009")
	uri := strings.TrimSuffix(strings.Fields(line)[1], ":")
	assert.Regexp(t, `^serving tcp://127\.0\.0\.1:\d+/`+nqn+`: 16777216 bytes in blocks of 4096, 67108864 bytes of `+
		`memory, 1 engine threads, to any host; discovery at 127\.0\.0\.1:\d+, 127\.0\.0\.1:\d+\n$`, line)
	must(t, "drive", "put", uri, data+"/part-00000.parquet", data+"/part-00001.parquet")
	assert.Contains(t, must(t, "drive", "ls", uri), "part-00001.parquet")
	assert.Contains(t, must(t, "drive", "info", uri), nqn)
	for i, query := range []string{"", "?commands=standard&digests=both"} {
		got := dir + "/got" + string(rune('0'+i))
		must(t, "preprocess", "--pipeline", "rm1", "--drive", uri+query, "--out", got, "--batch", "128", "--progress", "none")
		assert.Equal(t, content(t, want), content(t, got), query)
	}

	address := strings.TrimSuffix(strings.TrimPrefix(uri, "tcp://"), "/"+nqn)
	fields := strings.Fields(line)
	second := fields[len(fields)-1]
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	_, secondPort, err := net.SplitHostPort(second)
	require.NoError(t, err)
	for _, at := range []string{address, second} {
		entries, err := discovery.Discover(t.Context(), tcp.DialOptions{Address: at})
		require.NoError(t, err)
		var told []string
		for _, e := range entries {
			told = append(told, e.Type.String()+" "+e.Address.String()+" "+e.NQN)
		}
		assert.Equal(t, []string{
			"discovery 192.0.2.7:" + secondPort + " " + fabrics.DiscoveryNQN, "nvm 192.0.2.7:" + port + " " + nqn,
			"referral 192.0.2.8:8009 " + fabrics.DiscoveryNQN,
		}, told)
	}
	stop()

	line, _ = startServe(t, "--flash", flash, "--nqn", nqn, "--progress", "none")
	uri = strings.TrimSuffix(strings.Fields(line)[1], ":")
	must(t, "preprocess", "--pipeline", "rm1", "--drive", uri, "--out", dir+"/again", "--batch", "128",
		"--progress", "none")
	assert.Equal(t, content(t, want), content(t, dir+"/again"))
}

// TestServeSaysItInJSON: the same in JSON, and only the hosts on the list get in.
func TestServeSaysItInJSON(t *testing.T) {
	friend := "nqn.2024-01.io.millrace:friend"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errs := &lineWriter{lines: make(chan string, 64)}, &lineWriter{lines: make(chan string, 64)}
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"drive", "serve", "--create", "--flash", t.TempDir() + "/d",
			"--size", "1MiB", "--slm", "1MiB", "--listen", "127.0.0.1:0", "--allow", friend, "--output", "json"},
			cli.Streams{In: strings.NewReader(""), Out: out, Err: errs})
	}()
	var text string
	for line := range out.lines {
		text += line
		if line == "}\n" {
			break
		}
	}
	var s serving
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	assert.Equal(t, []string{friend}, s.Hosts)
	assert.Equal(t, int64(1<<20), s.Size)
	status, _, says := millrace(t, "drive", "info", s.URI)
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, says, "allow-list")
	assert.Equal(t, 1, strings.Count(says, "\n"), "one line")
	must(t, "drive", "info", s.URI+"?hostnqn="+friend)
	cancel()
	assert.Zero(t, <-code)
}

func TestServeDemandsAKey(t *testing.T) {
	key, err := auth.GenerateKey(auth.SHA384)
	require.NoError(t, err)
	path := file(t, "key", key.Text()+"\n")
	line, _ := startServe(t, "--flash", t.TempDir()+"/d", "--size", "1MiB", "--dhchap-key", "@"+path)
	uri := strings.TrimSuffix(strings.Fields(line)[1], ":")
	status, _, says := millrace(t, "drive", "info", uri)
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, says, "key")
	must(t, "drive", "info", uri+"?keyfile="+path)
}

func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"every address": {
			[]string{"--flash", dir + "/d", "--size", "1MiB", "--slm", "1MiB", "--listen", "0.0.0.0:0", "--allow", "any"},
			exitFailed, "--advertise",
		},
		"port in use": {[]string{"--flash", dir + "/e", "--listen", taken.Addr().String()}, exitFailed, "choose " +
			"another"},
		"no drive": {
			[]string{"--flash", file(t, "notes.txt", "hello"), "--listen", "127.0.0.1:0"}, exitFailed, "drive",
		},
		"another geometry": {
			[]string{"--flash", dir + "/d", "--size", "2MiB", "--slm", "1MiB", "--listen", "127.0.0.1:0"},
			exitFailed, "size",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another geometry" {
				_, err := os.Stat(dir + "/d")
				if err != nil {
					must(t, "drive", "create", "file:"+dir+"/d?size=1MiB&slm=1MiB")
				}
			}
			code, out, errs := millrace(t, append([]string{"drive", "serve", "--create"}, c.args...)...)
			assert.Equal(t, c.code, code, errs)
			assert.Contains(t, errs, c.says)
			assert.Empty(t, out)
			assert.Equal(t, 1, strings.Count(errs, "\n"), errs)
		})
	}
	code, _, errs := millrace(t, "drive", "serve", "--flash", dir+"/typo.flash", "--listen", "127.0.0.1:0")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "drive "+dir+"/typo.flash does not exist")
	assert.Contains(t, errs, "--create")
	assert.NoFileExists(t, dir+"/typo.flash")
	assert.NoFileExists(t, dir+"/typo.flash.json")
	assert.NoFileExists(t, dir+"/e", "no drive is made for a target that cannot be reached")
}
