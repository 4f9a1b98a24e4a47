package tcp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// Every breach of the protocol is answered by its termination request, and no other connection notices.
// disconnect builds a Disconnect of the I/O queue that it is sent on.
func disconnect() nvme.Command {
	c := nvme.New(fabrics.Opcode, 0)
	c[4] = fabrics.TypeDisconnect
	return c
}

func TestBreachesOfProtocol(t *testing.T) {
	noLeaks(t)
	s := serve(t, TargetOptions{MaxH2CData: 4096})
	other := s.dial(DialOptions{})
	digests := pdu.ICReq{HeaderDigest: true, DataDigest: true}

	// withWrite leaves a write of 8 KiB plus a block waiting for its data.
	withWrite := func(t *testing.T) (*rawHost, pdu.R2T) {
		_, id := s.admin(pdu.ICReq{})
		r := s.ioQueue(pdu.ICReq{}, id, fabrics.Connect{})
		cid := r.capsule(nvme.Write(1, 0, 17, 512, false), nil)
		f, h, _ := r.receive()
		require.Equal(t, pdu.TypeR2T, f.Type)
		r2t := pdu.ParseR2T(h)
		require.Equal(t, pdu.R2T{CID: cid, Tag: r2t.Tag, Length: 17 * 512}, r2t)
		return r, r2t
	}
	ready := func(t *testing.T, req pdu.ICReq) *rawHost {
		r := s.dialRaw()
		r.initialise(req)
		return r
	}
	header := func(typ pdu.Type, size, offset uint8, length uint32) []byte {
		b := make([]byte, length)
		pdu.Header{Type: typ, Size: size, Offset: offset, Length: length}.Put(b)
		return b
	}
	for name, c := range map[string]struct {
		run    func(t *testing.T) *rawHost
		status pdu.Fatal
		info   int64 // -1: not checked
	}{
		"not NVMe/TCP": {func(t *testing.T) *rawHost {
			r := s.dialRaw()
			r.send([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
			return r
		}, pdu.FatalHeader, 0},
		"command before initialisation": {func(t *testing.T) *rawHost {
			r := s.dialRaw()
			r.send(header(pdu.TypeCapsuleCmd, 72, 0, 72))
			return r
		}, pdu.FatalSequence, -1},
		"format of the future": {func(t *testing.T) *rawHost {
			r := s.dialRaw()
			r.send((&pdu.ICReq{Format: 1}).Put(new([pdu.ICSize]byte)))
			return r
		}, pdu.FatalUnsupported, 8},
		"second initialisation": {func(t *testing.T) *rawHost {
			r := ready(t, pdu.ICReq{})
			r.send((&pdu.ICReq{}).Put(new([pdu.ICSize]byte)))
			return r
		}, pdu.FatalSequence, -1},
		"unknown type": {func(t *testing.T) *rawHost {
			r := ready(t, pdu.ICReq{})
			r.send(header(8, 24, 0, 24))
			return r
		}, pdu.FatalHeader, 0},
		"a controller's": {func(t *testing.T) *rawHost {
			r := ready(t, pdu.ICReq{})
			r.send(header(pdu.TypeR2T, 24, 0, 24))
			return r
		}, pdu.FatalHeader, 0},
		"wrong header size": {func(t *testing.T) *rawHost {
			r := ready(t, pdu.ICReq{})
			r.send(header(pdu.TypeCapsuleCmd, 64, 0, 72))
			return r
		}, pdu.FatalHeader, 2},
		"wrong data offset": {func(t *testing.T) *rawHost {
			r := ready(t, pdu.ICReq{})
			r.send(header(pdu.TypeCapsuleCmd, 72, 4, 80))
			return r
		}, pdu.FatalHeader, 3},
		"length that is none": {func(t *testing.T) *rawHost {
			r := ready(t, pdu.ICReq{})
			b := header(pdu.TypeCapsuleCmd, 72, 0, 72)
			binary.LittleEndian.PutUint32(b[4:], 0)
			r.send(b)
			return r
		}, pdu.FatalHeader, 4},
		"capsule too large": {func(t *testing.T) *rawHost {
			r := ready(t, pdu.ICReq{})
			r.send(header(pdu.TypeCapsuleCmd, 72, 72, 72+8196)[:72])
			return r
		}, pdu.FatalLimit, -1},
		"capsule of gigabytes": {func(t *testing.T) *rawHost {
			r := ready(t, pdu.ICReq{})
			b := header(pdu.TypeCapsuleCmd, 72, 72, 80)[:72]
			binary.LittleEndian.PutUint32(b[4:], 0xfffffff0)
			r.send(b)
			return r
		}, pdu.FatalLimit, -1},
		"header digest": {func(t *testing.T) *rawHost {
			r := ready(t, digests)
			b := r.bytes(pdu.TypeCapsuleCmd, 0, nil, func([]byte) {})
			b[20] ^= 1
			r.send(b)
			return r
		}, pdu.FatalHeaderDigest, -1},
		"more commands than the queue holds": {func(t *testing.T) *rawHost {
			_, id := s.admin(pdu.ICReq{})
			r := s.ioQueue(pdu.ICReq{}, id, fabrics.Connect{Size: 1})
			for range 3 {
				r.capsule(nvme.Write(1, 0, 17, 512, false), nil)
			}
			return r
		}, pdu.FatalLimit, -1},
		"data nobody asked for": {func(t *testing.T) *rawHost {
			r, r2t := withWrite(t)
			r.h2c(pdu.Data{CID: r2t.CID, Tag: r2t.Tag + 1, Length: 4096}, 0, make([]byte, 4096))
			return r
		}, pdu.FatalHeader, 10},
		"tag far off": {func(t *testing.T) *rawHost {
			r, r2t := withWrite(t)
			r.h2c(pdu.Data{CID: r2t.CID, Tag: 0xffff, Length: 4096}, 0, make([]byte, 4096))
			return r
		}, pdu.FatalHeader, 10},
		"data of another command": {func(t *testing.T) *rawHost {
			r, r2t := withWrite(t)
			r.h2c(pdu.Data{CID: r2t.CID + 1, Tag: r2t.Tag, Length: 4096}, 0, make([]byte, 4096))
			return r
		}, pdu.FatalHeader, 8},
		"data out of order": {func(t *testing.T) *rawHost {
			r, r2t := withWrite(t)
			r.h2c(pdu.Data{CID: r2t.CID, Tag: r2t.Tag, Offset: 4096, Length: 4096}, 0, make([]byte, 4096))
			return r
		}, pdu.FatalRange, 12},
		"more data than asked for": {func(t *testing.T) *rawHost {
			r, r2t := withWrite(t)
			for i := range uint32(3) {
				r.h2c(pdu.Data{CID: r2t.CID, Tag: r2t.Tag, Offset: i * 4096, Length: 4096}, 0, make([]byte, 4096))
			}
			return r
		}, pdu.FatalRange, 12},
		"length of data that is not its own": {func(t *testing.T) *rawHost {
			r, r2t := withWrite(t)
			r.h2c(pdu.Data{CID: r2t.CID, Tag: r2t.Tag, Length: 512}, 0, make([]byte, 4096))
			return r
		}, pdu.FatalHeader, 16},
		"more than MAXH2CDATA": {func(t *testing.T) *rawHost {
			r, r2t := withWrite(t)
			r.h2c(pdu.Data{CID: r2t.CID, Tag: r2t.Tag, Length: 8192}, 0, make([]byte, 8192))
			return r
		}, pdu.FatalLimit, 16},
		"last too early": {func(t *testing.T) *rawHost {
			r, r2t := withWrite(t)
			r.h2c(pdu.Data{CID: r2t.CID, Tag: r2t.Tag, Length: 4096}, pdu.FlagLast, make([]byte, 4096))
			return r
		}, pdu.FatalHeader, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.run(t).terminated()
			assert.Equal(t, c.status, got.Status, got.Error())
			if c.info >= 0 {
				assert.Equal(t, uint32(c.info), got.Info)
			}
			require.NoError(t, read(t.Context(), other, 0, make([]byte, 512)), "somebody else's connection")
		})
	}
}

// A malformed command gets its status, and the connection lives on.
func TestMalformedCommands(t *testing.T) {
	s := serve(t, TargetOptions{})
	admin, id := s.admin(pdu.ICReq{})
	r := s.ioQueue(pdu.ICReq{}, id, fabrics.Connect{})
	block := make([]byte, 512)
	with := func(c nvme.Command, change func(*nvme.Command)) nvme.Command { change(&c); return c }
	wr := nvme.Write(1, 0, 1, 512, false)
	for name, c := range map[string]struct {
		queue *rawHost
		cmd   nvme.Command
		data  []byte
		want  nvme.Status
	}{
		"data in a read's capsule": {r, nvme.Read(1, 0, 1, 512), block, nvme.InvalidField},
		"data of another length":   {r, nvme.Write(1, 0, 2, 512, false), block, nvme.InvalidSGLLength},
		"no PSDT": {r, with(nvme.Read(1, 0, 1, 512), func(c *nvme.Command) { c[1] = 0 }), nil,
			nvme.InvalidField},
		"unknown descriptor": {r, with(nvme.Read(1, 0, 1, 512), func(c *nvme.Command) { c[39] = 0x30 }), nil,
			nvme.InvalidSGLType},
		"in a capsule without data": {r, with(wr, func(c *nvme.Command) { c[39] = nvme.SGLDataBlockOffset }), nil,
			nvme.InvalidSGLLength},
		"4 GiB of data": {r, with(wr, func(c *nvme.Command) { c.SetData(0xffffffff) }), nil,
			nvme.InvalidSGLLength},
		"unknown opcode":           {r, nvme.New(0x7e, 1), nil, nvme.InvalidOpcode},
		"unknown namespace":        {r, nvme.Read(9, 0, 1, 512), nil, nvme.InvalidNamespace},
		"property on an I/O queue": {r, fabrics.PropertyGet(0, 8), nil, nvme.InvalidOpcode},
		"unknown property":         {admin, fabrics.PropertyGet(0x1000, 4), nil, nvme.InvalidField},
		"property of 16 bytes": {admin, with(fabrics.PropertyGet(0, 8), func(c *nvme.Command) { c[40] = 2 }), nil,
			nvme.InvalidField},
		"authentication": {admin, with(fabrics.PropertyGet(0, 8),
			func(c *nvme.Command) { c[4] = fabrics.TypeAuthSend }), nil, nvme.InvalidOpcode},
		"disconnect of an admin queue": {admin, disconnect(), nil, fabrics.InvalidQueueType},
		"a second connect": {admin, fabrics.Connect{Size: 31}.Command(), make([]byte, 1024),
			nvme.CommandSequenceError},
		"log past its end": {admin, nvme.GetLog(nvme.LogSMART, 0, 4096, 512), nil, nvme.InvalidField},
	} {
		t.Run(name, func(t *testing.T) {
			c.queue.t = t
			cpl, _ := c.queue.do(c.cmd, c.data)
			assert.True(t, cpl.Status().Is(c.want), cpl.Status().String())
			assert.True(t, cpl.Status().DNR())
		})
	}
	r.t = t
	at := with(wr, func(c *nvme.Command) {})
	r.next++
	at.SetCID(r.next)
	at.SetSGL(nvme.SGL{Address: 64, Length: 512, Type: nvme.SGLDataBlockOffset})
	r.send(r.bytes(pdu.TypeCapsuleCmd, 0, block, func(b []byte) { pdu.PutCommand(b, &at) }))
	cpl, _ := r.completion(r.next)
	assert.True(t, cpl.Status().Is(nvme.InvalidSGLOffset))
	cpl, _ = r.do(nvme.Read(1, 0, 1, 512), nil)
	assert.True(t, cpl.Status().OK())
}

// TestCommandsWithoutADescriptor checks that the data pointer may be zero in commands without data, and in no others.
func TestCommandsWithoutADescriptor(t *testing.T) {
	s := serve(t, TargetOptions{})
	admin, id := s.admin(pdu.ICReq{})
	r := s.ioQueue(pdu.ICReq{}, id, fabrics.Connect{})
	for name, c := range map[string]struct {
		queue *rawHost
		cmd   nvme.Command
		want  nvme.Status
	}{
		"flush":         {r, nvme.Flush(1), nvme.Success},
		"keep alive":    {admin, nvme.KeepAlive(), nvme.Success},
		"set features":  {admin, nvme.SetFeature(nvme.FeatureWriteCache, 1), nvme.Success},
		"property get":  {admin, fabrics.PropertyGet(0, 8), nvme.Success},
		"read":          {r, nvme.Read(1, 0, 1, 512), nvme.InvalidSGLType},
		"write":         {r, nvme.Write(1, 0, 1, 512, false), nvme.InvalidSGLType},
		"identify":      {admin, nvme.Identify(1, 0, 0), nvme.InvalidSGLType},
		"authenticate":  {admin, fabrics.AuthReceive(64), nvme.InvalidOpcode},
		"write zeroes":  {r, nvme.WriteZeroes(1, 0, 1, false), nvme.Success},
		"another queue": {r, fabrics.PropertyGet(0, 8), nvme.InvalidOpcode},
	} {
		t.Run(name, func(t *testing.T) {
			c.queue.t = t
			c.cmd.SetSGL(nvme.SGL{})
			cpl, _ := c.queue.do(c.cmd, nil)
			assert.True(t, cpl.Status().Is(c.want), cpl.Status().String())
		})
	}
}

func TestConnectRefused(t *testing.T) {
	s := serve(t, TargetOptions{Hosts: []string{hostNQN}})
	_, id := s.admin(pdu.ICReq{})
	admin := fabrics.Connect{Size: 31}
	io := fabrics.Connect{Size: 31, Queue: 1}
	for name, c := range map[string]struct {
		req  fabrics.Connect
		data fabrics.ConnectData
		want nvme.Status
		dw0  uint32
	}{
		"format": {fabrics.Connect{Format: 1, Size: 31}, fabrics.ConnectData{ControllerID: 0xffff},
			fabrics.IncompatibleFormat, 0},
		"subsystem": {admin, fabrics.ConnectData{ControllerID: 0xffff, SubsystemNQN: testNQN + "x"},
			fabrics.InvalidParameters, fabrics.ParameterSubsystemNQN},
		"host on no list": {admin, fabrics.ConnectData{ControllerID: 0xffff, HostNQN: hostNQN + "x"},
			fabrics.InvalidHost, 0},
		"host without a name": {admin, fabrics.ConnectData{ControllerID: 0xffff, HostNQN: "x"},
			fabrics.InvalidParameters, fabrics.ParameterHostNQN},
		"a controller of its wish": {admin, fabrics.ConnectData{ControllerID: 1}, fabrics.InvalidParameters,
			fabrics.ParameterControllerID},
		"admin queue of 1": {fabrics.Connect{}, fabrics.ConnectData{ControllerID: 0xffff}, fabrics.InvalidParameters,
			fabrics.ParameterQueueSize},
		"admin queue too deep": {fabrics.Connect{Size: 32}, fabrics.ConnectData{ControllerID: 0xffff},
			fabrics.InvalidParameters, fabrics.ParameterQueueSize},
		"queue of no controller": {io, fabrics.ConnectData{ControllerID: id + 1}, fabrics.InvalidParameters,
			fabrics.ParameterControllerID},
		"queue of another host": {io, fabrics.ConnectData{ControllerID: id, HostID: [16]byte{1}},
			fabrics.InvalidParameters, fabrics.ParameterHostID},
		"queue too deep": {fabrics.Connect{Size: controller.MaxDepth, Queue: 1},
			fabrics.ConnectData{ControllerID: id}, fabrics.InvalidParameters, fabrics.ParameterQueueSize},
		"queue too far": {fabrics.Connect{Size: 7, Queue: 1000}, fabrics.ConnectData{ControllerID: id},
			fabrics.InvalidParameters, fabrics.ParameterQueueID},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.dialRaw()
			r.initialise(pdu.ICReq{})
			cpl := r.connect(c.req, c.data)
			assert.True(t, cpl.Status().Is(c.want), cpl.Status().String())
			assert.True(t, cpl.Status().DNR())
			assert.Equal(t, c.dw0, cpl.DW0())
		})
	}
	s.ioQueue(pdu.ICReq{}, id, fabrics.Connect{})
	again := s.dialRaw()
	again.initialise(pdu.ICReq{})
	cpl := again.connect(io, fabrics.ConnectData{ControllerID: id})
	assert.True(t, cpl.Status().Is(nvme.CommandSequenceError), "a queue that there is: %s", cpl.Status())
	cpl, _ = again.do(nvme.Identify(1, 0, 0), nil)
	assert.True(t, cpl.Status().Is(nvme.CommandSequenceError), "a command on a connection that is not a queue")

	_, err := Dial(t.Context(), DialOptions{Address: s.address, Subsystem: testNQN, HostNQN: hostNQN + "x"})
	require.ErrorContains(t, err, "allow-list")
	_, err = Dial(t.Context(), DialOptions{Address: s.address, Subsystem: testNQN + "x", HostNQN: hostNQN})
	require.ErrorContains(t, err, "does not know the subsystem NQN")
}

