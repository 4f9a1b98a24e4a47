package faults

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/tracetest"
)

// wire is a connection that gives what it holds in pieces of some size, and takes what is written.
type wire struct {
	net.Conn // nil: what is not here is not called
	in       []byte
	piece    int
	out      bytes.Buffer
	closed   bool
}

func (w *wire) Read(p []byte) (int, error) {
	if w.closed {
		return 0, net.ErrClosed
	}
	if len(w.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), w.piece)], w.in)
	w.in = w.in[n:]
	return n, nil
}

func (w *wire) Write(p []byte) (int, error) {
	if w.closed {
		return 0, net.ErrClosed
	}
	return w.out.Write(p)
}

func (w *wire) Close() error                    { w.closed = true; return nil }
func (w *wire) RemoteAddr() net.Addr            { return new(net.TCPAddr) }
func (w *wire) SetReadDeadline(time.Time) error { return nil }

func injector(t testing.TB, script string) *Injector {
	t.Helper()
	s, err := Parse([]byte(script))
	require.NoError(t, err)
	in, err := New(s, Options{})
	require.NoError(t, err)
	return in
}

var both = pdu.Rules{HeaderDigest: true, DataDigest: true}

// unit makes a PDU with n bytes of data.
func unit(r pdu.Rules, t pdu.Type, n uint32) []byte {
	f := r.Layout(t, 0, n)
	b := make([]byte, f.Length)
	f.Seal(b)
	if n > 0 {
		data := b[f.Prefix():][:n]
		for i := range data {
			data[i] = byte(i)
		}
		if f.Digest {
			pdu.PutDigest(b[len(b)-pdu.DigestSize:], pdu.Digest(data))
		}
	}
	return b
}

// capsule makes a command capsule.
func capsule(r pdu.Rules, cmd nvme.Command, data []byte) []byte {
	f := r.Layout(pdu.TypeCapsuleCmd, 0, uint32(len(data)))
	b := make([]byte, f.Length)
	pdu.PutCommand(b, &cmd)
	f.Seal(b)
	copy(b[f.Prefix():], data)
	if f.Digest {
		pdu.PutDigest(b[len(b)-pdu.DigestSize:], pdu.Digest(data))
	}
	return b
}

// session is what a drive sends on a connection with both digests, and where its digests are.
func session() (b []byte, header, data []int) {
	for i, u := range [][]byte{
		(&pdu.ICResp{HeaderDigest: true, DataDigest: true, MaxH2CData: 4096}).Put(new([pdu.ICSize]byte)),
		unit(both, pdu.TypeCapsuleResp, 0), unit(both, pdu.TypeC2HData, 512), unit(both, pdu.TypeR2T, 0), unit(both,
			pdu.TypeC2HData, 5), unit(both, pdu.TypeCapsuleResp, 0),
	} {
		if i > 0 {
			header = append(header, len(b)+int(u[2]))
		}
		b = append(b, u...)
		if u[3] != 0 {
			data = append(data, len(b)-pdu.DigestSize)
		}
	}
	return b, header, data
}

// In any pieces in which bytes come, exactly those of the digests change, in both directions.
func TestFlipsWhereDigestsAre(t *testing.T) {
	b, header, data := session()
	require.Len(t, header, 5)
	require.Len(t, data, 2)
	want := bytes.Clone(b)
	want[header[1]] ^= 0xff
	want[header[2]] ^= 0xff
	want[data[1]] ^= 0xff
	script := func(direction string) *Injector {
		return injector(t,
			fmt.Sprintf("flip: [{digest: header, pdu: 2, times: 2, direction: %[1]s}, {digest: data, pdu: 2, direction: %[1]s}]",
				direction))
	}
	for piece := 1; piece <= len(b); piece++ {
		w := &wire{}
		c := newFaultyConn(script("sent"), w)
		for rest := b; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			n, err := c.Write(rest[:min(piece, len(rest))])
			require.NoError(t, err)
			require.Equal(t, min(piece, len(rest)), n)
		}
		require.Equal(t, want, w.out.Bytes(), "written in pieces of %d", piece)

		c = newFaultyConn(script("received"), &wire{in: b, piece: piece})
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, want, got, "read in pieces of %d", piece)
		require.Equal(t, Stats{HeaderDigests: 2, DataDigests: 1}, c.in.Stats())
	}
	assert.Equal(t, byte(0), b[header[1]]^want[header[1]]^0xff, "what the target wrote is its own")
}

// A connection ends behind its n-th PDU, or in the middle of it, and nothing passes any more.
func TestDropsWhereSaid(t *testing.T) {
	b, _, _ := session()
	third := pdu.ICSize + pdu.CapsuleRespSize + pdu.DigestSize
	size := len(unit(both, pdu.TypeC2HData, 512))
	for piece := 1; piece <= len(b); piece += 7 {
		for _, torn := range []bool{false, true} {
			end := third + size
			if torn {
				end = third + size/2
			}
			w := &wire{}
			c := newFaultyConn(injector(t, fmt.Sprintf("drop: [{pdu: 3, torn: %v}]", torn)), w)
			_, err := c.Write(b)
			require.ErrorIs(t, err, ErrInjected)
			require.ErrorIs(t, err, net.ErrClosed)
			require.Equal(t, b[:end], w.out.Bytes())
			require.True(t, w.closed)
			_, err = c.Write(b)
			require.Error(t, err)

			w = &wire{in: b, piece: piece}
			c = newFaultyConn(injector(t, fmt.Sprintf("drop: [{pdu: 3, direction: received, torn: %v}]", torn)), w)
			got, err := io.ReadAll(c)
			require.ErrorIs(t, err, ErrInjected)
			require.Equal(t, b[:end], got)
			require.True(t, w.closed)
		}
	}
}

