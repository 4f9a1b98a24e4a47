package tcp

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/stream"
)

// rawHost is a host that sends the bytes that a test gives it, right or wrong.
type rawHost struct {
	t     testing.TB
	nc    net.Conn
	rx    *stream.Reader
	tx    pdu.Rules
	next  uint16
	split int // bytes a write; 0: all
}

// dialRaw opens a connection and says nothing.
func (s *served) dialRaw() *rawHost {
	s.t.Helper()
	return dialRaw(s.t, s.address)
}

func dialRaw(t testing.TB, address string) *rawHost {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(time.Minute)))
	return &rawHost{t: t, nc: nc, rx: stream.NewReader(nc, pdu.Rules{MaxData: 1 << 24})}
}

func (r *rawHost) send(b []byte) {
	r.t.Helper()
	n := len(b)
	if r.split > 0 {
		n = r.split
	}
	for ; len(b) > 0; b = b[min(n, len(b)):] {
		_, err := r.nc.Write(b[:min(n, len(b))])
		require.NoError(r.t, err)
	}
}

// initialise does the handshake.
func (r *rawHost) initialise(req pdu.ICReq) pdu.ICResp {
	r.t.Helper()
	r.send(req.Put(new([pdu.ICSize]byte)))
	f, h, err := r.rx.NextPDU()
	require.NoError(r.t, err)
	require.Equal(r.t, pdu.TypeICResp, f.Type)
	resp, err := pdu.ParseICResp((*[pdu.ICSize]byte)(h), req)
	require.NoError(r.t, err)
	r.tx = pdu.Rules{HeaderDigest: req.HeaderDigest, DataDigest: req.DataDigest}
	r.rx.Rules.HeaderDigest, r.rx.Rules.DataDigest = req.HeaderDigest, req.DataDigest
	return resp
}

// bytes lays out a PDU whose header behind the common one put writes.
func (r *rawHost) bytes(t pdu.Type, flags uint8, data []byte, put func(b []byte)) []byte {
	f := r.tx.Layout(t, flags, uint32(len(data)))
	b := make([]byte, f.Prefix())
	put(b)
	f.Seal(b)
	b = append(b, data...)
	if f.Digest {
		b = binary.LittleEndian.AppendUint32(b, pdu.Digest(data))
	}
	return b
}

// capsule sends a command with in-capsule data and returns its identifier.
func (r *rawHost) capsule(cmd nvme.Command, data []byte) uint16 {
	r.t.Helper()
	r.next++
	cmd.SetCID(r.next)
	if len(data) > 0 {
		cmd.SetSGL(nvme.SGL{Length: uint32(len(data)), Type: nvme.SGLDataBlockOffset})
	}
	r.send(r.bytes(pdu.TypeCapsuleCmd, 0, data, func(b []byte) { pdu.PutCommand(b, &cmd) }))
	return r.next
}

func (r *rawHost) h2c(d pdu.Data, flags uint8, data []byte) {
	r.t.Helper()
	r.send(r.bytes(pdu.TypeH2CData, flags, data, d.Put))
}

// receive takes a PDU with its data.
func (r *rawHost) receive() (pdu.Frame, []byte, []byte) {
	r.t.Helper()
	f, h, err := r.rx.NextPDU()
	require.NoError(r.t, err)
	header := append([]byte(nil), h...)
	data := make([]byte, f.Data)
	if f.Data > 0 {
		ok, err := r.rx.ReadData(&f, data)
		require.NoError(r.t, err)
		require.True(r.t, ok)
	}
	return f, header, data
}

// completion takes PDUs up to the completion of a command, and returns the data that came before.
func (r *rawHost) completion(cid uint16) (nvme.Completion, []byte) {
	r.t.Helper()
	return r.completionAmong(cid, nil)
}

// completionAmong passes over the completions of others.
func (r *rawHost) completionAmong(cid uint16, others map[uint16]bool) (nvme.Completion, []byte) {
	r.t.Helper()
	var data []byte
	for {
		f, h, d := r.receive()
		switch f.Type {
		case pdu.TypeC2HData:
			data = append(data, d...)
			continue
		case pdu.TypeCapsuleResp:
			cpl := pdu.CompletionOf(h)
			if others[cpl.CID()] {
				continue
			}
			require.Equal(r.t, cid, cpl.CID())
			return cpl, data
		}
		require.Failf(r.t, "unexpected PDU", "%s", f.Header)
	}
}

func (r *rawHost) do(cmd nvme.Command, data []byte) (nvme.Completion, []byte) {
	r.t.Helper()
	return r.completion(r.capsule(cmd, data))
}

// connect says Connect and returns its completion.
func (r *rawHost) connect(c fabrics.Connect, d fabrics.ConnectData) nvme.Completion {
	r.t.Helper()
	if d.SubsystemNQN == "" {
		d.SubsystemNQN = testNQN
	}
	if d.HostNQN == "" {
		d.HostNQN = hostNQN
	}
	cpl, _ := r.do(c.Command(), d.Marshal())
	return cpl
}

// admin begins an association and enables its controller. It returns CNTLID.
func (s *served) admin(req pdu.ICReq) (*rawHost, uint16) {
	s.t.Helper()
	r := s.dialRaw()
	r.initialise(req)
	cpl := r.connect(fabrics.Connect{Size: 31}, fabrics.ConnectData{ControllerID: fabrics.AnyController})
	require.True(s.t, cpl.Status().OK(), cpl.String())
	on, _ := r.do(fabrics.PropertySet(0x14, 4, 0x460061), nil)
	require.True(s.t, on.Status().OK())
	return r, uint16(cpl.DW0())
}

// ioQueue adds I/O queue 1 to an association.
func (s *served) ioQueue(req pdu.ICReq, cntlid uint16, c fabrics.Connect) *rawHost {
	s.t.Helper()
	r := s.dialRaw()
	r.initialise(req)
	if c.Size == 0 {
		c.Size = 7
	}
	c.Queue = 1
	cpl := r.connect(c, fabrics.ConnectData{ControllerID: cntlid})
	require.True(s.t, cpl.Status().OK(), cpl.String())
	return r
}

// terminated takes PDUs up to the termination request, after which the connection ends.
func (r *rawHost) terminated() *pdu.Error {
	r.t.Helper()
	for {
		f, h, _ := r.receive()
		if f.Type != pdu.TypeC2HTermReq {
			continue
		}
		_, _, err := r.rx.NextPDU()
		require.True(r.t, errors.Is(err, io.EOF), "%v", err)
		return pdu.ParseTerminate(h)
	}
}
