package tcp

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// replay sends the capsules of a file in testdata, a line each, and gives every completion, with data, to seen.
//
// A line is "CID bytes-of-the-command [data]": the 64 bytes in hexadecimal with the zeros at the end left out; data is
// "connect" for the data of Connect. A comment says what it is.
func replay(t *testing.T, r *rawHost, name string, cntlid uint16, seen func(what string, cmd *nvme.Command, cpl nvme.Completion, data []byte)) {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer f.Close()
	events := map[uint16]bool{}
	for in := bufio.NewScanner(f); in.Scan(); {
		line, what, _ := strings.Cut(in.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		raw, err := hex.DecodeString(fields[0])
		require.NoError(t, err, what)
		var cmd nvme.Command
		copy(cmd[:], raw)
		var data []byte
		if len(fields) > 1 {
			require.Equal(t, "connect", fields[1])
			subsystem := testNQN
			if strings.Contains(name, "discover") {
				subsystem = fabrics.DiscoveryNQN
			}
			data = (&fabrics.ConnectData{ControllerID: cntlid, SubsystemNQN: subsystem, HostNQN: hostNQN, HostID: [16]byte{1}}).Marshal()
		}
		r.send(r.bytes(pdu.TypeCapsuleCmd, 0, data, func(b []byte) { pdu.PutCommand(b, &cmd) }))
		if cmd.Opcode() == nvme.AdminAsyncEventRequest && cmd.NSID() == 0 {
			events[cmd.CID()] = true
			continue // answered when there is an event, or the controller is shut down
		}
		cpl, got := r.completionAmong(cmd.CID(), events)
		require.True(t, cpl.Status().OK(), "%s: %s: %s", name, what, cpl.Status())
		seen(strings.TrimSpace(what), &cmd, cpl, got)
	}
	require.NotEmpty(t, events, "no event was asked for")
}

// What Linux 6.1.192 and nvme-cli 2.3 send to connect is accepted command by command, with what they look at in the answers.
func TestLinuxConnects(t *testing.T) {
	s := serve(t, TargetOptions{})
	r := s.dialRaw()
	resp := r.initialise(pdu.ICReq{})
	assert.Zero(t, resp.Alignment, "Linux refuses any other")
	var cntlid uint16
	replay(t, r, "linux-6.1-connect.txt", fabrics.AnyController, func(what string, cmd *nvme.Command, cpl nvme.Completion, data []byte) {
		switch what {
		case "Connect":
			cntlid = uint16(cpl.DW0())
			assert.Zero(t, cpl.DW0()>>16, "no authentication")
		case "Property Get CAP":
			c := cpl.Result()
			assert.GreaterOrEqual(t, c&0xffff, uint64(127), "MQES")
			assert.Zero(t, c>>48&15, "MPSMIN")
			assert.Equal(t, uint64(1<<37|1<<43), c&(1<<37|1<<43), "CSS")
			assert.Zero(t, c>>59&3, "CRMS")
		case "Property Get CSTS":
			assert.Equal(t, uint32(1), cpl.DW0())
		case "Property Get VS":
			assert.Equal(t, uint32(0x20000), cpl.DW0())
		case "Identify Controller":
			var id nvme.IdentifyController
			require.NoError(t, id.Unmarshal(data))
			assert.Equal(t, cntlid, id.ControllerID)
			assert.NotZero(t, id.KeepAliveGranularity)
			assert.NotZero(t, id.SGLs&3)
			assert.Zero(t, id.CapsuleOffset)
			assert.GreaterOrEqual(t, id.CommandCapsule, uint32(4))
			assert.Equal(t, uint32(1), id.ResponseCapsule)
			assert.GreaterOrEqual(t, id.MaxCommands, uint16(128))
			assert.Equal(t, []uint8{0x66, 0x44}, []uint8{id.SQES, id.CQES})
			assert.Equal(t, testNQN, id.SubsystemNQN)
			assert.Equal(t, uint8(1), id.ControllerType)
			assert.NotZero(t, id.MultiPath&2, "CMIC")
			assert.NotZero(t, id.MDTS)
		case "Effects log":
			var l nvme.EffectsLog
			require.NoError(t, l.Unmarshal(data))
			for op, e := range l.IO {
				assert.Zero(t, e&^(nvme.EffectSupported|nvme.EffectBlocksChange), "opcode %02xh", op)
			}
		case "Set Features queues":
			assert.GreaterOrEqual(t, cpl.DW0()&0xffff, uint32(1))
		case "Namespace list":
			assert.Equal(t, uint32(1), binary.LittleEndian.Uint32(data))
		case "Namespace descriptors":
			assert.Equal(t, []byte{4, 1, 0, 0}, data[len(data)-4096+20:][:4], "CSI behind the UUID")
		case "Identify Namespace":
			assert.Equal(t, uint64(16<<20/512), binary.LittleEndian.Uint64(data))
		}
	})
	io := s.dialRaw()
	io.initialise(pdu.ICReq{})
	cpl := io.connect(fabrics.Connect{Queue: 1, Size: 127}, fabrics.ConnectData{ControllerID: cntlid, HostID: [16]byte{1}})
	require.True(t, cpl.Status().OK())
	cpl, data := io.do(nvme.Read(1, 0, 8, 512), nil)
	require.True(t, cpl.Status().OK())
	require.Len(t, data, 4096)
}

// SPDK's identify sends four event requests, a shutdown at the end, and asks for properties that no kernel reads.
func TestSPDKIdentifies(t *testing.T) {
	s := serve(t, TargetOptions{})
	r := s.dialRaw()
	r.initialise(pdu.ICReq{})
	seen := 0
	replay(t, r, "spdk-identify.txt", fabrics.AnyController, func(string, *nvme.Command, nvme.Completion, []byte) { seen++ })
	require.Greater(t, seen, 15)
}
