package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli/clitest"
	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/host/site"
)

// home gives the test folders of its own for what up makes, which it takes down at the end. Daemons are this test
// binary.
func home(t *testing.T) (dir string) {
	t.Helper()
	configHome(t)
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	t.Setenv(asCommand, "1")
	t.Cleanup(func() {
		code, out, errs := millrace(t, "down", "--purge")
		assert.Equal(t, exitDone, code, "%s%s", out, errs)
	})
	return filepath.Join(data, "millrace")
}

// upArgs are for ports that are free, and a small drive.
func upArgs(more ...string) []string {
	return append([]string{"up", "--output", "json", "--progress", "none"}, more...)
}

var fresh = []string{"--detach", "--listen", "127.0.0.1:0", "--node-listen", "127.0.0.1:0", "--drive-size", "64MiB"}

// up runs up and says what became of each part.
func up(t *testing.T, more ...string) (upView, map[string]site.Did) {
	t.Helper()
	var v upView
	require.NoError(t, json.Unmarshal([]byte(must(t, upArgs(more...)...)), &v))
	return v, did(v)
}

func did(v upView) map[string]site.Did {
	m := map[string]site.Did{}
	for _, s := range v.Steps {
		m[s.What] = s.Did
	}
	return m
}

// pid reads which process a daemon of a site is.
func pid(t *testing.T, dir, daemon string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "run", daemon+".pid"))
	require.NoError(t, err)
	var p struct {
		PID int `json:"pid"`
	}
	require.NoError(t, json.Unmarshal(b, &p))
	return p.PID
}

func lives(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// TestUp: a cluster that commands find without a flag, that comes back whole whatever is missing, and that down undoes.
func TestUp(t *testing.T) {
	dir := home(t)
	must(t, "context", "add", "before", "--control", "unix:/run/elsewhere.sock")
	v, d := up(t, fresh...)
	parts := map[string]site.Did{
		"folder": site.Made, "authority and certificates": site.Made, "drive d0": site.Made,
		"configuration of the node": site.Made,
		"context local":             site.Made, "context local-launcher": site.Made,
		"control plane": site.Started, "node node0": site.Started,
	}
	assert.Equal(t, parts, d)
	assert.Equal(t, dir, v.Dir)
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		switch {
		case err != nil:
			return err
		case info.IsDir() && path == filepath.Join(dir, filepath.Base(path)) || path == dir:
			assert.Equal(t, os.FileMode(0o700), info.Mode().Perm(), path)
		case strings.HasSuffix(path, ".key"):
			assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), path)
		}
		return nil
	}))

	data := generate(t, "--rows", "2000", "--partitions", "1")
	must(t, "dataset", "place", data+"/part-00000.parquet", "--progress", "none")
	var r struct {
		Rows int `json:"rows"`
	}
	out := must(t, "train", "--pipeline", "rm1", "--batch", "100", "--name", "ads", "--trainer-rows-per-second", "1e6",
		"--measure", "10ms", "--output", "json", "--progress", "none")
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.Equal(t, 2000, r.Rows)
	assert.Contains(t, must(t, "jobs", "list"), "ads")

	// A launcher elsewhere has three files and a context of its own.
	far := t.TempDir()
	for to, from := range map[string]string{"l.pem": "launcher-*.pem", "l.key": "launcher-*.key", "ca.pem": "ca.pem"} {
		found, err := filepath.Glob(filepath.Join(dir, "pki", from))
		require.NoError(t, err)
		require.Len(t, found, 1, from)
		b, err := os.ReadFile(found[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(far, to), b, 0o600))
	}
	must(t, "context", "add", "far", "--control", v.Control, "--cert", filepath.Join(far, "l.pem"), "--key",
		filepath.Join(far, "l.key"), "--ca", filepath.Join(far, "ca.pem"))
	for job, from := range map[string]string{"near": "local-launcher", "away": "far"} {
		out := must(t, "train", "--context", from, "--pipeline", "rm1", "--batch", "100", "--name", job,
			"--trainer-rows-per-second", "1e6", "--measure", "10ms", "--output", "json", "--progress", "none")
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		assert.Equal(t, 2000, r.Rows, job)
		var shown struct {
			Owner string `json:"owner"`
		}
		require.NoError(t, json.Unmarshal([]byte(must(t, "jobs", "show", job, "--output", "json")), &shown))
		assert.NotEmpty(t, shown.Owner, "the job is the launcher's")
		code, _, errs := millrace(t, "nodes", "drain", "node0", "--context", from)
		assert.Equal(t, exitFailed, code, "a launcher drains no node")
		assert.Contains(t, errs, "may not do this")
	}
	must(t, "context", "remove", "far")

	files := func() map[string]time.Time {
		m := map[string]time.Time{}
		for _, f := range []string{"pki/ca.pem", "pki/node-node0.pem", "node.yaml", "up.json", "drives/d0.flash.json"} {
			info, err := os.Stat(filepath.Join(dir, f))
			require.NoError(t, err)
			m[f] = info.ModTime()
		}
		return m
	}
	was, control := files(), pid(t, dir, "control")
	_, d = up(t, "--detach")
	for what, did := range d {
		assert.Contains(t, []site.Did{site.There, site.Runs}, did, what)
	}
	assert.Equal(t, was, files(), "what is there stays as it is")
	assert.Equal(t, control, pid(t, dir, "control"))

	node := pid(t, dir, "node")
	require.NoError(t, syscall.Kill(node, syscall.SIGKILL))
	require.Eventually(t, func() bool { return !lives(node) }, time.Minute, 10*time.Millisecond)
	_, d = up(t, "--detach")
	assert.Equal(t, site.Started, d["node node0"], "what does not run is started")
	assert.Equal(t, site.Runs, d["control plane"])

	operator, err := filepath.Glob(filepath.Join(dir, "pki", "operator-*.pem"))
	require.NoError(t, err)
	require.Len(t, operator, 1)
	require.NoError(t, os.Remove(operator[0]))
	require.NoError(t, os.Remove(filepath.Join(dir, "node.yaml")))
	must(t, "context", "remove", "local")
	_, d = up(t, "--detach")
	assert.Equal(t, site.Repaired, d["authority and certificates"], "what is missing is made")
	assert.Equal(t, site.Made, d["configuration of the node"])
	assert.Equal(t, site.Made, d["context local"])
	assert.Contains(t, must(t, "nodes", "list"), "node0")

	require.NoError(t, os.Remove(filepath.Join(dir, "pki", "ca.pem")))
	_, d = up(t, "--detach")
	assert.Equal(t, site.Started, d["control plane"], "daemons that trust an authority that is gone are started again")
	assert.Contains(t, must(t, "nodes", "list"), "node0")

	control, node = pid(t, dir, "control"), pid(t, dir, "node")
	out = must(t, "down")
	assert.Contains(t, out, "data stays")
	assert.False(t, lives(control) || lives(node))
	assert.Contains(t, must(t, "context", "list"), "*  before", "the context that was current before is again")
	assert.NotContains(t, must(t, "context", "list"), "local")
	assert.Contains(t, must(t, "down"), "not there", "down again")
	v2, d := up(t, "--detach")
	assert.Equal(t, site.There, d["drive d0"])
	assert.Equal(t, v.Control, v2.Control, "at the address that it was made with")
	assert.Contains(t, must(t, "dataset", "verify"), "2000", "with what was placed")
	must(t, "down", "--purge")
	_, err = os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Contains(t, must(t, "down"), "there is nothing")
}

