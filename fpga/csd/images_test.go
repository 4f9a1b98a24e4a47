package csd

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd/images"
	"github.com/millrace/millrace/fpga/csd/keptfile"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

// numbered is the stock image with a number of slots of its own, so that each has another id.
func numbered(t testing.TB, n uint16) ([]byte, *image.Image) {
	return variant(t, func(s *image.Spec) { s.Partition.Slots = n })
}

// put loads an image and activates it.
func put(t testing.TB, c nvme.Conn, slot uint16, b []byte, m *image.Image) {
	t.Helper()
	require.NoError(t, load(t, c, slot, b, m.ID.PUID()))
	require.NoError(t, activate(t, c, slot))
}

// logPageOf reads vendor log C1h as a host does.
func logPageOf(t testing.TB, c nvme.Conn) *image.LogPage {
	t.Helper()
	b := make([]byte, 64<<10)
	cmd := nvme.GetLog(nvme.LogImages, nvme.AllNamespaces, 0, uint32(len(b)))
	_, err := c.Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	r, err := image.ParseLogPage(b)
	require.NoError(t, err)
	return r
}

// lastRefusal demands that the drive reports a refusal, and that the error log names the log page.
func lastRefusal(t testing.TB, c nvme.Conn) *image.Refusal {
	t.Helper()
	b := make([]byte, nvme.ErrorEntrySize)
	cmd := nvme.GetLog(nvme.LogErrors, nvme.AllNamespaces, 0, uint32(len(b)))
	_, err := c.Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	entries := nvme.UnmarshalErrors(b)
	require.Len(t, entries, 1)
	assert.EqualValues(t, nvme.LogImages, entries[0].VendorLog, "byte 28 names the page that tells more")
	r := logPageOf(t, c)
	require.NotEmpty(t, r.Refusals)
	return &r.Refusals[0]
}

func TestARefusalTellsStepAndBothInterfaces(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	gone := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32))
	pub := func(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }
	sign := func(k ed25519.PrivateKey, change func(*image.Spec)) ([]byte, *image.Image) {
		_, m := variant(t, change)
		b, err := m.Sign(k)
		require.NoError(t, err)
		return b, m
	}
	_, revoked := numbered(t, 9)
	trust := image.Trust{Policy: image.PolicyRequire, Keys: []ed25519.PublicKey{pub(key), pub(gone)},
		RevokedKeys: []image.KeyID{image.KeyOf(pub(gone))}, RevokedImages: []image.ID{revoked.ID}}
	c := connect(t, openDrive(t, Options{Size: 1 << 20, Trust: trusting(trust)}))
	other := uuid.MustParse("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d")
	for _, tt := range []struct {
		name    string
		key     ed25519.PrivateKey // nil: unsigned
		change  func(*image.Spec)
		spoil   func([]byte)
		step    image.Step
		status  nvme.Status
		says    string
		onStart bool // refused when it is activated, and when it is tested
	}{
		{name: "foreign interface", key: key, change: func(s *image.Spec) { s.Interface = other }, step: image.StepInterface,
			status: nvme.InvalidProgramData, says: other.String()},
		{name: "unsigned", change: func(s *image.Spec) { s.Partition.Slots = 8 }, step: image.StepSignature,
			status: nvme.OperationDenied, says: "missing"},
		{name: "revoked key", key: gone, change: func(s *image.Spec) { s.Partition.Slots = 8 }, step: image.StepRevocation,
			status: nvme.OperationDenied, says: "revoked"},
		{name: "revoked image", key: key, change: func(s *image.Spec) { s.Partition.Slots = 9 }, step: image.StepRevocation,
			status: nvme.OperationDenied, says: "revoked"},
		{name: "unit without backend", key: key, change: func(s *image.Spec) { s.Units[0].Version = 9 },
			step: image.StepBackend, status: nvme.InvalidProgramData, says: "version 9", onStart: true},
		{name: "wrong answer", key: key, change: func(s *image.Spec) { s.SelfTest = wrongAnswer(s.SelfTest[0]) },
			step: image.StepSelfTest, status: nvme.InvalidProgramData, says: "other bytes", onStart: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, m := variant(t, tt.change)
			if tt.key != nil {
				b, m = sign(tt.key, tt.change)
			}
			check := func(operation string, err error) {
				require.ErrorIs(t, err, tt.status)
				f := lastRefusal(t, c)
				assert.Equal(t, tt.step, f.Step)
				assert.Equal(t, operation, f.Operation)
				assert.Equal(t, 2, f.Slot)
				assert.Equal(t, m.ID, f.Image)
				assert.Equal(t, m.Interface(), f.Want)
				assert.Equal(t, stock.Interface(), f.Have)
				assert.Contains(t, f.Err().Error(), tt.says)
			}
			err := load(t, c, 2, b, m.ID.PUID())
			if !tt.onStart {
				check("load", err)
				return
			}
			require.NoError(t, err)
			cmd := cs.ImageTest(2)
			_, err = c.Admin(t.Context(), &cmd, nil)
			check("test", err)
			check("activate", activate(t, c, 2))
		})
	}
	r := logPageOf(t, c)
	assert.Equal(t, image.PolicyRequire, r.Policy)
	assert.Equal(t, []image.KeyID{image.KeyOf(pub(key)), image.KeyOf(pub(gone))}, r.Keys)
	assert.Equal(t, trust.RevokedKeys, r.RevokedKeys)
	assert.Equal(t, trust.RevokedImages, r.RevokedImages)
	assert.LessOrEqual(t, len(r.Refusals), image.MaxRefusals)
	active, ok := r.Active()
	require.True(t, ok)
	assert.Equal(t, image.RoleStock, active.Role, "the image that ran still runs")
}

