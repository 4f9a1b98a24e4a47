package site

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk"
)

// options are of a site in folders of the test.
func options(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	return Options{
		Dir: filepath.Join(dir,
			"a % site?#1"), Program: "/usr/bin/millrace", Control: "127.0.0.1:0", Node: "127.0.0.1:0",
		DriveSize: 8 << 20, Context: "here", Contexts: filepath.Join(dir, "config", "contexts.yaml"),
	}
}

// made opens a site and makes its missing parts.
func made(t *testing.T, o Options) *Site {
	t.Helper()
	s, err := Open(o)
	require.NoError(t, err)
	require.NoError(t, s.Make(t.Context()))
	return s
}

func (s *Site) outcome(what string) Did {
	for _, step := range s.Steps {
		if step.What == what {
			return step.Did
		}
	}
	return ""
}

// lastOutcome returns what happened to a part last.
func (s *Site) lastOutcome(what string) (last Did) {
	for _, step := range s.Steps {
		if step.What == what {
			last = step.Did
		}
	}
	return last
}

func TestMakeReplacesWhatCannotBeUsed(t *testing.T) {
	o := options(t)
	s := made(t, o)
	require.NoError(t, s.Close())
	const identities = "authority and certificates"
	require.Equal(t, Made, s.outcome(identities))
	id := s.Identity()

	for name, spoil := range map[string]func(){
		"one that ends": func() {
			require.NoError(t, removeFiles(id.Cert, id.Key))
			require.NoError(t, identity.Issue(s.path("pki"),
				identity.Request{Identity: s.operator(), Lifetime: renewTime - time.Hour}, id.Cert, id.Key))
		},
		"one of another authority": func() {
			other := t.TempDir()
			require.NoError(t, identity.InitAuthority(other, "other"))
			require.NoError(t, removeFiles(id.Cert, id.Key))
			require.NoError(t, identity.Issue(other, identity.Request{Identity: s.operator()}, id.Cert, id.Key))
		},
		"one that is not a certificate": func() { require.NoError(t, os.WriteFile(id.Cert, []byte("x"), 0o600)) },
		"one without its key":           func() { require.NoError(t, os.Remove(id.Key)) },
		"an authority without key":      func() { require.NoError(t, os.Remove(s.path("pki", identity.AuthorityKey))) },
	} {
		t.Run(name, func(t *testing.T) {
			spoil()
			s := made(t, o)
			defer s.Close()
			assert.Equal(t, Repaired, s.outcome(identities))
			for _, r := range s.requests() {
				require.NoError(t, certificateFault(s.identityOf(r.Identity)))
			}
			assert.Equal(t, name == "an authority without key", s.renewed)
		})
	}
	s = made(t, o)
	defer s.Close()
	for _, step := range s.Steps {
		assert.Equal(t, There, step.Did, step.What)
	}
	dev, err := sdk.Open(t.Context(), fileURI(s.path("drives", driveName+".flash")), sdk.DeviceOptions{})
	require.NoError(t, err, "its path needs escapes")
	require.NoError(t, dev.Close())

	require.NoError(t, os.WriteFile(s.path("node.yaml"), []byte("name: [\n"), 0o600))
	require.ErrorContains(t, s.Make(t.Context()), "correct it, or remove it so that millrace up makes it again")
}

