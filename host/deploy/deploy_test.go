package deploy_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock/stocktest"
	"github.com/millrace/millrace/host/deploy"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
)

// anImage is the stock image changed.
func anImage(t *testing.T, change func(*image.Spec)) ([]byte, *image.Image) {
	t.Helper()
	m := stocktest.Changed(t, change)
	return m.Bytes(), m
}

func numbered(t *testing.T, n uint16) ([]byte, *image.Image) {
	return anImage(t, func(s *image.Spec) { s.Partition.Slots = n })
}

// fleet is some drives, and a record of the calls to them.
type fleet struct {
	t      *testing.T
	drives []deploy.Drive
	log    []string
}

func (f *fleet) say(what, drive string) { f.log = append(f.log, what+" "+drive) }

func newFleet(t *testing.T, names ...string) *fleet {
	f := &fleet{t: t}
	for _, name := range names {
		dev, err := sdk.Open(t.Context(), "mem:?size=1MiB&slm=1MiB", sdk.DeviceOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, dev.Close()) })
		f.add(name, dev)
	}
	return f
}

func (f *fleet) add(name string, dev *sdk.Device) {
	f.drives = append(f.drives, deploy.Drive{
		Name: name, Device: dev,
		Drain:  func(context.Context) error { f.say("drain", name); return nil },
		Resume: func(context.Context) error { f.say("resume", name); return nil },
	})
}

func (f *fleet) gate(bad ...string) func(context.Context, deploy.Drive) error {
	return func(_ context.Context, d deploy.Drive) error {
		f.say("gate", d.Name)
		if slices.Contains(bad, d.Name) {
			return errors.New("p fell by half")
		}
		return nil
	}
}

// runs is the image that a drive runs.
func runs(t *testing.T, d deploy.Drive) image.ID {
	t.Helper()
	r, err := d.Device.ImageLog(t.Context())
	require.NoError(t, err)
	s, ok := r.Active()
	require.True(t, ok, "%s runs an image", d.Name)
	return s.Image
}

func states(r deploy.Result) (all []deploy.State) {
	for _, o := range r.Drives {
		all = append(all, o.State)
	}
	return all
}