func TestUpRefusesWhatItDidNotMake(t *testing.T) {
	dir := home(t)
	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "thesis.tex"), []byte("x"), 0o600))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	must(t, "context", "add", "prod", "--control", "unix:/run/elsewhere.sock")
	other := filepath.Join(t.TempDir(), "other")
	defer func() { must(t, "down", "--purge", "--dir", other) }()
	says := func(code int, want string, args ...string) {
		t.Helper()
		got, _, errs := millrace(t, args...)
		assert.Equal(t, code, got, "%q: %s", args, errs)
		assert.Contains(t, errs, want, "%q", args)
	}
	says(exitFailed, "it holds thesis.tex", upArgs(append(fresh, "--dir", foreign)...)...)
	says(exitFailed, "it holds thesis.tex", "down", "--purge", "--dir", foreign)
	says(exitFailed, "context prod", upArgs(append(fresh, "--dir", other, "--context", "prod")...)...)
	says(exitUsage, "--detach and --systemd", "up", "--detach", "--systemd")
	says(exitUsage, "every address", "up", "--listen", "0.0.0.0:7460")
	says(exitUsage, "--drive-size", "up", "--drive-size", "large")
	says(exitFailed, "cannot listen at "+taken.Addr().String(),
		upArgs("--detach", "--drive-size", "64MiB", "--listen", taken.Addr().String(), "--node-listen",
			"127.0.0.1:0")...)
	assert.FileExists(t, filepath.Join(foreign, "thesis.tex"))
	must(t, "down", "--purge")

	up(t, fresh...)
	says(exitFailed, "made otherwise", upArgs("--detach", "--drive-size", "65MiB")...)
	says(exitFailed, "made otherwise", upArgs("--detach", "--listen", "127.0.0.1:1")...)
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		says(exitFailed, "systemd does not run here", "up", "--systemd")
	}

	// A process that only has the id of a daemon that ended is not ended.
	must(t, "down")
	me := `{"pid": ` + strconv.Itoa(os.Getpid()) + `, "began": "some time", "command": ["millrace", "node", "run"]}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run", "node.pid"), []byte(me), 0o600))
	assert.Contains(t, must(t, "down"), "not there")
}

// TestUpInTheForeground: it stays until it is interrupted, or until a daemon ends.
func TestUpInTheForeground(t *testing.T) {
	dir := home(t)
	begin := func(args ...string) (*exec.Cmd, *lineLog) {
		cmd := exec.Command(os.Args[0], upArgs(args...)...)
		var out, errs lineLog
		cmd.Stdout, cmd.Stderr = &out, &errs
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool {
			return json.Valid([]byte(out.String())) || !lives(cmd.Process.Pid)
		}, time.Minute, 10*time.Millisecond)
		require.True(t, json.Valid([]byte(out.String())), errs.String())
		return cmd, &errs
	}
	cmd, _ := begin("--listen", "127.0.0.1:0", "--node-listen", "127.0.0.1:0", "--drive-size", "64MiB", "--progress",
		"plain")
	control, node := pid(t, dir, "control"), pid(t, dir, "node")
	_, d := up(t)
	assert.Equal(t, site.Runs, d["node node0"], "another up says what runs, and returns")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait())
	assert.False(t, lives(control) || lives(node))

	cmd, errs := begin("--progress", "plain")
	require.NoError(t, syscall.Kill(pid(t, dir, "node"), syscall.SIGKILL))
	require.Error(t, cmd.Wait())
	assert.Contains(t, errs.String(), "node node0 ended (signal: killed)")
	assert.Contains(t, errs.String(), "control  ", "its log names the daemon")
	assert.False(t, lives(pid2(dir, "control")))

	cmd, errs = begin()
	must(t, "down")
	require.NoError(t, cmd.Wait(), "down of another terminal: %s", errs)
}

// pid2 reads a pid file that may be gone; 0 then.
func pid2(dir, daemon string) int {
	b, err := os.ReadFile(filepath.Join(dir, "run", daemon+".pid"))
	var p struct {
		PID int `json:"pid"`
	}
	if err != nil || json.Unmarshal(b, &p) != nil {
		return 0
	}
	return p.PID
}

// TestUpIgnoresTheEnvironment: daemons are the site's, whatever control plane the caller's environment names.
func TestUpIgnoresTheEnvironment(t *testing.T) {
	home(t)
	t.Setenv(contexts.ControlEnv, "http://127.0.0.1:1")
	up(t, fresh...)
	t.Setenv(contexts.ControlEnv, "")
	assert.Contains(t, must(t, "nodes", "list"), "node0")
}

// TestUpUnderSystemd: units are installed, restarted and removed; the test stands in for systemctl, and runs the
// commands of the units.
func TestUpUnderSystemd(t *testing.T) {
	dir := home(t)
	units := t.TempDir()
	running := map[string]*exec.Cmd{}
	var calls []string
	stop := func(name string) {
		if cmd := running[name]; cmd != nil {
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			require.NoError(t, cmd.Wait())
			delete(running, name)
		}
	}
	defer func() {
		for name := range running {
			stop(name)
		}
	}()
	sd := site.Systemd{Units: units, Call: func(_ context.Context, args ...string) error {
		calls = append(calls, strings.Join(args, " "))
		name := args[len(args)-1]
		switch args[0] {
		case "is-active":
			if running[name] == nil {
				return errors.New("inactive")
			}
		case "disable":
			stop(name)
		case "restart":
			stop(name)
			unit, err := os.ReadFile(filepath.Join(units, name))
			if err != nil {
				return err
			}
			line := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindSubmatch(unit)
			cmd := exec.Command(clitest.Words(string(line[1]))[0], clitest.Words(string(line[1]))[1:]...)
			running[name] = cmd
			return cmd.Start()
		}
		return nil
	}}
	path, err := contexts.Path(os.Getenv)
	require.NoError(t, err)
	o := site.Options{
		Dir: dir, Program: os.Args[0], Control: "127.0.0.1:0", Node: "127.0.0.1:0", DriveSize: 64 << 20, Contexts: path,
	}
	install := func() map[string]site.Did {
		s, err := site.Open(o)
		require.NoError(t, err)
		defer s.Close()
		require.NoError(t, s.Make(t.Context()))
		require.NoError(t, s.Install(t.Context(), sd))
		assert.True(t, s.Managed())
		return did(upView{Steps: s.Steps})
	}
	d := install()
	assert.Equal(t, site.Made, d["unit millrace-up-node.service"])
	assert.Equal(t, site.Started, d["node node0"])
	assert.Contains(t, calls, "enable millrace-up-control.service")
	assert.Contains(t, must(t, "nodes", "list"), "node0")
	code, _, errs := millrace(t, "up", "--detach")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "systemd runs the site")
	d = install()
	assert.Equal(t, site.There, d["unit millrace-up-node.service"])
	assert.Equal(t, site.Runs, d["node node0"])

	down := func() error {
		s, err := site.Find(o)
		require.NoError(t, err)
		defer s.Close()
		return s.Down(sd)
	}
	node := filepath.Join(units, "millrace-up-node.service")
	ours, err := os.ReadFile(node)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(node, []byte("[Unit]\n"), 0o644))
	require.ErrorIs(t, down(), site.ErrForeign)
	require.NoError(t, os.WriteFile(node, ours, 0o644))
	require.NoError(t, down())
	assert.Empty(t, running)
	left, err := os.ReadDir(units)
	require.NoError(t, err)
	assert.Empty(t, left)
}
