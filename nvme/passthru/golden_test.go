package passthru

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// issued is every command that the host side issues, with odd values in every field.
func issued() []struct {
	name  string
	admin bool
	cmd   nvme.Command
	data  int
} {
	type row = struct {
		name  string
		admin bool
		cmd   nvme.Command
		data  int
	}
	chunk := cs.Chunk{Slot: 2, Size: 0x12345, Offset: 0x2000, Len: 0x1000, PUID: 0x1122334455667788}
	ranges := []cs.Range{{Addr: 0x1_0000_1000, Len: 0x2000}, {Addr: 0x40, Len: 0x80}}
	deallocate, list := nvme.Deallocate(1, []nvme.DatasetRange{{Blocks: 8, SLBA: 0x1_0000_0007}, {Blocks: 1, SLBA: 9}})
	create := must(cs.CreateRangeSet(ranges))
	inline := must(cs.Execute(1, ranges, make([]byte, 24)))
	set := cs.ExecuteSet(1, 5, make([]byte, 24))
	copies := must(cs.MemoryCopies([]cs.Copy{{NSID: 1, SLBA: 0x1_0000_0003, NLB: 70000, Dest: 0x8000}}, 512))[0]
	return []row{
		{"identify controller", true, nvme.Identify(nvme.CNSController, 0, 0), 4096},
		{"identify active namespaces", true, nvme.Identify(nvme.CNSActiveNamespaces, 0, 0), 4096},
		{"identify namespace", true, nvme.Identify(nvme.CNSNamespace, 1, 0), 4096},
		{"identify namespace descriptors", true, nvme.Identify(nvme.CNSNamespaceDescriptors, 1, 0), 4096},
		{"identify memory namespace", true, nvme.Identify(nvme.CNSSetNamespace, 2, nvme.CSISLM), 4096},
		{"get log errors", true, nvme.GetLog(nvme.LogErrors, nvme.AllNamespaces, 0, 4096), 4096},
		{"get log SMART", true, nvme.GetLog(nvme.LogSMART, nvme.AllNamespaces, 0, 512), 512},
		{"get log firmware", true, nvme.GetLog(nvme.LogFirmware, nvme.AllNamespaces, 0, 512), 512},
		{"get log programs", true, nvme.GetLog(nvme.LogPrograms, 3, 0, 64+64*32), 64 + 64*32},
		{"get log vendor at an offset", true, nvme.GetLog(nvme.LogVendor, nvme.AllNamespaces, 0x1_0000_0004, 0x50000),
			0x50000},
		{"set features", true, nvme.SetFeature(nvme.FeatureWriteCache, 1), 0},
		{"get features", true, nvme.GetFeature(nvme.FeatureWriteCache), 0},
		{"keep alive", true, nvme.KeepAlive(), 0},
		{"slm reserve", true, cs.SLMReserve(cs.AnyAddress, 0x1_0000_1000), 0},
		{"slm release", true, cs.SLMRelease(0x1000, 0x2000), 0},
		{"image download", true, cs.ImageDownload(chunk), 0x1000},
		{"image activate", true, cs.ImageActivate(2), 0},
		{"load program", true, cs.LoadProgram(chunk), 0x1000},
		{"activation", true, cs.Activation(2, true), 0},
		{"create range set", true, create.Command, len(create.Data)},
		{"delete range set", true, cs.DeleteRangeSet(5), 0},
		{"flush", false, nvme.Flush(1), 0},
		{"read", false, nvme.Read(1, 0x1_0000_0007, 3, 512), 1536},
		{"write", false, nvme.Write(1, 0x1_0000_0007, 1, 4096, false), 4096},
		{"write, forced", false, nvme.Write(1, 7, 256, 4096, true), 1 << 20},
		{"compare", false, nvme.Compare(1, 7, 2, 512), 1024},
		{"write zeroes", false, nvme.WriteZeroes(1, 7, 65536, true), 0},
		{"deallocate", false, deallocate, len(list)},
		{"preprocess", false, cs.PreprocessCommand(0x123), 0x123},
		{"fetch", false, cs.Fetch(0x1_0000_0002, 101), 101},
		{"store", false, cs.Store(0x1_0000_0002, 101), 101},
		{"memory read", false, cs.MemoryRead(0x1_0000_0004, 8), 8},
		{"memory write", false, cs.MemoryWrite(4, 8), 8},
		{"memory fill", false, cs.MemoryFill(4, 8, 0xdeadbeef), 0},
		{"memory copy", false, copies.Command, len(copies.Data)},
		{"execute inline", false, inline.Command, len(inline.Data)},
		{"execute set", false, set.Command, len(set.Data)},
	}
}

// TestGoldenSubmissions holds the exact bytes of struct nvme_passthru_cmd64 for every command, with the address of the
// data left out. MILLRACE_UPDATE=1 writes them.
func TestGoldenSubmissions(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the bytes are those of a little-endian machine")
	}
	for _, noRing := range []bool{false, true} {
		f := &fake{ids: map[string]uint32{"ng3n5": 1, "ng3n6": 2, "ng3n7": 3}}
		c, _ := connect(t, f, Options{NoRing: noRing, Timeout: 31 * time.Second})
		var got strings.Builder
		for _, x := range issued() {
			f.sent = nil
			run := c.IO
			if x.admin {
				run = c.Admin
			}
			cmd := x.cmd
			_, err := run(t.Context(), &cmd, make([]byte, x.data))
			require.NoError(t, err, x.name)
			require.Equal(t, x.cmd, cmd, "the caller's command is not written to")
			require.Len(t, f.sent, 1, x.name)
			fmt.Fprintf(&got, "%-31s %-6s %s\n", x.name, f.sent[0].path, hex.EncodeToString(f.sent[0].wire[:]))
		}
		goldenfile.Text(t, "testdata/submissions.txt", got.String()) // both ways send the same
	}
}

// TestLayout writes one structure out field by field, as nvme_ioctl.h has it.
func TestLayout(t *testing.T) {
	cmd := nvme.New(0x85, 0x01020304)
	cmd.SetDW(2, 0x22222222)
	cmd.SetDW(3, 0x33333333)
	for i := range 6 {
		cmd.SetDW(10+i, uint32(0x10+i)*0x01010101)
	}
	cmd.SetData(0x44444444)
	cmd.SetCID(0xffff)
	w := encodeCommand(&cmd, 0x1000, 1500*time.Microsecond)
	w.setAddress(0xaabbccddeeff0011)
	w.setResult(0x1122334455667788)
	var want bytes.Buffer
	for _, v := range []any{
		// opcode flags rsvd1 nsid cdw2 cdw3
		uint8(0x85), uint8(0), uint16(0), uint32(0x01020304), uint32(0x22222222), uint32(0x33333333),
		uint64(0), uint64(0xaabbccddeeff0011), uint32(0), uint32(0x1000), // metadata addr metadata_len data_len
		uint32(0x10101010), uint32(0x11111111), uint32(0x12121212), uint32(0x13131313), uint32(0x14141414),
		uint32(0x15151515),
		uint32(2), uint32(0), uint64(0x1122334455667788), // timeout_ms rsvd2 result
	} {
		require.NoError(t, binary.Write(&want, binary.NativeEndian, v))
	}
	require.Equal(t, wireSize, want.Len())
	assert.Equal(t, want.Bytes(), w[:])
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]uint32{
		0: 0, -time.Second: 0, time.Nanosecond: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Minute: 60000,
		1<<63 - 1: 1<<31 - 1,
	} {
		assert.Equal(t, want, milliseconds(d), d)
	}
}