func wrongAnswer(v image.Vector) []image.Vector {
	v.Output = bytes.Clone(v.Output)
	v.Output[0]++
	return []image.Vector{v}
}

func TestATestActivatesNothing(t *testing.T) {
	c := connect(t, openDrive(t, Options{Size: 1 << 20}))
	b, m := numbered(t, 7)
	require.NoError(t, load(t, c, 1, b, m.ID.PUID()))
	assert.False(t, logPageOf(t, c).Slots[1].Tested)
	hold := cs.SLMReserve(0, 4096)
	_, err := c.Admin(t.Context(), &hold, nil)
	require.NoError(t, err)
	cmd := cs.ImageTest(1)
	_, err = c.Admin(t.Context(), &cmd, nil)
	require.NoError(t, err, "also while a host holds memory")
	s := logPageOf(t, c).Slots[1]
	assert.True(t, s.Tested)
	assert.False(t, s.Active)
	cmd = cs.ImageTest(3)
	_, err = c.Admin(t.Context(), &cmd, nil)
	require.ErrorIs(t, err, nvme.NoProgram)
}

func TestAnImageInUseIsNotReplaced(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20})
	worker, err := controller.Local(d.Subsystem(), controller.HostID{NQN: "nqn.2024-01.io.millrace:worker"})
	require.NoError(t, err)
	c := connect(t, d)
	b, m := numbered(t, 7)
	require.NoError(t, load(t, c, 1, b, m.ID.PUID()))
	cmd := cs.SLMReserve(0, 4096)
	_, err = worker.Admin(t.Context(), &cmd, nil)
	require.NoError(t, err)

	require.ErrorIs(t, activate(t, c, 1), nvme.ProgramInUse)
	f := lastRefusal(t, c)
	assert.Equal(t, image.StepInUse, f.Step)
	assert.Equal(t, []string{"nqn.2024-01.io.millrace:worker"}, f.Holders)
	assert.Equal(t, m.ID, f.Image)
	var busy *image.BusyError
	require.ErrorAs(t, f.Err(), &busy)
	assert.Equal(t, f.Holders, busy.Holders)
	require.ErrorIs(t, f.Err(), image.ErrInUse)
	off := cs.Activation(0, false)
	_, err = c.Admin(t.Context(), &off, nil)
	require.ErrorIs(t, err, nvme.ProgramInUse, "the standard command neither")

	require.NoError(t, worker.Close(), "it drains")
	require.NoError(t, activate(t, c, 1))
}

func firmware(t testing.TB, c nvme.Conn) (l nvme.FirmwareLog, id nvme.IdentifyController) {
	t.Helper()
	b := make([]byte, nvme.FirmwareLogSize)
	cmd := nvme.GetLog(nvme.LogFirmware, nvme.AllNamespaces, 0, uint32(len(b)))
	_, err := c.Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	require.NoError(t, l.Unmarshal(b))
	b = make([]byte, nvme.IdentifySize)
	cmd = nvme.Identify(nvme.CNSController, 0, 0)
	_, err = c.Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	require.NoError(t, id.Unmarshal(b))
	return l, id
}

