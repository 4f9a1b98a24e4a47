package tcp

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/controller/programs"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/tracetest"
)

func goldenTraces(t testing.TB) map[string][]tracetest.PDU {
	t.Helper()
	all, err := tracetest.Golden()
	require.NoError(t, err)
	return all
}

// entryOf is the command that a capsule of a trace carries.
func entryOf(p tracetest.PDU) nvme.Command {
	return nvme.Command(p.Bytes[pdu.CommonSize:pdu.CapsuleCmdSize])
}

// fitted is a PDU of a trace with what a target chose put in: the names under which the test serves, the controller's
// identifier and a request's tag, and its digests made again.
func fitted(p tracetest.PDU, cntlid, tag uint16) []byte {
	b := append([]byte(nil), p.Bytes...)
	end := len(b)
	if b[1]&pdu.FlagDataDigest != 0 {
		end -= pdu.DigestSize
	}
	switch pdu.Type(b[0]) {
	case pdu.TypeCapsuleCmd:
		cmd := entryOf(p)
		if cmd.Opcode() != fabrics.Opcode || fabrics.Type(&cmd) != fabrics.TypeConnect {
			return b
		}
		var d fabrics.ConnectData
		if d.Unmarshal(b[p.Offset():end]) != nil {
			return b
		}
		if d.SubsystemNQN != fabrics.DiscoveryNQN {
			d.SubsystemNQN = testNQN
		}
		if fabrics.ParseConnect(&cmd).Queue != 0 {
			d.ControllerID = cntlid
		}
		copy(b[p.Offset():], d.Marshal())
	case pdu.TypeH2CData:
		binary.LittleEndian.PutUint16(b[10:], tag)
	}
	if b[1]&pdu.FlagHeaderDigest != 0 {
		pdu.PutDigest(b[b[2]:], pdu.Digest(b[:b[2]]))
	}
	if b[1]&pdu.FlagDataDigest != 0 {
		pdu.PutDigest(b[end:], pdu.Digest(b[p.Offset():end]))
	}
	return b
}

// player sends a trace again, each PDU when the one before it is answered.
type player struct {
	s      *served
	conns  map[int]*rawHost
	events map[uint16]bool // commands of the admin queue that wait for an event
	tags   map[[2]int]uint16
	cntlid uint16
	seen   func(conn int, cmd *nvme.Command, cpl nvme.Completion, data []byte)
}

func (x *player) play(pdus []tracetest.PDU) {
	t := x.s.t
	for i, p := range pdus {
		r := x.conns[p.Conn]
		if r == nil {
			require.Equal(t, pdu.TypeICReq, pdu.Type(p.Bytes[0]))
			req, err := pdu.ParseICReq((*[pdu.ICSize]byte)(p.Bytes))
			require.NoError(t, err)
			r = x.s.dialRaw()
			x.conns[p.Conn] = r
			assert.Zero(t, r.initialise(req).Alignment, "Linux refuses any other")
			continue
		}
		cid := binary.LittleEndian.Uint16(p.Bytes[pdu.CommonSize:])
		key := [2]int{p.Conn, int(cid)}
		switch pdu.Type(p.Bytes[0]) {
		case pdu.TypeCapsuleCmd:
			cmd := entryOf(p)
			r.send(fitted(p, x.cntlid, 0))
			if p.Conn == 0 && cmd.Opcode() == nvme.AdminAsyncEventRequest {
				x.events[cmd.CID()] = true
				continue
			}
			x.await(p.Conn, &cmd)
		case pdu.TypeH2CData:
			r.send(fitted(p, x.cntlid, x.tags[key]))
			if p.Bytes[1]&pdu.FlagLast != 0 {
				var cmd nvme.Command
				cmd.SetCID(cid)
				x.await(p.Conn, &cmd)
			}
		default:
			require.Failf(t, "a PDU that hosts do not send twice", "%d: %s", i, p.What)
		}
	}
}

// awaitShutdown polls CSTS, as a host does that waits for its shutdown, and a few times more. await fails where the
// target completes the event request, which waits until the connection ends.
func (x *player) awaitShutdown() {
	const statusComplete = 2 << 2
	r := x.conns[0]
	seen, polls := x.seen, 0
	defer func() { x.seen = seen }()
	x.seen = func(_ int, _ *nvme.Command, cpl nvme.Completion, _ []byte) {
		require.True(x.s.t, cpl.Status().OK(), cpl.String())
		if cpl.DW0()&(3<<2) == statusComplete {
			polls++
		}
	}
	for r.next = 0x100; polls < 20; {
		cmd := fabrics.PropertyGet(controller.PropertyCSTS, 4)
		cmd.SetCID(r.capsule(cmd, nil))
		x.await(0, &cmd)
	}
}