func TestRollout(t *testing.T) {
	b, m := numbered(t, 7)
	f := newFleet(t, "a", "b", "c")
	// b runs it already.
	slot, _, err := f.drives[1].Device.PlaceImage(t.Context(), b)
	require.NoError(t, err)
	require.NoError(t, f.drives[1].Device.ActivateImage(t.Context(), slot))
	d := deploy.New(deploy.Options{Image: b, Gate: f.gate()})
	before := runs(t, f.drives[0])
	r, err := d.Run(t.Context(), f.drives)
	require.NoError(t, err)
	assert.Equal(t, []deploy.State{deploy.Updated, deploy.Current, deploy.Updated}, states(r))
	assert.Equal(t, []string{"drain a", "gate a", "resume a", "gate b", "drain c", "gate c", "resume c"}, f.log,
		"one drive at a time")
	assert.Equal(t, before, r.Drives[0].Before)
	assert.Equal(t, m.ID, r.Image)
	for _, d := range f.drives {
		assert.Equal(t, m.ID, runs(t, d))
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"state":"updated"`)

	f.log = nil
	r, err = d.Run(t.Context(), f.drives)
	require.NoError(t, err)
	assert.Equal(t, []deploy.State{deploy.Current, deploy.Current, deploy.Current}, states(r), "again")
	assert.Equal(t, []string{"gate a", "gate b", "gate c"}, f.log, "nobody's work is touched")
}

func TestAFailureStopsTheRolloutAndTakesTheDriveBack(t *testing.T) {
	good, _ := numbered(t, 7)
	_, stock := anImage(t, func(*image.Spec) {})
	wrong, _ := anImage(t, func(s *image.Spec) {
		v := s.SelfTest[0]
		v.Output = bytes.Clone(v.Output)
		v.Output[0]++
		s.SelfTest = []image.Vector{v}
	})
	foreign, fm := anImage(t, func(s *image.Spec) { s.Interface[0]++ })
	for _, c := range []struct {
		name  string
		image []byte
		wrap  func(t *testing.T, f *fleet) // of drive b
		bad   []string
		state deploy.State
		step  string
		kind  error
		log   []string // of b
	}{
		{name: "the gate says no", image: good, bad: []string{"b"}, state: deploy.RolledBack, step: "gate",
			log: []string{"drain b", "gate b", "resume b"}},
		{name: "it fails its self-test", image: wrong, state: deploy.Failed, step: "test", kind: image.ErrSelfTest},
		{name: "it needs another interface", image: foreign, state: deploy.Failed, step: "load",
			kind: image.ErrInterface},
		{name: "it does not drain", image: good, state: deploy.Failed, step: "drain", kind: context.DeadlineExceeded,
			log: []string{"resume b"}, wrap: func(_ *testing.T, f *fleet) {
				f.drives[1].Drain = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
			}},
		{name: "somebody else uses it", image: good, state: deploy.RolledBack, step: "activate", kind: image.ErrInUse,
			log: []string{"drain b", "resume b"}, wrap: func(t *testing.T, f *fleet) {
				slm, err := f.drives[1].Device.ReserveSLM(t.Context(), 4096)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, slm.Release(context.Background())) })
			}},
		{name: "it gets no work", image: good, state: deploy.Stuck, step: "resume", log: []string{"drain b", "gate b"},
			wrap: func(_ *testing.T, f *fleet) {
				f.drives[1].Resume = func(context.Context) error { return errors.New("no") }
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, "a", "b", "c")
			if c.wrap != nil {
				c.wrap(t, f)
			}
			drives := f.drives
			if errors.Is(c.kind, image.ErrSelfTest) || errors.Is(c.kind, image.ErrInterface) {
				drives = drives[1:] // the first would fail
			}
			r, err := deploy.New(deploy.Options{Image: c.image, Gate: f.gate(c.bad...),
				Policy: deploy.Policy{DrainTime: 10 * time.Millisecond}}).Run(t.Context(), drives)
			require.Error(t, err)
			var e *deploy.DriveError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, "b", e.Drive)
			assert.Equal(t, c.step, e.Step)
			assert.Equal(t, c.state, e.State)
			if c.kind != nil {
				require.ErrorIs(t, err, c.kind)
			}
			want := []deploy.State{deploy.Updated, c.state, deploy.Untouched}
			assert.Equal(t, want[len(want)-len(drives):], states(r))
			assert.True(t, r.Stopped)
			if c.log != nil {
				assert.Equal(t, append([]string{"drain a", "gate a", "resume a"}, c.log...), f.log)
			}
			assert.Equal(t, stock.ID, runs(t, f.drives[2]), "left alone")
			if c.state != deploy.Stuck {
				assert.Equal(t, stock.ID, runs(t, f.drives[1]), "as before")
			}
		})
	}
	// The error has both interfaces and the step.
	f := newFleet(t, "a")
	_, err := deploy.New(deploy.Options{Image: foreign}).Run(t.Context(), f.drives)
	var refused *image.LoadError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, fm.Interface(), refused.Want)
	assert.Equal(t, stock.Interface(), refused.Have)
}

func TestRolloutPastFailures(t *testing.T) {
	b, m := numbered(t, 7)
	f := newFleet(t, "a", "b", "c")
	var log bytes.Buffer
	r, err := deploy.New(deploy.Options{
		Image: b, Gate: f.gate("a"), Policy: deploy.Policy{Failures: 1}, Logger: slog.New(slog.NewTextHandler(&log,
			nil)),
	}).Run(t.Context(), f.drives)
	require.ErrorContains(t, err, "drive a: rolled back, as step gate failed: p fell by half")
	assert.Equal(t, []deploy.State{deploy.RolledBack, deploy.Updated, deploy.Updated}, states(r))
	assert.False(t, r.Stopped)
	assert.Contains(t, log.String(), `drive=a from=checking to="rolling back"`)
	assert.Equal(t, m.ID, runs(t, f.drives[2]))
}

func TestRolloutByIDAndPinnedDrives(t *testing.T) {
	b, m := numbered(t, 7)
	_, other := numbered(t, 8)
	f := newFleet(t, "has", "lacks", "pinned")
	require.NoError(t, f.drives[0].Device.LoadImage(t.Context(), 2, b))
	f.drives[2].Want = other.ID
	r, err := deploy.New(deploy.Options{ID: m.ID, Gate: f.gate()}).Run(t.Context(), f.drives)
	require.ErrorContains(t, err, "no slot holds image "+m.ID.Short())
	assert.Equal(t, []deploy.State{deploy.Updated, deploy.Failed}, states(r), "the pinned drive has no part in it")
	assert.Equal(t, m.ID, runs(t, f.drives[0]))

	_, err = deploy.New(deploy.Options{}).Run(t.Context(), f.drives)
	require.ErrorContains(t, err, "no image is named")
	_, err = deploy.New(deploy.Options{Image: b[:40]}).Run(t.Context(), f.drives)
	require.ErrorIs(t, err, image.ErrCorrupt)
	_, err = deploy.New(deploy.Options{Image: b, ID: other.ID}).Run(t.Context(), f.drives)
	require.ErrorIs(t, err, image.ErrIdentifier)
}

func TestCancelledRollout(t *testing.T) {
	b, _ := numbered(t, 7)
	_, stock := anImage(t, func(*image.Spec) {})
	f := newFleet(t, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	r, err := deploy.New(deploy.Options{Image: b, Gate: func(ctx context.Context, d deploy.Drive) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}}).Run(ctx, f.drives)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []deploy.State{deploy.RolledBack, deploy.Untouched}, states(r))
	assert.Equal(t, []string{"drain a", "resume a"}, f.log, "it has its work back")
	assert.Equal(t, stock.ID, runs(t, f.drives[0]))

	r, err = deploy.New(deploy.Options{Image: b, Gate: f.gate()}).Run(ctx, f.drives)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []deploy.State{deploy.Failed, deploy.Untouched}, states(r))
}

func TestOneRolloutAtATime(t *testing.T) {
	b, _ := numbered(t, 7)
	f := newFleet(t, "a")
	var d *deploy.Deployer
	d = deploy.New(deploy.Options{Image: b, Gate: func(ctx context.Context, _ deploy.Drive) error {
		_, err := d.Run(ctx, nil)
		assert.ErrorIs(t, err, deploy.ErrRunning)
		return nil
	}})
	_, err := d.Run(t.Context(), f.drives)
	require.NoError(t, err)
}

func TestHealthyIsTheGateWhereNoneIsGiven(t *testing.T) {
	b, m := numbered(t, 7)
	f := newFleet(t, "a")
	_, err := deploy.New(deploy.Options{Image: b}).Run(t.Context(), f.drives)
	require.NoError(t, err)
	assert.Equal(t, m.ID, runs(t, f.drives[0]))
	plain, err := sdk.Open(t.Context(), "mem:?size=1MiB", sdk.DeviceOptions{Plain: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, plain.Close()) }()
	r, err := deploy.New(deploy.Options{Image: b}).Run(t.Context(), []deploy.Drive{{Name: "plain", Device: plain}})
	require.ErrorIs(t, err, sdk.ErrNoCompute)
	assert.Equal(t, []deploy.State{deploy.Failed}, states(r))
}

// server serves a drive in a file over TCP, and can be stopped and started.
type server struct {
	t      *testing.T
	path   string
	at     string
	drive  *csd.Drive
	target *tcp.Target
	ended  chan error
}

const serverNQN = "nqn.2024-01.io.millrace:deploy"

func (s *server) start() {
	d, err := csd.Open(csd.Options{Path: s.path, Create: s.at == "", Size: sizeOf(s.at == ""), SLMBytes: 1 << 20,
		NQN: serverNQN})
	require.NoError(s.t, err)
	target, err := tcp.NewTarget(tcp.TargetOptions{})
	require.NoError(s.t, err)
	require.NoError(s.t, target.Add(d.Subsystem()))
	if s.at == "" {
		s.at = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", s.at)
	require.NoError(s.t, err)
	s.at, s.drive, s.target, s.ended = l.Addr().String(), d, target, make(chan error, 1)
	go func() { s.ended <- target.Serve(l) }()
}

func sizeOf(create bool) int64 {
	if create {
		return 1 << 20
	}
	return 0
}

func (s *server) stop() {
	require.NoError(s.t, s.target.Close())
	require.ErrorIs(s.t, <-s.ended, tcp.ErrTargetClosed)
	require.NoError(s.t, s.drive.Close())
}

// TestADriveGoesAwayDuringItsCheck checks that a drive that went away during its check is brought back when it returns.
func TestADriveGoesAwayDuringItsCheck(t *testing.T) {
	b, _ := numbered(t, 7)
	_, stock := anImage(t, func(*image.Spec) {})
	s := &server{t: t, path: filepath.Join(t.TempDir(), "drive")}
	s.start()
	defer func() { s.stop() }()
	dev, err := sdk.Open(t.Context(), "tcp://"+s.at+"/"+serverNQN,
		sdk.DeviceOptions{TCP: tcp.DialOptions{FirstDelay: time.Millisecond, LongestDelay: 20 * time.Millisecond}})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	f := &fleet{t: t}
	f.add("a", dev)
	r, err := deploy.New(deploy.Options{Image: b, Gate: func(context.Context, deploy.Drive) error {
		s.stop()
		s.start()
		return errors.New("it went away")
	}}).Run(t.Context(), f.drives)
	require.ErrorContains(t, err, "it went away")
	assert.Equal(t, []deploy.State{deploy.RolledBack}, states(r))
	assert.Equal(t, stock.ID, runs(t, f.drives[0]))
	assert.Equal(t, []string{"drain a", "resume a"}, f.log)
}

// lossy loses the answer to an activation that the drive has done.
type lossy struct {
	nvme.Conn
	armed bool
}

func (l *lossy) Admin(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	cpl, err := l.Conn.Admin(ctx, cmd, data)
	if l.armed && cmd.Opcode() == 0xc4 && cmd.DW(11) == 0 {
		l.armed = false
		return nvme.Completion{}, errors.New("connection lost")
	}
	return cpl, err
}

func TestALostAnswerIsNotBelievedEitherWay(t *testing.T) {
	b, m := numbered(t, 7)
	_, stock := anImage(t, func(*image.Spec) {})
	s := &server{t: t, path: filepath.Join(t.TempDir(), "drive")}
	s.start()
	defer s.stop()
	conn, err := tcp.Dial(t.Context(), tcp.DialOptions{Address: s.at, Subsystem: serverNQN})
	require.NoError(t, err)
	dev, err := sdk.NewDevice(t.Context(), "lossy", &lossy{Conn: conn, armed: true}, sdk.Vendor, sdk.DeviceOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	f := &fleet{t: t}
	f.add("a", dev)
	d := deploy.New(deploy.Options{Image: b, Gate: f.gate()})
	r, err := d.Run(t.Context(), f.drives)
	require.ErrorContains(t, err, "connection lost")
	assert.Equal(t, []deploy.State{deploy.RolledBack}, states(r))
	assert.Equal(t, stock.ID, runs(t, f.drives[0]))
	_, err = d.Run(t.Context(), f.drives)
	require.NoError(t, err, "the next rollout finishes it")
	assert.Equal(t, m.ID, runs(t, f.drives[0]))
}

// TestAKeyIsChanged checks that a rollout of the same image with another signature brings the signature to the drives.
func TestAKeyIsChanged(t *testing.T) {
	old, next := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32)),
		ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32))
	_, m := numbered(t, 7)
	signed, err := m.Sign(old)
	require.NoError(t, err)
	resigned, err := m.Sign(next)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "drive")
	session := func(trust func(*image.Trust) error, fn func(f *fleet)) {
		dev, err := sdk.Open(t.Context(), "file:"+path+"?slm=1MiB", sdk.DeviceOptions{Trust: trust})
		require.NoError(t, err)
		f := &fleet{t: t}
		f.add("a", dev)
		fn(f)
		require.NoError(t, dev.Close())
	}
	dev, err := sdk.Create(t.Context(), "file:"+path+"?size=1MiB&slm=1MiB",
		sdk.DeviceOptions{Trust: func(t *image.Trust) error {
			t.Policy, t.Keys = image.PolicyRequire, []ed25519.PublicKey{old.Public().(ed25519.PublicKey)}
			return nil
		}})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	session(nil, func(f *fleet) {
		_, err := deploy.New(deploy.Options{Image: signed}).Run(t.Context(), f.drives)
		require.NoError(t, err)
	})
	both := func(t *image.Trust) error {
		t.Keys = append(t.Keys, next.Public().(ed25519.PublicKey))
		return nil
	}
	session(both, func(f *fleet) {
		slot, loaded, err := f.drives[0].Device.PlaceImage(t.Context(), resigned)
		require.NoError(t, err)
		assert.True(t, loaded, "the image is there, this signature is not")
		require.NoError(t, f.drives[0].Device.ActivateImage(t.Context(), slot))
	})
	leaked := func(t *image.Trust) error {
		t.Revoke([]image.KeyID{image.KeyOf(old.Public().(ed25519.PublicKey))}, nil)
		return nil
	}
	session(leaked, func(f *fleet) {
		assert.Equal(t, m.ID, runs(t, f.drives[0]), "it boots what the new key signed")
		_, err := deploy.New(deploy.Options{Image: signed}).Run(t.Context(), f.drives)
		require.NoError(t, err, "the image is as it should be")
		assert.Empty(t, deploy.Drift(t.Context(), f.drives, m.ID))
	})
}

// TestARolloutMendsASignature checks that a rollout replaces the signature of an image if the drive only warned of
// the earlier signature.
func TestARolloutMendsASignature(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	unsigned, m := numbered(t, 7)
	signed, err := m.Sign(key)
	require.NoError(t, err)
	gone := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, 32))
	byGone, err := m.Sign(gone)
	require.NoError(t, err)
	trust := func(t *image.Trust) error {
		t.Policy, t.Keys = image.PolicyWarn, []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
		t.Revoke([]image.KeyID{image.KeyOf(gone.Public().(ed25519.PublicKey))}, nil)
		return nil
	}
	dev, err := sdk.Open(t.Context(), "mem:?size=1MiB&slm=1MiB", sdk.DeviceOptions{Trust: trust})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	f := &fleet{t: t}
	f.add("a", dev)
	for _, b := range [][]byte{unsigned, byGone} {
		slot, _, err := dev.PlaceImage(t.Context(), b)
		require.NoError(t, err)
		require.NoError(t, dev.ActivateImage(t.Context(), slot))
	}
	drifted := deploy.Drift(t.Context(), f.drives, m.ID)
	require.Len(t, drifted, 1)
	assert.Equal(t, "the image is revoked", drifted[0].Why)
	r, err := deploy.New(deploy.Options{Image: signed, Gate: f.gate()}).Run(t.Context(), f.drives)
	require.NoError(t, err)
	assert.Equal(t, []deploy.State{deploy.Updated}, states(r))
	assert.Empty(t, deploy.Drift(t.Context(), f.drives, m.ID))
}

func TestDrift(t *testing.T) {
	b, m := numbered(t, 7)
	_, other := numbered(t, 8)
	f := newFleet(t, "good", "old", "pinned")
	for _, i := range []int{0, 2} {
		slot, _, err := f.drives[i].Device.PlaceImage(t.Context(), b)
		require.NoError(t, err)
		require.NoError(t, f.drives[i].Device.ActivateImage(t.Context(), slot))
	}
	f.drives[2].Want = other.ID
	plain, err := sdk.Open(t.Context(), "mem:?size=1MiB&slm=1MiB", sdk.DeviceOptions{Plain: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, plain.Close()) }()
	f.add("plain", plain)
	assert.Empty(t, deploy.Drift(t.Context(), f.drives[:2], image.ID{}), "no image is wanted")
	got := deploy.Drift(t.Context(), f.drives, m.ID)
	var lines []string
	for _, d := range got {
		lines = append(lines, d.Drive+": "+d.Why)
	}
	require.Len(t, got, 3, "%v", lines)
	assert.Equal(t, "old: it runs another image", lines[0])
	assert.Equal(t, "pinned: it runs another image", lines[1])
	assert.Equal(t, other.ID, got[1].Want)
	assert.Equal(t, m.ID, got[1].Runs)
	require.ErrorIs(t, got[2].Err, sdk.ErrNoCompute)
}