func TestFirmwareSlotLogTellsTheSlots(t *testing.T) {
	c := connect(t, openDrive(t, Options{Size: 1 << 20}))
	l, id := firmware(t, c)
	assert.Equal(t, nvme.FirmwareLog{Active: 1, Revisions: [7]string{"1.0"}}, l)
	assert.Equal(t, "1.0", id.Firmware)
	assert.EqualValues(t, 1|4<<1|1<<4, id.FirmwareUpdates, "four slots, the first read only, activation without a reset")

	b, m := numbered(t, 7)
	put(t, c, 2, b, m)
	rev := m.ID.String()[:8]
	l, id = firmware(t, c)
	assert.Equal(t, nvme.FirmwareLog{Active: 3, Revisions: [7]string{"1.0", "", rev}}, l)
	assert.Equal(t, rev, id.Firmware, "Identify tells the revision of the active slot")

	off := cs.Activation(2, false)
	_, err := c.Admin(t.Context(), &off, nil)
	require.NoError(t, err)
	l, id = firmware(t, c)
	assert.Equal(t, nvme.FirmwareLog{Active: 1, Next: 3, Revisions: [7]string{"1.0", "", rev}}, l,
		"nothing runs, the next start boots slot 3")
	assert.Equal(t, "1.0", id.Firmware)
}

// session opens the drive at path for the time of fn.
func session(t testing.TB, o Options, fn func(d *Drive, c nvme.Conn)) {
	t.Helper()
	o.SLMBytes = testSLM
	d, err := Open(o)
	require.NoError(t, err)
	c, err := controller.Local(d.Subsystem(), controller.HostID{})
	require.NoError(t, err)
	fn(d, c)
	require.NoError(t, c.Close())
	require.NoError(t, d.Close())
}

// activeIs demands that an image runs, and that it computes.
func activeIs(t testing.TB, d *Drive, c nvme.Conn, want *image.Image) {
	t.Helper()
	id, ok := d.ActiveImage()
	require.True(t, ok, "an image is active")
	require.Equal(t, want.ID, id)
	state, out, err := runVector(t, c, want.Spec.SelfTest[0])
	require.NoError(t, err)
	require.Zero(t, state)
	require.Equal(t, want.Spec.SelfTest[0].Output, out)
}

