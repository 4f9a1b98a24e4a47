package control

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

// victimVariable makes the test binary a member of a control plane, in a process with memory of its own.
const victimVariable = "MILLRACE_TEST_VICTIM"

// TestVictim runs the member that another test attacks, in a process of its own.
func TestVictim(t *testing.T) {
	if os.Getenv(victimVariable) == "" {
		t.Skip("a process that another test starts")
	}
	s, _ := start(t, testOptions(t))
	fmt.Println("serving " + s.URL())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the other test is over
}

// victim starts a member in a process of its own and returns its URL and process.
func victim(t *testing.T) (string, int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$", "-test.v")
	cmd.Env = append(os.Environ(), victimVariable+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, in.Close())
		assert.NoError(t, cmd.Wait(), "the member did not survive")
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "serving "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return url, cmd.Process.Pid
		}
	}
	t.Fatal("the member did not start")
	return "", 0
}

// peak returns the most memory that a process has had, in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(b), "VmHWM:")
	require.True(t, ok)
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return n << 10
}

// bomb returns a compressed heartbeat with a list of empty partitions. Each partition takes two bytes on the wire, a
// thousandth of that compressed, and over a hundred bytes in memory.
func bomb(t *testing.T, partitions int) []byte {
	t.Helper()
	status := bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, 8, protowire.BytesType), nil), partitions)
	beat := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), status)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(beat)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.Bytes()
}

// TestBombsTakeNoMemory sends 32 heartbeats of about 62 KB at once, three times. Each would become gigabytes.
// Without bounds the member took 3 GB.
func TestBombsTakeNoMemory(t *testing.T) {
	t.Parallel()
	url, pid := victim(t)
	before := peak(t, pid)
	body := bomb(t, 31<<20)
	require.Less(t, len(body), 64<<10)
	refused := func(i int) string {
		r, err := http.NewRequest(http.MethodPost, url+apiv1connect.ControlHeartbeatProcedure, bytes.NewReader(body))
		if err != nil {
			return err.Error()
		}
		r.Header.Set("Content-Type", "application/proto")
		r.Header.Set("Content-Encoding", "gzip")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			return err.Error()
		}
		return strconv.Itoa(resp.StatusCode) + " " + string(b)
	}
	for range 3 {
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				text := refused(i)
				assert.Contains(t, text, "429")
				assert.Contains(t, text, "resource_exhausted")
			})
		}
		wg.Wait()
	}
	grew := peak(t, pid) - before
	t.Logf("96 bombs: %d MiB more than %d MiB", grew>>20, before>>20)
	assert.Less(t, grew, int64(300<<20)*raceMemory, "without a budget they take 3 GB, without the race detector")
}

// honestBeat returns a heartbeat of a node with the given number of partitions, as nodes send them.
func honestBeat(partitions int) *apiv1.HeartbeatRequest {
	status := &apiv1.NodeStatus{Name: "large", Incarnation: "1", Protocol: apiv1.Protocol,
		Urls: []string{"http://127.0.0.1:1"}, Inventory: make([]byte, 32)}
	drive := &apiv1.Drive{Name: "d0"}
	for i := range partitions {
		name := fmt.Sprintf("criteo/day=%02d/part-%08d.snappy.parquet", i%24, i)
		status.Partitions = append(status.Partitions, &apiv1.Partition{
			Name: name, Bytes: 256 << 20, Rows: 1 << 20, RowGroups: []int64{1 << 18, 1 << 18, 1 << 18, 1 << 18},
			ContentSha256: bytes.Repeat([]byte{byte(i), byte(i >> 8), 7, byte(i >> 16)}, 8), Schema: make([]byte, 32),
		})
		drive.Partitions = append(drive.Partitions, name)
	}
	status.Drives = []*apiv1.Drive{drive}
	return &apiv1.HeartbeatRequest{Status: status}
}

// TestLargeHonestHeartbeatPasses: the heartbeat of a node with the largest intended number of partitions is within
// every limit, compressed and uncompressed.
func TestLargeHonestHeartbeatPasses(t *testing.T) {
	t.Parallel()
	s, _ := start(t, testOptions(t))
	_, err := apiv1connect.NewControlClient(http.DefaultClient, s.URL()).Heartbeat(t.Context(), honestBeat(250_000))
	require.NoError(t, err)
	_, err = apiv1connect.NewControlClient(http.DefaultClient, s.URL(), connect.WithSendGzip()).Heartbeat(t.Context(),
		honestBeat(25_000))
	require.NoError(t, err)
	_, most := s.memory.Used()
	t.Logf("the most that requests took is %d MiB", most>>20)
	assert.Greater(t, most, int64(64<<20), "it was counted")
}

// TestConnectionsAreBounded: a connection above the limit is closed at once, and is served when another one closes.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.MaxConnections = 8
	s, _ := start(t, o)
	address := strings.TrimPrefix(s.URL(), "http://")
	ended := func(c net.Conn) bool {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := fmt.Fprint(c, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
		if err != nil {
			return true
		}
		_, err = c.Read(make([]byte, 1))
		return err != nil
	}
	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	for range 40 {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		if ended(c) {
			require.NoError(t, c.Close())
			break
		}
		held = append(held, c)
	}
	assert.LessOrEqual(t, len(held), 8)
	assert.NotEmpty(t, held)
	require.NoError(t, held[0].Close())
	held = held[1:]
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		if ended(c) {
			_ = c.Close()
			return false
		}
		held = append(held, c)
		return true
	}, time.Minute, 10*time.Millisecond)
}

// deadlines records whether a handler bounded the time of a body.
type deadlines struct {
	*httptest.ResponseRecorder
	set bool
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = d.set || !t.IsZero()
	return nil
}

// TestEveryBodyHasItsTime checks that the time of a body is bounded also where no handler reads it: the server reads it
// before the next request of the connection.
func TestEveryBodyHasItsTime(t *testing.T) {
	s, _ := start(t, testOptions(t))
	for _, path := range []string{"/nothing", "/readyz", "/metrics", apiv1connect.ControlListJobsProcedure} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			s.http.Handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("x")))
			assert.True(t, w.set, "%s %s", method, path)
		}
	}
}
