package kerneltest

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
)

// decodeOutput decodes what a tool of the guest printed as JSON.
func decodeOutput[T any](t *testing.T, r *guest.Result, name string) T {
	t.Helper()
	var v T
	require.Contains(t, r.Files, name+".json")
	require.NoError(t, json.Unmarshal(r.Files[name+".json"], &v), "%s", r.Files[name+".json"])
	return v
}

// judge compares the output of the guest's tools about the drive with the drive's properties.
func judge(t *testing.T, drive *target, r *guest.Result) {
	t.Run("told/list", func(t *testing.T) {
		list := decodeOutput[struct {
			Devices []struct {
				NameSpace                           int
				Firmware, ModelNumber, SerialNumber string
				PhysicalSize                        int64
				SectorSize                          uint32
			}
		}](t, r, "list")
		require.Len(t, list.Devices, 1, "of the three namespaces, nvme list shows the one with blocks")
		d := list.Devices[0]
		assert.Equal(t, "Millrace CSD", d.ModelNumber)
		assert.Equal(t, "7.7", d.Firmware)
		assert.Equal(t, drive.config.Size, d.PhysicalSize)
		assert.Equal(t, drive.config.BlockSize, d.SectorSize)
	})
	t.Run("told/id-ctrl", func(t *testing.T) {
		id := decodeOutput[struct {
			SubNQN                                string
			CntrlType, MDTS, CNTLID, SQES, CQES   int
			IOCCSZ, IORCSZ, ICDOFF, KAS, NN, SGLs int
		}](t, r, "id-ctrl")
		assert.Equal(t, drive.nqn, id.SubNQN)
		assert.Equal(t, 1, id.CntrlType)
		assert.Equal(t, controller.MDTS, 4096<<id.MDTS)
		assert.NotZero(t, id.CNTLID)
		assert.NotZero(t, id.KAS)
		assert.GreaterOrEqual(t, id.NN, 3)
		assert.Equal(t, []int{0x66, 0x44, 1, 0}, []int{id.SQES, id.CQES, id.IORCSZ, id.ICDOFF})
		assert.GreaterOrEqual(t, id.IOCCSZ, 4)
		assert.NotZero(t, id.SGLs&3)
	})
	t.Run("told/id-ns", func(t *testing.T) {
		ns := decodeOutput[struct {
			NSZE  uint64
			FLBAS int
			LBAFs []struct{ DS int }
		}](t, r, "id-ns")
		assert.Equal(t, uint64(drive.config.Size)/uint64(drive.config.BlockSize), ns.NSZE)
		assert.Equal(t, drive.config.BlockSize, uint32(1)<<ns.LBAFs[ns.FLBAS&0xf].DS)
	})
	t.Run("told/ns-descs", func(t *testing.T) {
		descs := decodeOutput[struct {
			Descs []struct{ Type, UUID, CSI string } `json:"ns-descs"`
		}](t, r, "ns-descs")
		have := map[string]bool{}
		for _, d := range descs.Descs {
			have[d.Type] = true
		}
		assert.True(t, have["uuid"] && have["csi"], "%+v", descs)
	})
	t.Run("told/list-ns", func(t *testing.T) {
		list := decodeOutput[struct {
			NSIDs []struct{ NSID int } `json:"nsid_list"`
		}](t, r, "list-ns")
		assert.NotEmpty(t, list.NSIDs)
		assert.Equal(t, 1, list.NSIDs[0].NSID)
	})
	t.Run("told/smart-log", func(t *testing.T) {
		log := decodeOutput[struct {
			Reads int `json:"host_read_commands,string"`
		}](t, r, "smart-log")
		assert.Positive(t, log.Reads, "the kernel read the partition table")
	})
	t.Run("told/supported-logs", func(t *testing.T) {
		page := r.Files["supported-logs.bin"]
		require.Len(t, page, 1024)
		for _, lid := range []int{0, 1, 2, 3, 4, 5, 0xc0} {
			assert.NotZero(t, binary.LittleEndian.Uint32(page[4*lid:])&1, "log %#x", lid)
		}
	})
	t.Run("told/effects-log", func(t *testing.T) {
		page := r.Files["effects-log.bin"]
		require.Len(t, page, 4096)
		const supported, serialises = 1, 7 << 16
		for opcode := range 512 {
			effects := binary.LittleEndian.Uint32(page[4*opcode:])
			assert.Zero(t, effects&serialises, "a host would stop all queues for opcode %#x", opcode)
		}
		for _, opcode := range []int{0x00, 0x01, 0x02, 0x81, 0x82, 0x85} {
			assert.NotZero(t, binary.LittleEndian.Uint32(page[1024+4*opcode:])&supported, "I/O opcode %#x", opcode)
		}
	})
}

// judgeCard compares the output of the guest's tools about the drive without flash with what the drive is.
func judgeCard(t *testing.T, drive *target, r *guest.Result) {
	t.Run("told/card-list", func(t *testing.T) {
		list := decodeOutput[struct {
			Devices []struct{ PhysicalSize int64 }
		}](t, r, "card-list")
		for _, d := range list.Devices {
			assert.Zero(t, d.PhysicalSize, "a drive without flash has no blocks to list")
		}
	})
	t.Run("told/card-list-subsys", func(t *testing.T) {
		require.Contains(t, r.Files, "card-list-subsys.json")
		assert.Contains(t, string(r.Files["card-list-subsys.json"]), drive.card)
	})
	t.Run("told/card-id-ctrl", func(t *testing.T) {
		id := decodeOutput[struct {
			SubNQN         string
			CntrlType, KAS int
			NN             int
			TNVMCap        json.Number
		}](t, r, "card-id-ctrl")
		assert.Equal(t, drive.card, id.SubNQN)
		assert.Equal(t, 1, id.CntrlType)
		assert.NotZero(t, id.KAS)
		assert.GreaterOrEqual(t, id.NN, 3)
		assert.Equal(t, json.Number("0"), id.TNVMCap)
	})
	t.Run("told/card-list-ns", func(t *testing.T) {
		list := decodeOutput[struct {
			NSIDs []struct{ NSID int } `json:"nsid_list"`
		}](t, r, "card-list-ns")
		var ids []int
		for _, n := range list.NSIDs {
			ids = append(ids, n.NSID)
		}
		assert.Equal(t, []int{2, 3}, ids, "there is no namespace 1")
	})
	t.Run("told/card-smart-log", func(t *testing.T) {
		log := decodeOutput[struct {
			Warning json.Number `json:"critical_warning"`
			Reads   int         `json:"host_read_commands,string"`
		}](t, r, "card-smart-log")
		assert.Equal(t, json.Number("0"), log.Warning)
		assert.Zero(t, log.Reads)
	})
}
