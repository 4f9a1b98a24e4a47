package sdk

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/image/stock/stocktest"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/hosttest"
)

// anImage is the stock image changed.
func anImage(t *testing.T, change func(*image.Spec)) ([]byte, *image.Image) {
	t.Helper()
	m := stocktest.Changed(t, change)
	return m.Bytes(), m
}

// eachWay opens a new drive for every command set and way to it, with a second host that may hold memory of it.
func eachWay(t *testing.T, o csd.Options, f func(t *testing.T, d, other *Device)) {
	t.Helper()
	o.Size, o.SLMBytes = 1<<20, 1<<20
	for _, set := range []Commands{Vendor, Standard} {
		for _, way := range []string{"in process", "tcp", "kernel"} {
			t.Run(string(set)+" "+way, func(t *testing.T) {
				d, err := csd.Open(o)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, d.Close()) })
				var conns []nvme.Conn
				for _, name := range []string{"one", "two"} {
					var c nvme.Conn
					host := "nqn.2024-01.io.millrace:" + name
					if way == "tcp" {
						c = overTCP(t, d, host)
					} else {
						c, err = controller.Local(d.Subsystem(), controller.HostID{NQN: host, ID: uuid.New()})
						require.NoError(t, err)
					}
					ends := c.Close
					t.Cleanup(func() { assert.NoError(t, ends()) })
					if way == "kernel" {
						c = behindKernel{Conn: c, most: 4096}
					}
					conns = append(conns, c)
				}
				open := func(c nvme.Conn) *Device {
					dev, err := NewDevice(t.Context(), way, c, set, DeviceOptions{})
					require.NoError(t, err)
					t.Cleanup(func() { assert.NoError(t, dev.Close()) })
					return dev
				}
				f(t, open(conns[0]), open(conns[1]))
			})
		}
	}
}

func overTCP(t *testing.T, d *csd.Drive, host string) nvme.Conn {
	c, err := tcp.Dial(t.Context(), tcp.DialOptions{
		Address:   hosttest.Serve(t, d.Subsystem(), tcp.TargetOptions{}),
		Subsystem: d.Subsystem().NQN(), HostNQN: host, HostID: uuid.New(),
	})
	require.NoError(t, err)
	return c
}

func TestRefusedImagesTellWhyOverEveryWay(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	_, banned := anImage(t, func(s *image.Spec) { s.Partition.Slots = 9 })
	trust := func(t *image.Trust) error {
		t.Policy, t.Keys = image.PolicyRequire, []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
		t.Revoke(nil, []image.ID{banned.ID})
		return nil
	}
	sign := func(t *testing.T, m *image.Image) []byte {
		b, err := m.Sign(key)
		require.NoError(t, err)
		return b
	}
	foreign := uuid.MustParse("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d")
	eachWay(t, csd.Options{Trust: trust}, func(t *testing.T, d, other *Device) {
		refused := func(err error, step image.Step, status nvme.Status, kind error, m *image.Image) {
			t.Helper()
			var e *image.LoadError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, step, e.Step)
			require.ErrorIs(t, err, status)
			require.ErrorIs(t, err, kind)
			assert.Equal(t, m.ID, e.Image)
			assert.Equal(t, m.Interface(), e.Want)
			assert.Equal(t, stock.Interface(), e.Have)
			assert.Contains(t, err.Error(), m.Interface().String())
			assert.Contains(t, err.Error(), stock.Interface().String())
			assert.Contains(t, err.Error(), d.String())
		}
		plain, m := anImage(t, func(s *image.Spec) { s.Partition.Slots = 7 })
		refused(d.LoadImage(t.Context(), 1, plain), image.StepSignature, nvme.OperationDenied, image.ErrUnsigned, m)
		refused(d.LoadImage(t.Context(), 1, sign(t, banned)),
			image.StepRevocation, nvme.OperationDenied, image.ErrRevoked, banned)
		_, om := anImage(t, func(s *image.Spec) { s.Interface = foreign })
		refused(d.LoadImage(t.Context(), 1, sign(t, om)),
			image.StepInterface, nvme.InvalidProgramData, image.ErrInterface, om)
		_, nm := anImage(t, func(s *image.Spec) { s.Units[0].Version = 9 })
		require.NoError(t, d.LoadImage(t.Context(), 1, sign(t, nm)))
		refused(d.TestImage(t.Context(), 1), image.StepBackend, nvme.InvalidProgramData, image.ErrBackend, nm)
		refused(d.ActivateImage(t.Context(), 1), image.StepBackend, nvme.InvalidProgramData, image.ErrBackend, nm)

		require.NoError(t, d.LoadImage(t.Context(), 2, sign(t, m)))
		require.NoError(t, d.TestImage(t.Context(), 2))
		held, err := other.ReserveSLM(t.Context(), 4096)
		require.NoError(t, err)
		err = d.ActivateImage(t.Context(), 2)
		var busy *image.BusyError
		require.ErrorAs(t, err, &busy)
		assert.Equal(t, []string{"nqn.2024-01.io.millrace:two"}, busy.Holders)
		require.ErrorIs(t, err, nvme.ProgramInUse)
		require.ErrorIs(t, err, image.ErrInUse)
		require.NoError(t, held.Release(t.Context()))
		require.NoError(t, d.ActivateImage(t.Context(), 2))

		r, err := d.ImageLog(t.Context())
		require.NoError(t, err)
		at, ok := r.Active()
		require.True(t, ok)
		assert.Equal(t, m.ID, at.Image)
		to, err := d.RollbackImage(t.Context())
		require.NoError(t, err)
		assert.Equal(t, image.RoleStock, to.Role)
		slot, loaded, err := d.PlaceImage(t.Context(), sign(t, m))
		require.NoError(t, err)
		assert.False(t, loaded, "it is there already")
		assert.Equal(t, 2, slot)

		require.ErrorIs(t, d.TestImage(t.Context(), 3), nvme.NoProgram)
		require.ErrorIs(t, d.TestImage(t.Context(), 1<<20), nvme.InvalidProgramIndex)
		var e *image.LoadError
		require.ErrorAs(t, d.LoadImage(t.Context(), 1, plain[:50]), &e)
		assert.Equal(t, image.StepFormat, e.Step)
		_, _, err = d.PlaceImage(t.Context(), plain[:50])
		require.ErrorIs(t, err, image.ErrCorrupt)
	})
}

