package tcp

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/stream"
)

// randomCommand looks valid: an opcode that there is or nearly, small numbers where they matter, a length that fits
// often.
func randomCommand(rng *rand.Rand, admin bool) nvme.Command {
	pick := func(v ...uint8) uint8 { return v[rng.IntN(len(v))] }
	op := pick(nvme.NVMFlush, nvme.NVMWrite, nvme.NVMRead, nvme.NVMCompare, nvme.NVMWriteZeroes, nvme.NVMDataset, 0x81,
		0x82, 0x85, uint8(rng.Uint32()))
	if admin {
		op = pick(nvme.AdminGetLogPage, nvme.AdminIdentify, nvme.AdminAbort, nvme.AdminSetFeatures, nvme.AdminGetFeatures,
			nvme.AdminKeepAlive,
			0x85, 0x88, 0xc1, 0xc8, uint8(rng.Uint32()))
		if op == nvme.AdminAsyncEventRequest {
			op = nvme.AdminKeepAlive
		}
	}
	c := nvme.New(op, uint32(rng.IntN(4)))
	if rng.IntN(10) == 0 {
		c.SetNSID(rng.Uint32())
	}
	for i := 10; i < 16; i++ {
		switch rng.IntN(4) {
		case 0:
			c.SetDW(i, uint32(rng.IntN(64)))
		case 1:
			c.SetDW(i, rng.Uint32()>>rng.IntN(32))
		}
	}
	if admin && op == nvme.AdminSetFeatures && c.DW(10)&0xff == nvme.FeatureKeepAlive && c.DW(11) != 0 {
		// A second, to which small times are rounded up, passes between two commands on a busy machine, and the drive
		// would be right to end the association: half an hour at least.
		c.SetDW(11, c.DW(11)|1<<21)
	}
	if op == fabrics.Opcode && fabrics.Type(&c) == fabrics.TypeDisconnect { // which ends the connection, rightly
		c.SetNSID(0)
	}
	switch n := c.DW(12)&0xffff + 1; {
	case rng.IntN(8) == 0:
		c.SetData(rng.Uint32() >> rng.IntN(32))
	case admin:
		c.SetData([]uint32{0, 4, 512, 1024, 4096}[rng.IntN(5)])
	case n <= 4096:
		c.SetData(n * 512)
	}
	return c
}