// Bytes that are not NVMe/TCP pass unchanged.
func TestStrangersPass(t *testing.T) {
	for _, s := range []string{"GET / HTTP/1.1\r\n\r\n",
		"\x04\x03\x48\x4c\x08\x00\x00\x00 a length with nothing behind it", "short", "\x00\x00\xff\x00\x20\x00\x00\x00 a " +
			"header longer than all of it"} {
		in := injector(t,
			"flip: [{digest: header, times: always, direction: received}, {digest: data, times: always}]\ndelay: [{by: 1h}]")
		w := &wire{in: []byte(s), piece: 3}
		c := newFaultyConn(in, w)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, s, string(got))
		_, err = c.Write([]byte(s))
		require.NoError(t, err)
		require.Equal(t, s, w.out.String())
	}
}

// commands is a host's side of a connection of queue 3: Connect, a Write with data in its capsule, a Read, a Flush.
func commands() [][]byte {
	connect := fabrics.Connect{Queue: 3, Size: 31}
	data := (&fabrics.ConnectData{}).Marshal()
	us := [][]byte{(&pdu.ICReq{}).Put(new([pdu.ICSize]byte))}
	var r pdu.Rules
	for i, c := range []struct {
		cmd  nvme.Command
		data []byte
	}{{connect.Command(), data}, {nvme.Write(1, 0, 1, 512, false), make([]byte, 512)}, {nvme.Read(1, 0, 1, 512),
		nil}, {nvme.Flush(1), nil}} {
		c.cmd.SetCID(uint16(i))
		us = append(us, capsule(r, c.cmd, c.data))
	}
	return us
}

// A command that is kept comes whole, between two others, when its time has come; the other side's silence does not
// hold it up.
func TestKeptCommandComesLater(t *testing.T) {
	us := commands()
	for name, c := range map[string]struct {
		script string
		want   []int
	}{
		"one":                   {"delay: [{by: 200ms, opcode: write}]", []int{0, 1, 3, 4, 2}},
		"by its queue":          {"delay: [{by: 200ms, queue: 3, after: 1, times: 2}]", []int{0, 1, 4, 2, 3}},
		"of another queue":      {"delay: [{by: 200ms, queue: 2}, {by: 1h, queue: admin}]", []int{0, 1, 2, 3, 4}},
		"in their time's order": {"delay: [{by: 1s, opcode: write}, {by: 200ms, opcode: 2}]", []int{0, 1, 4, 3, 2}},
		"all":                   {"delay: [{by: 200ms, queue: io}]", []int{0, 1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent, want []byte
			for i, u := range us {
				sent = append(sent, u...)
				want = append(want, us[c.want[i]]...)
			}
			host, drive := net.Pipe()
			defer host.Close()
			conn := newFaultyConn(injector(t, c.script), drive)
			defer conn.Close()
			go host.Write(sent) // and then it says nothing more
			got := make([]byte, len(want))
			_, err := io.ReadFull(conn, got)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Zero(t, conn.keeping)
		})
	}
}

// The target's own deadlines hold while commands are kept.
func TestDeadlineWhileKept(t *testing.T) {
	us := commands()
	host, drive := net.Pipe()
	defer host.Close()
	c := newFaultyConn(injector(t, "delay: [{by: 1h, opcode: read}]"), drive)
	defer c.Close()
	go host.Write(bytes.Join(us[:4], nil))
	_, err := io.ReadFull(c, make([]byte, len(us[0])+len(us[1])+len(us[2])))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.EqualValues(t, 1, c.in.Stats().Delays)
	require.NoError(t, c.SetDeadline(time.Time{}))
	go host.Write(us[4])
	got := make([]byte, len(us[4]))
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, us[4], got)
	require.ErrorIs(t, c.CloseWrite(), errors.ErrUnsupported, "a pipe cannot")
}

// A connection keeps a limited number of bytes, and data that is too large for a command is not kept.
func TestKeepsWithinLimits(t *testing.T) {
	var r pdu.Rules
	cmd := nvme.Write(1, 0, 16, 512, false)
	one := capsule(r, cmd, make([]byte, 8192))
	n := maxKeeping/len(one) + 10
	w := &wire{in: bytes.Repeat(one, n), piece: 1 << 16}
	c := newFaultyConn(injector(t, "delay: [{by: 1h}]"), w)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Len(t, got, 10*len(one)+(n-10-maxKeeping/len(one))*len(one))
	require.LessOrEqual(t, c.keeping, maxKeeping)

	large := capsule(r, cmd, make([]byte, maxKept))
	c = newFaultyConn(injector(t, "delay: [{by: 1h}]"), &wire{in: large, piece: 100})
	got, err = io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, large, got)
}