// TestConnectWithoutWaiting: a host that sends a Connect before it has the answer to the one before.
func TestConnectWithoutWaiting(t *testing.T) {
	s := serve(t, TargetOptions{})
	for range 50 {
		r := s.dialRaw()
		r.initialise(pdu.ICReq{})
		d := fabrics.ConnectData{HostNQN: hostNQN, SubsystemNQN: testNQN, ControllerID: fabrics.AnyController}
		refused := fabrics.Connect{Size: 31, Format: 1}
		first := r.capsule(refused.Command(), d.Marshal())
		good := fabrics.Connect{Size: 31}
		second := r.capsule(good.Command(), d.Marshal())
		cpl, _ := r.completion(first)
		require.True(t, cpl.Status().Is(fabrics.IncompatibleFormat), cpl.String())
		cpl, _ = r.completion(second)
		require.True(t, cpl.Status().OK(), cpl.String())
		require.NoError(t, r.nc.Close())
	}
}

// A write arrives in pieces of every size, and one byte at a time.
func TestWritesSplitAnywhere(t *testing.T) {
	req := pdu.ICReq{HeaderDigest: true, DataDigest: true}
	s := serve(t, TargetOptions{MaxH2CData: 8192})
	_, id := s.admin(req)
	r := s.ioQueue(req, id, fabrics.Connect{})
	small, large := pattern(512, 1), pattern(17*512, 2)
	for split := 1; split < 700; split++ {
		if split > 80 {
			split += 13
		}
		r.split = split
		small[0], large[0] = byte(split), byte(split>>1)
		cpl, _ := r.do(nvme.Write(1, 0, 1, 512, false), small)
		require.True(t, cpl.Status().OK(), "split %d", split)
		if split%16 != 1 {
			continue
		}
		cid := r.capsule(nvme.Write(1, 8, 17, 512, false), nil)
		f, h, _ := r.receive()
		require.Equal(t, pdu.TypeR2T, f.Type)
		tag := pdu.ParseR2T(h).Tag
		r.h2c(pdu.Data{CID: cid, Tag: tag, Length: 8192}, 0, large[:8192])
		r.h2c(pdu.Data{CID: cid, Tag: tag, Offset: 8192, Length: 512}, pdu.FlagLast, large[8192:])
		cpl, _ = r.completion(cid)
		require.True(t, cpl.Status().OK())
		require.True(t, bytes.Equal(s.flash.data[:512], small) && bytes.Equal(s.flash.data[4096:4096+17*512], large),
			"split %d", split)
	}
}