// Commands at random for MILLRACE_RANDOM (default 2s): every command completes, the target still answers, and memory
// is flat.
func TestRandomCommands(t *testing.T) {
	noLeaks(t)
	length := 2 * time.Second
	if v := os.Getenv("MILLRACE_RANDOM"); v != "" {
		var err error
		length, err = time.ParseDuration(v)
		require.NoError(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	s := serve(t, TargetOptions{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}) // says why it ends a connection
	other := s.dial(DialOptions{})
	admin, id := s.admin(pdu.ICReq{HeaderDigest: true})
	io := s.ioQueue(pdu.ICReq{HeaderDigest: true}, id, fabrics.Connect{})
	require.NoError(t, admin.nc.SetDeadline(time.Now().Add(length+time.Minute)))
	require.NoError(t, io.nc.SetDeadline(time.Now().Add(length+time.Minute)))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	last := map[*rawHost]string{}
	defer func() {
		if t.Failed() {
			t.Logf("last commands: admin queue %s, I/O queue %s", last[admin], last[io])
		}
	}()
	var before uint64
	done := 0
	for begin := time.Now(); time.Since(begin) < length; done++ {
		if done == 1000 {
			before = heap()
		}
		r := io
		if rng.IntN(2) == 0 {
			r = admin
		}
		cmd := randomCommand(rng, r == admin)
		last[r] = cmd.String()
		var cid uint16
		if n := cmd.DataLength(); n > 0 && n <= inCapsule && rng.IntN(2) == 0 {
			cid = r.capsule(cmd, make([]byte, n))
		} else {
			cid = r.capsule(cmd, nil)
		}
		for answered := false; !answered; {
			f, h, _ := r.receive()
			switch f.Type {
			case pdu.TypeR2T:
				q := pdu.ParseR2T(h)
				require.Equal(t, cid, q.CID)
				r.h2c(pdu.Data{CID: cid, Tag: q.Tag, Length: q.Length}, pdu.FlagLast, make([]byte, q.Length))
			case pdu.TypeC2HData:
			case pdu.TypeCapsuleResp:
				cpl := pdu.CompletionOf(h)
				require.Equal(t, cid, cpl.CID())
				answered = true
			default:
				require.Failf(t, "unexpected PDU", "%s after %s", f.Header, cmd.String())
			}
		}
	}
	t.Logf("%d commands", done)
	require.NoError(t, read(context.Background(), other, 0, make([]byte, 512)))
	if after := heap(); before > 0 {
		assert.Less(t, after, before+32<<20, "memory grows: %d to %d bytes after %d commands", before, after, done)
	}
}

// FuzzTarget feeds bytes to a connection after its initialisation, and to one before: the target answers other hosts
// for any bytes.
func FuzzTarget(f *testing.F) {
	cmd := nvme.Read(1, 0, 1, 512)
	cmd.SetCID(1)
	var r pdu.Rules
	frame := r.Layout(pdu.TypeCapsuleCmd, 0, 0)
	capsule := make([]byte, frame.Prefix())
	pdu.PutCommand(capsule, &cmd)
	f.Add(frame.Seal(capsule), true)
	c := fabrics.Connect{Size: 31}.Command()
	c.SetSGL(nvme.SGL{Length: 1024, Type: nvme.SGLDataBlockOffset})
	frame = r.Layout(pdu.TypeCapsuleCmd, 0, 1024)
	capsule = make([]byte, frame.Prefix())
	pdu.PutCommand(capsule, &c)
	data := fabrics.ConnectData{ControllerID: fabrics.AnyController, SubsystemNQN: testNQN, HostNQN: hostNQN}
	f.Add(append(frame.Seal(capsule), data.Marshal()...), true)
	f.Add((&pdu.ICReq{HeaderDigest: true}).Put(new([pdu.ICSize]byte)), false)
	f.Add([]byte("GET / HTTP/1.0\r\n\r\n"), false)
	for _, pdus := range goldenTraces(f) {
		streams := map[int][]byte{} // of a connection each, from its first byte
		for _, p := range pdus {
			if len(streams[p.Conn])+len(p.Bytes) < 16<<10 {
				streams[p.Conn] = append(streams[p.Conn], fitted(p, 1, 0)...)
			}
		}
		for _, b := range streams {
			f.Add(b, false)
		}
	}
	s := serve(f, TargetOptions{})
	other := s.dial(DialOptions{})
	f.Fuzz(func(t *testing.T, b []byte, initialised bool) {
		r := dialRaw(t, s.address)
		if initialised {
			r.initialise(pdu.ICReq{})
		}
		_, _ = r.nc.Write(b)
		require.NoError(t, r.nc.(interface{ CloseWrite() error }).CloseWrite())
		for {
			f, _, err := r.rx.NextPDU()
			if err != nil {
				require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the target neither answered nor closed")
				break
			}
			if r.rx.SkipData(&f) != nil {
				break
			}
		}
		require.NoError(t, r.nc.Close())
		require.NoError(t, read(context.Background(), other, 0, make([]byte, 512)), "somebody else's connection")
	})
}

// FuzzHost answers the Connect of a host with any bytes and closes the connection. Dial returns an error, and does so
// before its timeout.
func FuzzHost(f *testing.F) {
	cpl := nvme.NewCompletion(1<<entryBits, nvme.Success)
	var r pdu.Rules
	frame := r.Layout(pdu.TypeCapsuleResp, 0, 0)
	b := make([]byte, frame.Prefix())
	pdu.PutCompletion(b, &cpl)
	f.Add(append([]byte(nil), frame.Seal(b)...))
	frame = r.Layout(pdu.TypeR2T, 0, 0)
	pdu.R2T{CID: 1 << entryBits, Length: 1024}.Put(b)
	f.Add(append([]byte(nil), frame.Seal(b)...))
	f.Add(pdu.Terminate(pdu.TypeC2HTermReq, &pdu.Error{Status: pdu.FatalLimit}, b))
	f.Fuzz(func(t *testing.T, answer []byte) {
		here, there := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			rx := stream.NewReader(there, pdu.Rules{MaxData: 1 << 20})
			if _, _, err := rx.NextPDU(); err != nil {
				return
			}
			_, _ = there.Write((&pdu.ICResp{MaxH2CData: 4096}).Put(new([pdu.ICSize]byte)))
			f, _, err := rx.NextPDU()
			if err != nil || rx.SkipData(&f) != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, there) }()
			_, _ = there.Write(answer)
			_ = there.Close()
		}()
		_, err := Dial(t.Context(), DialOptions{
			Address: "pipe:0", Subsystem: testNQN, HostNQN: hostNQN, ConnectTimeout: 10 * time.Second,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return here, nil },
		})
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		_ = there.Close()
		<-done
	})
}