// The command with which a drive goes away does not reach it.
func TestAwayBeforeTheCommand(t *testing.T) {
	us := commands()
	in := injector(t, "away: [{for: 1h, command: 3}]")
	w := &wire{in: bytes.Join(us, nil), piece: 50}
	c := in.wrapConnection(w)
	got, err := io.ReadAll(c)
	require.ErrorIs(t, err, ErrInjected)
	require.Equal(t, bytes.Join(us[:3], nil), got)
	require.True(t, w.closed)
	require.Nil(t, in.wrapConnection(&wire{}), "it is away")
}

// For any bytes of a host, in any pieces: nothing is added, and without drops, delays and absences nothing is lost;
// the cut into pieces makes no difference.
func FuzzReceived(f *testing.F) {
	b, _, _ := session()
	f.Add(b, uint16(1))
	f.Add(bytes.Join(commands(), nil), uint16(13))
	f.Add([]byte("\x04\x03\x48\x4c\xff\xff\xff\xff"), uint16(3))
	f.Add(binary.LittleEndian.AppendUint32([]byte{4, 3, 72, 76}, 1<<31), uint16(9))
	traces, err := tracetest.Golden()
	require.NoError(f, err)
	for _, pdus := range traces {
		var stream []byte
		for _, p := range pdus {
			if p.Conn == 0 {
				stream = append(stream, p.Bytes...)
			}
		}
		f.Add(stream, uint16(100))
	}
	const flips = "flip: [{digest: header, pdu: 2, times: 3, direction: received}, {digest: data, times: always, " +
		"direction: received}]"
	f.Fuzz(func(t *testing.T, b []byte, piece uint16) {
		var first []byte
		for _, p := range []int{1 << 16, int(piece) + 1} {
			got, err := io.ReadAll(newFaultyConn(injector(t, flips), &wire{in: b, piece: p}))
			require.NoError(t, err)
			require.Len(t, got, len(b))
			if first == nil {
				first = got
			}
			require.Equal(t, first, got)
		}
		everything := injector(t,
			flips+"\ndrop: [{pdu: 5, direction: received, torn: true}]\ndelay: [{by: 1h, after: 1}]\naway: [{for: 1h, "+
				"command: 4}]")
		got, _ := io.ReadAll(newFaultyConn(everything, &wire{in: b, piece: int(piece) + 1}))
		require.LessOrEqual(t, len(got), len(b))
	})
}

// A command that is to be kept and in the middle of which the connection drops comes as far as it came.
func TestKeptCommandOfADroppedConnection(t *testing.T) {
	us := commands()
	w := &wire{in: bytes.Join(us, nil), piece: 50}
	const script = "delay: [{by: 1h, opcode: write}]\ndrop: [{pdu: 3, direction: received, torn: true}]"
	c := newFaultyConn(injector(t, script), w)
	got, err := io.ReadAll(c)
	require.ErrorIs(t, err, ErrInjected)
	require.Equal(t, bytes.Join([][]byte{us[0], us[1], us[2][:len(us[2])/2]}, nil), got)

	c = newFaultyConn(injector(t, "delay: [{by: 1h, opcode: write}]"),
		&wire{in: bytes.Join(us[:3], nil)[:len(us[0])+len(us[1])+100], piece: 50})
	got, err = io.ReadAll(c)
	require.NoError(t, err, "nor is one that does not come to its end")
	require.Equal(t, bytes.Join(us[:2], nil), got)
}

// Rules of one kind count on their own, and an absence's begins again.
func TestCounts(t *testing.T) {
	in := injector(t, `
away: [{for: 3s, command: 4, times: 2}, {for: 5s, command: 12}]
delay: [{by: 1s, after: 2, times: 3}, {by: 2s, opcode: flush, times: always}, {by: 3s, opcode: identify}]`)
	cmd := nvme.Flush(1)
	var got []time.Duration
	for range 14 {
		keep, away := in.countCommand(1, &cmd)
		got = append(got, keep-away)
	}
	s := time.Second
	require.Equal(t, []time.Duration{2 * s, 2 * s, 2 * s, -3 * s, 2 * s, 2 * s, 2 * s, -3 * s, 2 * s, 2 * s, 2 * s, -5 * s,
		2 * s, 2 * s}, got)
	require.EqualValues(t, 11, in.Stats().Delays)
	require.EqualValues(t, 3, in.delay[0].done)

	slm := cs.MemoryRead(0, 512)
	in = injector(t, "delay: [{by: 1s, opcode: read}]")
	keep, _ := in.countCommand(1, &slm)
	require.Zero(t, keep, "a read of memory has the opcode of a read of blocks")
	blocks := nvme.Read(1, 0, 1, 512)
	keep, _ = in.countCommand(0, &blocks)
	require.Zero(t, keep, "and on the admin queue it is Get Log Page")
	keep, _ = in.countCommand(2, &blocks)
	require.Equal(t, s, keep)
}
