package sdk_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
)

// A process of its own serves the drive at a path, until its standard input ends or it is killed.
const (
	regionsPath = "MILLRACE_TEST_REGIONS"

	nobodysAddress = "127.0.0.1:1" // connections to it are refused

	scheduleNQN  = "nqn.2024-01.io.millrace:schedule"
	scheduleSLM  = 4 << 20 // of a region
	scheduleSize = 4 << 20
)

func TestMain(m *testing.M) {
	if path := os.Getenv(regionsPath); path != "" {
		if err := serveRegions(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveRegions is that process.
func serveRegions(path string) error {
	drive, err := csd.Open(csd.Options{Path: path, SLMBytes: scheduleRegions * scheduleSLM, NQN: scheduleNQN})
	if err != nil {
		return err
	}
	target, err := tcp.NewTarget(tcp.TargetOptions{})
	if err != nil {
		return err
	}
	if err := target.Add(drive.Subsystem()); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = target.Serve(l) }()
	fmt.Println(l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, target.Close(), drive.Close())
}

// driveProcess is a drive of several regions in a process of its own, which can be killed and started again.
type driveProcess struct {
	t       *testing.T
	path    string
	address atomic.Value // string
	cmd     *exec.Cmd
	stdin   io.Closer
}

// newDriveProcess makes a drive in a file, with bytes at the beginning of its flash, and starts a process that serves
// it.
func newDriveProcess(t *testing.T, data []byte) *driveProcess {
	t.Helper()
	d := &driveProcess{t: t, path: filepath.Join(t.TempDir(), "drive")}
	dev, err := sdk.Create(t.Context(), fmt.Sprintf("file:%s?size=%dB&regions=%d&slm=%dB", d.path, scheduleSize,
		scheduleRegions, scheduleRegions*scheduleSLM), sdk.DeviceOptions{})
	require.NoError(t, err)
	_, err = dev.WriteAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	d.start()
	t.Cleanup(func() {
		if d.cmd != nil { // the test has failed
			_ = d.cmd.Process.Kill()
			_ = d.cmd.Wait()
		}
	})
	return d
}

// start starts the process. Its address is another one each time: a port that is free for a moment may be taken by
// another process of the machine.
func (d *driveProcess) start() {
	d.t.Helper()
	d.cmd = exec.Command(os.Args[0])
	d.cmd.Env = append(os.Environ(), regionsPath+"="+d.path)
	d.cmd.Stderr = os.Stderr
	var err error
	d.stdin, err = d.cmd.StdinPipe()
	require.NoError(d.t, err)
	out, err := d.cmd.StdoutPipe()
	require.NoError(d.t, err)
	require.NoError(d.t, d.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(d.t, err, "the drive did not start")
	d.address.Store(strings.TrimSpace(line))
}

// kill ends the process as kill -9 does.
func (d *driveProcess) kill() {
	d.t.Helper()
	d.address.Store(nobodysAddress)
	require.NoError(d.t, d.cmd.Process.Kill())
	_ = d.cmd.Wait() // says that it was killed
}

// dial connects to where the drive is now.
func (d *driveProcess) dial(c *cord) func(ctx context.Context, network, _ string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return c.dial(ctx, network, d.address.Load().(string))
	}
}

// end ends the process in order.
func (d *driveProcess) end() {
	d.t.Helper()
	require.NoError(d.t, d.stdin.Close())
	assert.NoError(d.t, d.cmd.Wait(), "the drive ends in order")
	d.cmd = nil
}

// ruler is a clock whose ticks are work of a thread that never waits. On a busy machine it is slow, as everything that
// competes for the processors is. So a row that is late by ticks was kept waiting by the drive, and not by the machine.
type ruler struct {
	ticks atomic.Uint64
	over  atomic.Bool
	ended sync.WaitGroup
}

// rulerTick is how many bytes are hashed for a tick: about a third of a millisecond of a processor with instructions
// for SHA-256.
const rulerTick = 512 << 10

func newRuler() *ruler {
	r := &ruler{}
	r.ended.Go(func() {
		b := make([]byte, rulerTick)
		for !r.over.Load() {
			sum := sha256.Sum256(b)
			copy(b, sum[:])
			r.ticks.Add(1)
		}
	})
	return r
}

func (r *ruler) stop() {
	r.over.Store(true)
	r.ended.Wait()
}