func TestPlaceAndRollBack(t *testing.T) {
	eachWay(t, csd.Options{}, func(t *testing.T, d, _ *Device) {
		_, err := d.RollbackImage(t.Context())
		require.ErrorIs(t, err, ErrNoRollback)
		var ran []*image.Image
		for n := range uint16(3) {
			b, m := anImage(t, func(s *image.Spec) { s.Partition.Slots = 7 + n })
			slot, loaded, err := d.PlaceImage(t.Context(), b)
			require.NoError(t, err)
			assert.True(t, loaded)
			assert.Equal(t, []int{1, 2, 1}[n], slot)
			require.NoError(t, d.ActivateImage(t.Context(), slot))
			ran = append(ran, m)
		}
		to, err := d.RollbackImage(t.Context())
		require.NoError(t, err)
		assert.Equal(t, ran[1].ID, to.Image)
		to, err = d.RollbackImage(t.Context())
		require.NoError(t, err)
		assert.Equal(t, ran[2].ID, to.Image, "and back")
		trial, m := anImage(t, func(s *image.Spec) { s.Partition.Slots = 77 })
		require.NoError(t, d.LoadImage(t.Context(), 3, trial))
		slot, loaded, err := d.PlaceImage(t.Context(), trial)
		require.NoError(t, err)
		assert.True(t, loaded, "a rollout does not run from the slot for trying images")
		assert.Equal(t, 2, slot)
		r, err := d.ImageLog(t.Context())
		require.NoError(t, err)
		assert.Equal(t, m.ID, r.Slots[3].Image)
	})
}

// failing refuses an admin command.
type failing struct {
	nvme.Conn
	refuse func(*nvme.Command) nvme.Status
}

func (f failing) Admin(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	if st := f.refuse(cmd); !st.OK() {
		return nvme.Completion{}, st
	}
	return f.Conn.Admin(ctx, cmd, data)
}

// TestTheStandardSetPutsTheOldImageBack: its two steps leave a drive without an image only as long as they take.
func TestTheStandardSetPutsTheOldImageBack(t *testing.T) {
	activations := 0
	conn := failing{driveInMemory(t, csd.Options{Size: 1 << 20, SLMBytes: 1 << 20}), func(cmd *nvme.Command) nvme.Status {
		if cmd.Opcode() == nvme.AdminProgramActivation {
			if activations++; activations == 2 {
				return nvme.InternalError
			}
		}
		return nvme.Success
	}}
	d, err := NewDevice(t.Context(), "drive", conn, Standard, DeviceOptions{})
	require.NoError(t, err)
	b, _ := anImage(t, func(s *image.Spec) { s.Partition.Slots = 7 })
	require.NoError(t, d.LoadImage(t.Context(), 1, b))
	require.ErrorIs(t, d.ActivateImage(t.Context(), 1), nvme.InternalError)
	assert.Equal(t, 3, activations)
	r, err := d.ImageLog(t.Context())
	require.NoError(t, err)
	at, ok := r.Active()
	require.True(t, ok)
	assert.Zero(t, at.Slot)
}

// TestADriveThatTellsNothing: its statuses come out as they are.
func TestADriveThatTellsNothing(t *testing.T) {
	conn := failing{driveInMemory(t, csd.Options{Size: 1 << 20, SLMBytes: 1 << 20}), func(cmd *nvme.Command) nvme.Status {
		if cmd.Opcode() == nvme.AdminGetLogPage && uint8(cmd.DW(10)) == nvme.LogImages {
			return nvme.InvalidLogPage
		}
		return nvme.Success
	}}
	d, err := NewDevice(t.Context(), "drive", conn, Vendor, DeviceOptions{})
	require.NoError(t, err)
	_, err = d.ImageLog(t.Context())
	require.ErrorIs(t, err, ErrNoImageLog)
	b, _ := anImage(t, func(s *image.Spec) { s.Interface[0]++ })
	err = d.LoadImage(t.Context(), 1, b)
	require.ErrorIs(t, err, nvme.InvalidProgramData)
	var e *image.LoadError
	assert.NotErrorAs(t, err, &e)
	_, _, err = d.PlaceImage(t.Context(), b)
	require.ErrorIs(t, err, ErrNoImageLog)
	_, err = d.RollbackImage(t.Context())
	require.ErrorIs(t, err, ErrNoImageLog)

	plain := openDevice(t, "mem:?size=1MiB", DeviceOptions{Plain: true})
	_, err = plain.ImageLog(t.Context())
	require.ErrorIs(t, err, ErrNoCompute)
}

// TestLongReports: a drive with long lists of what is revoked, read in many pieces.
func TestLongReports(t *testing.T) {
	want := make([]image.ID, image.MaxRevoked)
	for i := range want {
		want[i] = image.ID{byte(i), byte(i >> 8), 1}
	}
	revoke := func(t *image.Trust) error { t.Revoke(nil, want); return nil }
	eachWay(t, csd.Options{Trust: revoke}, func(t *testing.T, d, _ *Device) {
		r, err := d.ImageLog(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, r.RevokedImages)
	})
}