// await takes PDUs up to a command's completion, or the request for its data.
func (x *player) await(conn int, cmd *nvme.Command) {
	t, r := x.s.t, x.conns[conn]
	var data []byte
	for {
		f, h, d := r.receive()
		switch f.Type {
		case pdu.TypeC2HData:
			data = append(data, d...)
			if f.Flags&pdu.FlagSuccess != 0 {
				x.seen(conn, cmd, nvme.NewCompletion(cmd.CID(), nvme.Success), data)
				return
			}
		case pdu.TypeR2T:
			q := pdu.ParseR2T(h)
			require.Equal(t, cmd.CID(), q.CID)
			require.Equal(t, cmd.DataLength(), q.Length)
			x.tags[[2]int{conn, int(q.CID)}] = q.Tag
			return
		case pdu.TypeCapsuleResp:
			cpl := pdu.CompletionOf(h)
			require.False(t, conn == 0 && x.events[cpl.CID()], "the event request was completed, and there was no event")
			require.Equal(t, cmd.CID(), cpl.CID())
			x.seen(conn, cmd, cpl, data)
			return
		default:
			require.Failf(t, "unexpected PDU", "%s", f.Header)
		}
	}
}

// idleCompute is a device that computes nothing, and idlePrograms its one program slot.
type (
	idleCompute  struct{}
	idlePrograms struct{ programs.Device }
)

func (idleCompute) SLM() []byte               { return make([]byte, 1<<20) }
func (idleCompute) ClearSLM(b []byte)         { clear(b) }
func (idleCompute) Programs() programs.Device { return idlePrograms{} }
func (idleCompute) BackendName() string       { return "functional" }
func (idleCompute) Log() []byte               { return new(cs.Log).Marshal() }
func (idleCompute) Execute(context.Context, controller.Execution) (uint64, nvme.Status) {
	return 0, nvme.Success
}

func (idlePrograms) Limits() programs.Limits {
	return programs.Limits{Slots: 1, MaxBytes: 1 << 20}
}

func (idlePrograms) Active(int) int { return 0 }

func (idlePrograms) List() []cs.Program {
	return []cs.Program{{Occupancy: cs.SlotDevice, Active: true, Type: cs.ProgramTypeImage, PUID: 1, Bytes: 1}}
}

// TestCapturedConnectionsOfLinuxReplay sends what Linux 6.1 and 6.12 with nvme-cli sent when they connected, used a
// drive, left and discovered, as package kerneltest captured it, byte for byte, and checks the fields of the answers
// that those kernels look at. No kernel runs here: that a kernel still connects is shown by package kerneltest, which
// boots them.
func TestCapturedConnectionsOfLinuxReplay(t *testing.T) {
	for name, pdus := range goldenTraces(t) {
		t.Run(name, func(t *testing.T) {
			s := &served{t: t, flash: newFlash(64 << 20), ended: make(chan error, 1)}
			var err error
			s.sub, err = controller.New(controller.Options{Flash: s.flash, NQN: testNQN, Compute: idleCompute{}})
			require.NoError(t, err)
			s.start(TargetOptions{}, "127.0.0.1:0")
			t.Cleanup(func() { s.stop() })
			require.NoError(t, s.target.Add(controller.NewDiscovery(controller.DiscoveryOptions{})))
			copy(s.flash.data, pattern(1<<20, 1))
			discovers := strings.HasSuffix(name, "discover")
			x := &player{s: s, conns: map[int]*rawHost{}, events: map[uint16]bool{}, tags: map[[2]int]uint16{}}
			seen := map[string]int{}
			x.seen = func(conn int, cmd *nvme.Command, cpl nvme.Completion, data []byte) {
				require.True(t, cpl.Status().OK(), "%s: %s", cmd, cpl.Status())
				what := judgeAnswer(t, x, conn, discovers, cmd, cpl, data)
				seen[what]++
			}
			x.play(pdus)
			want := []string{"connect", "CAP", "VS", "CSTS", "identify controller"}
			if !discovers {
				want = append(want, "effects log", "queues", "namespace list", "descriptors", "identify namespace", "read")
				require.Equal(t, make([]byte, 131072), s.flash.data[:131072], "what the host wrote")
			}
			for _, w := range want {
				assert.NotZero(t, seen[w], w)
			}
			assert.Len(t, x.events, 1, "an event was asked for")
			x.awaitShutdown()
			for _, r := range x.conns {
				require.NoError(t, r.nc.Close())
			}
		})
	}
}