// TestALaunchersIdentity: a site has a certificate and a context for launchers. A site that was made before it had them
// gets them; the context that is current stays so; and a context of the name that is another's is left alone.
func TestALaunchersIdentity(t *testing.T) {
	o := options(t)
	require.NoError(t, contexts.Update(o.Contexts, func(f *contexts.File) error {
		f.Contexts["mine"] = contexts.Context{Control: []string{"unix:/s"}}
		return nil
	}))
	s := made(t, o)
	require.Equal(t, Made, s.outcome("context here"))
	require.Equal(t, Made, s.outcome("context here-launcher"))
	read := func() *contexts.File {
		f, err := contexts.Read(o.Contexts)
		require.NoError(t, err)
		return f
	}
	assert.Equal(t, "here", read().Current)
	launcher := read().Contexts["here-launcher"]
	assert.Equal(t, []string{s.ControlURL()}, launcher.Control)
	id, err := launcher.Identity().Own()
	require.NoError(t, err)
	assert.Equal(t, identity.Identity{Role: identity.Launcher, Name: operatorName()}, id)
	served, err := launcher.Identity().Hosts()
	require.NoError(t, err)
	assert.Contains(t, served, "127.0.0.1", "the worker of a rank's own CPUs on this machine is called so")

	// The site as an earlier program made it.
	files := s.identityOf(s.launcher())
	require.NoError(t, removeFiles(files.Cert, files.Key))
	require.NoError(t, contexts.Update(o.Contexts, func(f *contexts.File) error {
		delete(f.Contexts, "here-launcher")
		f.Current = "mine"
		return nil
	}))
	require.NoError(t, s.Close())
	s = made(t, o)
	assert.Equal(t, Repaired, s.outcome("authority and certificates"))
	assert.Equal(t, There, s.outcome("context here"))
	assert.Equal(t, Made, s.outcome("context here-launcher"))
	assert.False(t, s.renewed, "the daemons go on")
	assert.Equal(t, "mine", read().Current)

	foreign := contexts.Context{Control: []string{"unix:/theirs"}}
	require.NoError(t, contexts.Update(o.Contexts, func(f *contexts.File) error {
		f.Contexts["here-launcher"], f.Current = foreign, "here-launcher"
		return nil
	}))
	err = s.Make(t.Context())
	require.ErrorIs(t, err, ErrForeign)
	assert.ErrorContains(t, err, "millrace context remove here-launcher")
	require.NoError(t, s.removeContexts())
	assert.Equal(t, Removed, s.lastOutcome("context here"))
	assert.Equal(t, Absent, s.lastOutcome("context here-launcher"))
	assert.Equal(t, map[string]contexts.Context{"mine": {Control: []string{"unix:/s"}}, "here-launcher": foreign},
		read().Contexts)
	assert.Equal(t, "here-launcher", read().Current)
	require.NoError(t, s.Close())

	o.Dir, o.Context = o.Dir+"2", strings.Repeat("a", 63)
	_, err = Open(o)
	assert.ErrorContains(t, err, "context name", "the name leaves no room for the launchers' context")
	o.Context = strings.Repeat("a", 63-len(launcherContext("")))
	s = made(t, o)
	require.NoError(t, s.removeContexts())
	assert.Equal(t, "here-launcher", read().Current, "the context that was current before")
	require.NoError(t, s.Close())
}

func TestFindRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := Find(Options{Dir: filepath.Join(dir, "nothing")})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Find(Options{Dir: dir})
	require.ErrorIs(t, err, os.ErrNotExist, "an empty folder is none")
	const rest = ` "node": "127.0.0.1:1", "drive_bytes": 1, "contexts": "/c", "context": "a"`
	for _, text := range []string{
		"", "{}", "[]", `{"made_by": "somebody"}`, `{"made_by": "millrace up"}`,
		`{"made_by": "millrace up", "control": "0.0.0.0:1",` + rest + `}`,
		`{"made_by": "millrace up", "control": "127.0.0.1:2",` + rest + `, "more": 1}`,
		`{"made_by": "millrace up", "control": "127.0.0.1:2",` + rest + `} {}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, recordFile), []byte(text), 0o600))
		_, err := Find(Options{Dir: dir})
		require.ErrorIs(t, err, ErrForeign, text)
		_, err = Open(Options{Dir: dir, Contexts: "/c"})
		require.ErrorIs(t, err, ErrForeign, text)
	}
}

func TestTheLockIsOneSitesAtATime(t *testing.T) {
	o := options(t)
	first, err := Open(o)
	require.NoError(t, err)
	opened := make(chan error, 1)
	go func() {
		second, err := Open(o)
		if err == nil {
			err = second.Close()
		}
		opened <- err
	}()
	select {
	case <-opened:
		t.Fatal("a second opener did not wait")
	case <-time.After(50 * time.Millisecond): // it may not have come so far: then this shows nothing
	}
	require.NoError(t, first.Close())
	require.NoError(t, <-opened)
}

// TestRunsKnowsTheProcess checks that a pid file counts only for the process for which it was written.
func TestRunsKnowsTheProcess(t *testing.T) {
	s, err := Open(options(t))
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, os.Mkdir(s.path("run"), 0o700))
	d := s.nodeDaemon()
	p, err := s.runningProcess(d)
	require.NoError(t, err)
	require.Nil(t, p, "there is no file")

	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	require.Eventually(t, func() bool { // between fork and exec it is this test
		require.NoError(t, s.writePID(d, cmd.Process.Pid))
		p, err := s.runningProcess(d)
		require.NoError(t, err)
		return p != nil && strings.Join(p.Command, " ") == "sleep 600"
	}, time.Minute, time.Millisecond)

	path := s.path("run", "node.pid")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for was, is := range map[string]string{`"600"`: `"601"`, `"began":"`: `"began":"x`} {
		require.Contains(t, string(whole), was)
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(whole), was, is, 1)), 0o600))
		p, err := s.runningProcess(d)
		require.NoError(t, err)
		require.Nil(t, p, "another process by now: %s", is)
		ran, err := s.endDaemon(d)
		require.NoError(t, err)
		require.False(t, ran)
		now, err := lookUp(cmd.Process.Pid)
		require.NoError(t, err)
		require.NotNil(t, now, "it is not ended")
	}
	require.NoError(t, os.WriteFile(path, []byte("17"), 0o600))
	_, err = s.runningProcess(d)
	require.ErrorContains(t, err, "does not say which process")
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	ran, err := s.endDaemon(d)
	require.NoError(t, err)
	require.True(t, ran)
	require.Error(t, <-waited)
}

func TestUnits(t *testing.T) {
	o := options(t)
	o.Dir = filepath.Join(filepath.Dir(o.Dir), `a "site" of $HOME`)
	s, err := Open(o)
	require.NoError(t, err)
	defer s.Close()
	dir := t.TempDir()
	var paths []string
	for _, d := range s.daemons() {
		u := string(s.unit(d))
		assert.True(t, strings.HasPrefix(u, unitHead))
		paths = append(paths, filepath.Join(dir, unitName(d)))
		u = strings.ReplaceAll(u, o.Program, "/bin/true") // systemd wants the program to be there
		require.NoError(t, os.WriteFile(paths[len(paths)-1], []byte(u), 0o644))
	}
	assert.Contains(t, string(s.unit(s.controlDaemon())), `a \"site\" of $$HOME/control"`)
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("there is no systemd-analyze to verify the units with")
		return
	}
	out, err := exec.Command("systemd-analyze", append([]string{"verify", "--man=no"}, paths...)...).CombinedOutput()
	t.Logf("%s", out)
	for line := range strings.Lines(string(out)) {
		assert.NotContains(t, line, "millrace-up-", "systemd-analyze (%v)", err)
	}
}

func TestOperatorNameFitsACertificate(t *testing.T) {
	require.NoError(t, identity.Identity{Role: identity.Operator, Name: operatorName()}.Check())
}

func TestCheckAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:0": "", "node0.example.net:7460": "", "[::1]:1": "", "": "HOST:PORT", "127.0.0.1": "HOST:PORT",
		":1": "every address", "[::]:1": "every address",
		"0.0.0.0:1": "every address", "127.0.0.1:65536": "65536", "127.0.0.1:x": "x",
	} {
		err := CheckAddress(addr)
		if want == "" {
			assert.NoError(t, err, addr)
		} else {
			assert.ErrorContains(t, err, want, addr)
		}
	}
}