// Data that arrives broken fails its command only, in a capsule and behind a request.
func TestBrokenDataFromHost(t *testing.T) {
	req := pdu.ICReq{DataDigest: true}
	s := serve(t, TargetOptions{})
	_, id := s.admin(req)
	r := s.ioQueue(req, id, fabrics.Connect{})
	cmd := nvme.Write(1, 0, 1, 512, false)
	cmd.SetSGL(nvme.SGL{Length: 512, Type: nvme.SGLDataBlockOffset})
	cmd.SetCID(100)
	b := r.bytes(pdu.TypeCapsuleCmd, 0, pattern(512, 3), func(b []byte) { pdu.PutCommand(b, &cmd) })
	b[100] ^= 1
	r.send(b)
	cpl, _ := r.completion(100)
	assert.True(t, cpl.Status().Is(nvme.TransientTransportError))
	assert.False(t, cpl.Status().DNR(), "the host may try again")

	cid := r.capsule(nvme.Write(1, 0, 17, 512, false), nil)
	_, h, _ := r.receive()
	d := pdu.Data{CID: cid, Tag: pdu.ParseR2T(h).Tag, Length: 17 * 512}
	b = r.bytes(pdu.TypeH2CData, pdu.FlagLast, pattern(17*512, 3), d.Put)
	b[len(b)-1] ^= 1
	r.send(b)
	cpl, _ = r.completion(cid)
	assert.True(t, cpl.Status().Is(nvme.TransientTransportError))
	assert.Equal(t, make([]byte, 17*512), s.flash.data[:17*512], "nothing was written")
	cpl, _ = r.do(nvme.Write(1, 0, 1, 512, false), pattern(512, 3))
	assert.True(t, cpl.Status().OK())
}