func TestBootsTheLastGoodImage(t *testing.T) {
	_, original := stockImage(t)
	a, am := numbered(t, 7)
	b, bm := numbered(t, 8)
	// with makes a drive that ran the stock image, a, and b.
	with := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "drive")
		session(t, Options{Path: path, Create: true, Size: 1 << 20}, func(_ *Drive, c nvme.Conn) {
			put(t, c, 1, a, am)
			put(t, c, 2, b, bm)
		})
		return path
	}
	edit := func(t *testing.T, path string, change func(map[string]any)) {
		text, err := os.ReadFile(statePath(path))
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(text, &m))
		change(m)
		text, err = json.Marshal(m)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(statePath(path), text, 0o644))
	}
	foreign := func(t *testing.T) []byte { f, _ := numbered(t, 99); return f }
	for _, tt := range []struct {
		name    string
		happens func(t *testing.T, path string)
		trust   func(*image.Trust) error
		want    *image.Image
		reason  string // of slot 2
	}{
		{name: "nothing happened", want: bm},
		{name: "a host had deactivated it", want: bm, happens: func(t *testing.T, path string) {
			session(t, Options{Path: path}, func(_ *Drive, c nvme.Conn) {
				off := cs.Activation(2, false)
				_, err := c.Admin(t.Context(), &off, nil)
				require.NoError(t, err)
				require.ErrorIs(t, load(t, c, 2, a, am.ID.PUID()), nvme.ProgramInUse, "nor can the last good image be lost")
				unload := cs.UnloadProgram(2)
				_, err = c.Admin(t.Context(), &unload, nil)
				require.ErrorIs(t, err, nvme.ProgramInUse)
			})
		}},
		{name: "its file was cut", want: am, reason: "damaged", happens: func(t *testing.T,
			path string) {
			require.NoError(t, os.Truncate(images.Path(path, 2), 100))
		}},
		{name: "its file is gone", want: am, reason: "empty", happens: func(t *testing.T,
			path string) {
			require.NoError(t, os.Remove(images.Path(path, 2)))
		}},
		{name: "its file is another image's", want: am, reason: "which ran", happens: func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(images.Path(path, 2), foreign(t), 0o644))
		}},
		{name: "both files are damaged", want: original, reason: "damaged", happens: func(t *testing.T, path string) {
			require.NoError(t, os.Truncate(images.Path(path, 1), 0))
			require.NoError(t, os.Truncate(images.Path(path, 2), 0))
		}},
		{name: "it was revoked", want: am, reason: "revoked", trust: func(t *image.Trust) error {
			t.Revoke(nil, []image.ID{bm.ID})
			return nil
		}},
		{name: "a load was cut off", want: bm, happens: func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(images.Path(path, 1)+keptfile.Partial, a[:len(a)/2], 0o644))
			require.NoError(t, os.WriteFile(statePath(path)+keptfile.Partial, []byte("{"), 0o644))
		}},
		{name: "the state is of version 1", want: bm, happens: func(t *testing.T, path string) {
			edit(t, path, func(m map[string]any) {
				m["version"] = 1
				delete(m, "active_image")
				delete(m, "previous")
				delete(m, "trust")
			})
		}},
		{name: "the state is of version 1 and nothing was active", want: original,
			happens: func(t *testing.T, path string) {
				edit(t, path, func(m map[string]any) {
					m["version"], m["active_slot"] = 1, -1
					delete(m, "active_image")
				})
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := with(t)
			if tt.happens != nil {
				tt.happens(t, path)
			}
			session(t, Options{Path: path, Trust: tt.trust}, func(d *Drive, c nvme.Conn) {
				activeIs(t, d, c, tt.want)
				assert.Contains(t, d.Images().Slots[2].Reason, tt.reason)
				assert.NoFileExists(t, images.Path(path, 1)+keptfile.Partial)
			})
			session(t, Options{Path: path}, func(d *Drive, c nvme.Conn) { activeIs(t, d, c, tt.want) }) // and again
		})
	}
}

func TestRollbackGoesToWhatRanBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	a, am := numbered(t, 7)
	b, bm := numbered(t, 8)
	session(t, Options{Path: path, Create: true, Size: 1 << 20}, func(d *Drive, c nvme.Conn) {
		_, ok := d.Images().Rollback()
		assert.False(t, ok, "nothing ran before the stock image")
		put(t, c, 1, a, am)
		to, ok := d.Images().Rollback()
		require.True(t, ok)
		assert.Equal(t, 0, to.Slot)
		put(t, c, 2, b, bm)
	})
	session(t, Options{Path: path}, func(d *Drive, c nvme.Conn) {
		r := logPageOf(t, c)
		to, ok := r.Rollback()
		require.True(t, ok)
		assert.Equal(t, am.ID, to.Image, "also after the drive was closed")
		assert.Equal(t, 1, r.Free(), "the next image goes where the active one is not")
		require.NoError(t, activate(t, c, uint16(to.Slot)))
		activeIs(t, d, c, am)
		to, _ = d.Images().Rollback()
		assert.Equal(t, bm.ID, to.Image)
		// An image that is loaded over the previous image takes its place; it has never run, so rollback does not go there.
		x, xm := numbered(t, 9)
		require.NoError(t, load(t, c, 2, x, xm.ID.PUID()))
		to, _ = d.Images().Rollback()
		assert.Equal(t, 0, to.Slot)
	})
}

func TestTrustIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32)).Public().(ed25519.PublicKey)
	want := image.Trust{Policy: image.PolicyRequire, Keys: []ed25519.PublicKey{key}}
	session(t, Options{Path: path, Create: true, Size: 1 << 20, Trust: trusting(want)}, func(*Drive, nvme.Conn) {})
	session(t, Options{Path: path}, func(d *Drive, c nvme.Conn) {
		assert.Equal(t, image.PolicyRequire, d.Images().Policy)
		b, m := numbered(t, 7)
		require.ErrorIs(t, load(t, c, 1, b, m.ID.PUID()), nvme.OperationDenied)
	})
	_, err := Open(Options{Path: path, Trust: func(t *image.Trust) error { t.Keys = nil; return nil }})
	require.ErrorContains(t, err, "would refuse every image")
	session(t, Options{Path: path}, func(d *Drive, _ nvme.Conn) {
		assert.Len(t, d.Images().Keys, 1,
			"what was refused is not kept")
	})
}

