package sdk

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
)

// behindKernel is a drive as a driver shows it: the association goes on when the Conn is closed, and a command carries
// less than the drive would take.
type behindKernel struct {
	nvme.Conn
	most int
	old  bool // before NVMe 1.3
}

func (b behindKernel) Close() error     { return nil }
func (b behindKernel) Lasts() bool      { return true }
func (b behindKernel) MaxTransfer() int { return b.most }

func (b behindKernel) Admin(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	if b.old && cmd.Opcode() == nvme.AdminIdentify && uint8(cmd.DW(10)) == nvme.CNSNamespaceDescriptors {
		return nvme.Completion{}, nvme.InvalidField.Final()
	}
	return b.Conn.Admin(ctx, cmd, data)
}

// driveInMemory returns an association with a new drive in memory.
func driveInMemory(t *testing.T, o csd.Options) nvme.Conn {
	t.Helper()
	d, err := csd.Open(o)
	require.NoError(t, err)
	host := controller.HostID{NQN: "nqn.2014-08.org.nvmexpress:uuid:host", ID: uuid.New()}
	conn, err := controller.Local(d.Subsystem(), host)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		require.NoError(t, d.Close())
	})
	return conn
}

func TestCloseGivesBackWhatALastingAssociationHolds(t *testing.T) {
	const slm = 4 << 20
	for _, set := range []Commands{Vendor, Standard} {
		conn := behindKernel{Conn: driveInMemory(t, csd.Options{Size: 1 << 20, SLMBytes: slm}), most: 1 << 20}
		for range 3 {
			dev, err := NewDevice(t.Context(), "nvme:test", conn, set, DeviceOptions{})
			require.NoError(t, err)
			kept, err := dev.ReserveSLM(t.Context(), slm/2)
			require.NoError(t, err, set)
			back, err := dev.ReserveSLM(t.Context(), slm/2)
			require.NoError(t, err, set)
			require.NoError(t, back.Release(t.Context()))
			require.NoError(t, kept.Store(t.Context(), 0, []byte("four")))
			require.NoError(t, dev.Close())
		}
	}
}

func TestTransfersAreCutToWhatTheWayCarries(t *testing.T) {
	conn := behindKernel{Conn: driveInMemory(t, csd.Options{Plain: true, Size: 1 << 20}), most: 127 * 4096}
	var mu sync.Mutex
	var longest uint32
	trace := &Trace{Command: func(cmd *nvme.Command, _ bool, _ time.Duration, _ error) {
		mu.Lock()
		defer mu.Unlock()
		longest = max(longest, cmd.DataLength())
	}}
	dev, err := NewDevice(t.Context(), "nvme:test", conn, Vendor, DeviceOptions{Trace: trace})
	require.NoError(t, err)
	defer dev.Close()
	assert.Equal(t, 127*4096, dev.MaxTransfer())
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(i >> 9)
	}
	_, err = dev.WriteAt(want, 0)
	require.NoError(t, err)
	got := make([]byte, len(want))
	_, err = dev.ReadAt(got, 0)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, uint32(127*4096), longest)
}

func TestDrivesBeforeNamespaceDescriptors(t *testing.T) {
	conn := behindKernel{Conn: driveInMemory(t, csd.Options{Plain: true, Size: 1 << 20}), most: 1 << 20, old: true}
	dev, err := NewDevice(t.Context(), "nvme:test", conn, Vendor, DeviceOptions{})
	require.NoError(t, err)
	defer dev.Close()
	assert.Equal(t, int64(1<<20), dev.Size())
	assert.False(t, dev.HasCompute())
	assert.Equal(t, uuid.Nil.String(), dev.Info().Namespaces[0].UUID)
}