// The success flag stands for a completion only where flow control is off and there is no result.
func TestSuccessFlag(t *testing.T) {
	s := serve(t, TargetOptions{})
	_, id := s.admin(pdu.ICReq{})
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprintf("flow control off %t", off), func(t *testing.T) {
			c := fabrics.Connect{Size: 3}
			if off {
				c.Attributes = fabrics.DisableFlowControl
			}
			r := s.ioQueue(pdu.ICReq{}, id, c)
			for i := range 10 {
				cid := r.capsule(nvme.Read(1, 0, 1, 512), nil)
				f, h, data := r.receive()
				require.Equal(t, pdu.TypeC2HData, f.Type)
				require.Len(t, data, 512)
				require.Equal(t, cid, binary.LittleEndian.Uint16(h[8:]))
				require.NotZero(t, f.Flags&pdu.FlagLast)
				if off {
					require.NotZero(t, f.Flags&pdu.FlagSuccess)
					continue
				}
				require.Zero(t, f.Flags&pdu.FlagSuccess)
				cpl, _ := r.completion(cid)
				require.Equal(t, uint16((i+2)%4), cpl.SQHead(), "Connect was the first")
			}
			flush := nvme.New(nvme.NVMFlush, 1)
			cpl, _ := r.do(flush, nil)
			if off {
				require.Equal(t, uint16(0xffff), cpl.SQHead())
			}
			cpl, _ = r.do(disconnect(), nil)
			require.True(t, cpl.Status().OK())
			_, _, err := r.rx.NextPDU()
			require.Error(t, err, "the connection ends with its queue")
			require.Eventually(t, func() bool { return s.target.countConnections() == 1 }, time.Minute, time.Millisecond)
		})
	}
}

// A host that wants its data aligned gets it so.
func TestAlignment(t *testing.T) {
	s := serve(t, TargetOptions{})
	req := pdu.ICReq{HeaderDigest: true, Alignment: 31}
	r, _ := s.admin(req)
	cid := r.capsule(nvme.Identify(nvme.CNSController, 0, 0), nil)
	f, _, data := r.receive()
	assert.Equal(t, uint8(128), f.Offset)
	assert.Len(t, data, 4096)
	cpl, _ := r.completion(cid)
	assert.True(t, cpl.Status().OK())
}
