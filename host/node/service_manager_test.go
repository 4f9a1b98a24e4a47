package node

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRunNotifiesItsServiceManager reads what Run writes to the notification socket: ready, alive, stopping. The test
// owns the socket and speaks the protocol of sd_notify; systemd does not run. Run ends after its context has ended and
// the open splits are done.
func TestRunNotifiesItsServiceManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "10000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	next := func() string {
		b := make([]byte, 100)
		n, err := l.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	c := DefaultConfig()
	c.Name, c.Listen, c.DrainTime = "n0", []string{"127.0.0.1:0"}, Duration(10*time.Second)
	c.Drives = []DriveConfig{{Name: "d0", URI: fill(t, "mem", content(t))}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended, ready := make(chan error, 1), make(chan *Agent, 1)
	go func() { ended <- Run(ctx, c, Options{}, func(a *Agent) { ready <- a }) }()
	assert.Equal(t, "READY=1", next())
	assert.Equal(t, "WATCHDOG=1", next())
	<-ready
	stop()
	for s := next(); s != "STOPPING=1"; s = next() {
		assert.Equal(t, "WATCHDOG=1", s)
	}
	require.NoError(t, <-ended)
}

// TestRunCutsOffWhatDoesNotEnd checks that a split whose client asks no more ends with the drain's time.
func TestRunCutsOffWhatDoesNotEnd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/nonexistent/notify")
	files := content(t)
	c := DefaultConfig()
	c.Name, c.Listen, c.DrainTime = "n0", []string{"127.0.0.1:0"}, Duration(20*time.Millisecond)
	c.Drives = []DriveConfig{{Name: "d0", URI: fill(t, "mem", files)}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended, ready := make(chan error, 1), make(chan *Agent, 1)
	go func() { ended <- Run(ctx, c, Options{}, func(a *Agent) { ready <- a }) }()
	a := <-ready
	client := &http.Client{Transport: &http.Transport{}}
	require.Eventually(t, func() bool { return a.unready() == "" }, time.Minute, time.Millisecond)
	resp, err := client.Get(a.URLs()[0] + "/readyz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, a.Close(), "closing twice is fine")
	client.CloseIdleConnections()
}

func TestWatchdogOfAnotherProcess(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "2000000")
	t.Setenv("WATCHDOG_PID", "1")
	assert.Zero(t, watchdogInterval())
	t.Setenv("WATCHDOG_PID", "")
	assert.Equal(t, time.Second, watchdogInterval())
	t.Setenv("WATCHDOG_USEC", "x")
	assert.Zero(t, watchdogInterval())
	t.Setenv("NOTIFY_SOCKET", "")
	require.NoError(t, notify("READY=1"))
}

// TestTheUnitMatches checks that the unit promises what the agent does.
func TestTheUnitMatches(t *testing.T) {
	b, err := os.ReadFile("systemd/millrace-node.service")
	require.NoError(t, err)
	unit := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			unit[k] = v
		}
	}
	assert.Equal(t, "notify", unit["Type"])
	stop, err := strconv.Atoi(unit["TimeoutStopSec"])
	require.NoError(t, err)
	assert.Greater(t, time.Duration(stop)*time.Second, time.Duration(DefaultConfig().DrainTime),
		"systemd waits for the drain")
	assert.Contains(t, unit["ExecStart"], "millrace node run --config ")
	assert.NotEmpty(t, unit["WatchdogSec"])
}