func TestImagesOfAPlainDrive(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20, Plain: true})
	assert.Nil(t, d.Images())
	b := make([]byte, 64)
	cmd := nvme.GetLog(nvme.LogImages, nvme.AllNamespaces, 0, 64)
	_, err := connect(t, d).Admin(t.Context(), &cmd, b)
	require.ErrorIs(t, err, nvme.InvalidLogPage)
}

// TestADiskThatFails: what cannot be kept does not become active, and the drive goes on as it was.
func TestADiskThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	a, am := numbered(t, 7)
	b, bm := numbered(t, 8)
	session(t, Options{Path: path, Create: true, Size: 1 << 20}, func(d *Drive, c nvme.Conn) {
		put(t, c, 1, a, am)
		// A folder in the place of the file to be written.
		require.NoError(t, os.Mkdir(images.Path(path, 2)+keptfile.Partial, 0o755))
		require.ErrorIs(t, load(t, c, 2, b, bm.ID.PUID()), nvme.InternalError)
		f := lastRefusal(t, c)
		assert.Equal(t, image.StepStore, f.Step)
		require.ErrorIs(t, f.Err(), image.ErrStore)
		assert.Zero(t, d.Images().Slots[2].Image)
		require.NoError(t, os.Remove(images.Path(path, 2)+keptfile.Partial))
		require.NoError(t, load(t, c, 2, b, bm.ID.PUID()))

		require.NoError(t, os.Mkdir(statePath(path)+keptfile.Partial, 0o755))
		require.ErrorIs(t, activate(t, c, 2), nvme.InternalError)
		f = lastRefusal(t, c)
		assert.Equal(t, image.StepCommit, f.Step)
		assert.Equal(t, bm.ID, f.Image)
		activeIs(t, d, c, am)
		assert.True(t, d.Images().Slots[1].Boot)
		require.NoError(t, os.Remove(statePath(path)+keptfile.Partial))
		require.NoError(t, activate(t, c, 2))
		activeIs(t, d, c, bm)

		require.NoError(t, os.Remove(images.Path(path, 1)))
		require.NoError(t, os.MkdirAll(images.Path(path, 1)+"/full", 0o755))
		unload := cs.UnloadProgram(1)
		_, err := c.Admin(t.Context(), &unload, nil)
		require.ErrorIs(t, err, nvme.InternalError)
		assert.Equal(t, am.ID, d.Images().Slots[1].Image)
	})
}

// TestChunksOfAHostThatGoes: a load that its host does not finish changes nothing, and the next host's succeeds.
func TestChunksOfAHostThatGoes(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20})
	b, m := numbered(t, 7)
	first, err := controller.Local(d.Subsystem(), controller.HostID{})
	require.NoError(t, err)
	cmd := cs.ImageDownload(cs.Chunk{Slot: 1, Size: uint32(len(b)), Len: 5000, PUID: m.ID.PUID()})
	_, err = first.Admin(t.Context(), &cmd, b[:5000])
	require.NoError(t, err)
	c := connect(t, d)
	require.ErrorIs(t, load(t, c, 1, b, m.ID.PUID()), nvme.InsufficientProgramSpace,
		"one host at a time loads into a slot")
	require.NoError(t, first.Close())
	put(t, c, 1, b, m)
	activeIs(t, d, c, m)
}

// TestNamedStockImagesRun: a drive takes each, passes its self-tests, and makes it the active one.
func TestNamedStockImagesRun(t *testing.T) {
	for _, name := range stock.Names() {
		b, err := stock.Named(name)
		require.NoError(t, err)
		m, err := image.Parse(b)
		require.NoError(t, err)
		c := connect(t, openDrive(t, Options{Size: 1 << 20}))
		put(t, c, 1, b, m)
		for _, v := range m.Spec.SelfTest {
			_, output, err := runVector(t, c, v)
			require.NoError(t, err, "%s: %s", name, v.Name)
			assert.Equal(t, v.Output, output[:len(v.Output)], "%s: %s", name, v.Name)
		}
	}
}
