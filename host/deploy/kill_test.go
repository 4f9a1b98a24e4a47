package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/host/deploy"
	"github.com/millrace/millrace/sdk"
)

// The work of a separate process: to roll an image out over drives, until the process kills itself.
const (
	killDrives = "MILLRACE_TEST_DEPLOY_DRIVES" // URIs, separated by spaces
	killImage  = "MILLRACE_TEST_DEPLOY_IMAGE"  // a file
	killState  = "MILLRACE_TEST_DEPLOY_KILL"   // the state in which to die, as "second checking"
	killGate   = "MILLRACE_TEST_DEPLOY_GATE"   // the gate's error; empty: none
)

// killer is a log that kills the process when a drive comes into a state.
type killer struct {
	slog.Handler
	at string
}

func (k killer) Handle(_ context.Context, r slog.Record) error {
	var drive, to string
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "drive":
			drive = a.Value.String()
		case "to":
			to = a.Value.String()
		}
		return true
	})
	fmt.Println("state", drive, to)
	if drive+" "+to != k.at {
		return nil
	}
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return errors.Join(p.Kill(), func() error { select {} }())
}

// TestDeployVictim is the process that is killed.
func TestDeployVictim(t *testing.T) {
	if os.Getenv(killDrives) == "" {
		t.Skip("a process that another test starts")
	}
	b, err := os.ReadFile(os.Getenv(killImage))
	require.NoError(t, err)
	f := &fleet{t: t}
	for i, uri := range strings.Fields(os.Getenv(killDrives)) {
		dev, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
		require.NoError(t, err)
		f.add([]string{"first", "second"}[i], dev)
	}
	gate := func(context.Context, deploy.Drive) error { return nil }
	if why := os.Getenv(killGate); why != "" {
		gate = func(context.Context, deploy.Drive) error { return errors.New(why) }
	}
	_, err = deploy.New(deploy.Options{Image: b, Gate: gate,
		Logger: slog.New(killer{slog.NewTextHandler(io.Discard, nil),
			os.Getenv(killState)})}).Run(t.Context(), f.drives)
	t.Log(err)
}

// TestANodeIsKilledAtEveryStepOfARollout checks that the drives run the old image or the new one, and that the next
// rollout finishes.
func TestANodeIsKilledAtEveryStepOfARollout(t *testing.T) {
	b, m := numbered(t, 7)
	_, stock := anImage(t, func(*image.Spec) {})
	file := filepath.Join(t.TempDir(), "new.mimg")
	require.NoError(t, os.WriteFile(file, b, 0o644))
	for _, c := range []struct {
		at    string
		gate  string
		first image.ID // the images that the drives run then
		then  image.ID
	}{
		{at: "first looking", first: stock.ID, then: stock.ID},
		{at: "first draining", first: stock.ID, then: stock.ID},
		{at: "first loading", first: stock.ID, then: stock.ID},
		{at: "first testing", first: stock.ID, then: stock.ID},
		{at: "first activating", first: stock.ID, then: stock.ID},
		{at: "first checking", first: m.ID, then: stock.ID},
		{at: "first resuming", first: m.ID, then: stock.ID},
		{at: "first updated", first: m.ID, then: stock.ID},
		{at: "second testing", first: m.ID, then: stock.ID},
		{at: "second updated", first: m.ID, then: m.ID},
		{at: "first rolling back", gate: "no", first: m.ID, then: stock.ID},
		{at: "first recovering", gate: "no", first: stock.ID, then: stock.ID},
	} {
		t.Run(c.at, func(t *testing.T) {
			var uris []string
			f := &fleet{t: t}
			for _, name := range []string{"first", "second"} {
				s := &server{t: t, path: filepath.Join(t.TempDir(), name)}
				s.start()
				t.Cleanup(s.stop)
				uris = append(uris, "tcp://"+s.at+"/"+serverNQN)
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestDeployVictim$", "-test.v")
			cmd.Env = append(os.Environ(), killDrives+"="+strings.Join(uris, " "), killImage+"="+file,
				killState+"="+c.at, killGate+"="+c.gate)
			said, err := cmd.CombinedOutput()
			require.Error(t, err, "it was killed: %s", said)
			require.Contains(t, string(said), "state "+c.at, "where it was to be")
			for i, uri := range uris {
				dev, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, dev.Close()) })
				f.add([]string{"first", "second"}[i], dev)
			}
			assert.Equal(t, c.first, runs(t, f.drives[0]))
			assert.Equal(t, c.then, runs(t, f.drives[1]))
			_, err = deploy.New(deploy.Options{Image: b, Gate: f.gate()}).Run(t.Context(), f.drives)
			require.NoError(t, err)
			assert.Empty(t, deploy.Drift(t.Context(), f.drives, m.ID))
			assert.Contains(t, strings.Join(f.log, ", "), "gate first", "every drive passed the gate in the end")
			assert.Contains(t, strings.Join(f.log, ", "), "gate second")
		})
	}
}