// judgeAnswer checks that an answer meets Linux's requirements, and returns its subject.
func judgeAnswer(t *testing.T, x *player, conn int, discovers bool, cmd *nvme.Command, cpl nvme.Completion,
	data []byte) string {
	fabric := cmd.Opcode() == fabrics.Opcode
	switch offset, _, value := fabrics.ParseProperty(cmd); {
	case fabric && fabrics.Type(cmd) == fabrics.TypeConnect:
		if conn == 0 {
			x.cntlid = uint16(cpl.DW0())
		}
		assert.Equal(t, x.cntlid, uint16(cpl.DW0()))
		assert.Zero(t, cpl.DW0()>>16, "no authentication")
		return "connect"
	case fabric && fabrics.Type(cmd) == fabrics.TypePropertySet:
		return map[bool]string{true: "shutdown", false: "CC"}[value>>14&3 != 0]
	case fabric && offset == controller.PropertyCAP:
		c := cpl.Result()
		assert.GreaterOrEqual(t, c&0xffff, uint64(127), "MQES")
		assert.Zero(t, c>>48&15, "MPSMIN")
		assert.Equal(t, uint64(1<<37|1<<43), c&(1<<37|1<<43), "CSS")
		assert.Zero(t, c>>59&3, "CRMS")
		return "CAP"
	case fabric && offset == controller.PropertyCSTS:
		assert.Equal(t, uint32(1), cpl.DW0()&3)
		return "CSTS"
	case fabric && offset == controller.PropertyVS:
		assert.Equal(t, uint32(0x20000), cpl.DW0())
		return "VS"
	case fabric:
		return "property"
	case conn != 0:
		if cmd.Opcode() == nvme.NVMRead {
			require.Len(t, data, int(cmd.DataLength()))
			return "read"
		}
		return "I/O"
	}
	switch cns := uint8(cmd.DW(10)); {
	case cmd.Opcode() == nvme.AdminIdentify && cns == nvme.CNSController:
		var id nvme.IdentifyController
		require.NoError(t, id.Unmarshal(data))
		assert.Equal(t, x.cntlid, id.ControllerID)
		assert.NotZero(t, id.KeepAliveGranularity)
		assert.NotZero(t, id.SGLs&3)
		assert.Zero(t, id.CapsuleOffset)
		assert.GreaterOrEqual(t, id.CommandCapsule, uint32(4))
		assert.Equal(t, uint32(1), id.ResponseCapsule)
		assert.Equal(t, []uint8{0x66, 0x44}, []uint8{id.SQES, id.CQES})
		assert.NotZero(t, id.MDTS)
		if !discovers {
			assert.GreaterOrEqual(t, id.MaxCommands, uint16(128))
			assert.Equal(t, testNQN, id.SubsystemNQN)
			assert.Equal(t, uint8(1), id.ControllerType)
			assert.NotZero(t, id.MultiPath&2, "CMIC")
		}
		return "identify controller"
	case cmd.Opcode() == nvme.AdminIdentify && cns == nvme.CNSActiveNamespaces:
		assert.Equal(t, []uint32{1, 2, 3}, nvme.UnmarshalNamespaceList(data))
		return "namespace list"
	case cmd.Opcode() == nvme.AdminIdentify && cns == nvme.CNSNamespaceDescriptors:
		assert.Equal(t, []byte{4, 1, 0, 0}, data[20:24], "CSI behind the UUID")
		return "descriptors"
	case cmd.Opcode() == nvme.AdminIdentify && cns == nvme.CNSNamespace:
		assert.Equal(t, uint64(64<<20/512), binary.LittleEndian.Uint64(data))
		return "identify namespace"
	case cmd.Opcode() == nvme.AdminGetLogPage && uint8(cmd.DW(10)) == nvme.LogEffects:
		for op := range 256 {
			e := binary.LittleEndian.Uint32(data[1024+4*op:])
			assert.Zero(t, e&^(nvme.EffectSupported|nvme.EffectBlocksChange), "opcode %02xh", op)
		}
		return "effects log"
	case cmd.Opcode() == nvme.AdminSetFeatures && uint8(cmd.DW(10)) == nvme.FeatureQueues:
		assert.GreaterOrEqual(t, cpl.DW0()&0xffff, uint32(1))
		return "queues"
	}
	return "admin"
}
