package kerneltest

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/tracetest"
)

// recorder keeps what hosts send on the connections that a listener takes.
type recorder struct {
	mu    sync.Mutex
	file  *os.File // nil: nothing is kept
	conns int
}

// to has the connections that are made from now on recorded in a file; "": nowhere.
func (r *recorder) to(name string) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		err = r.file.Close()
	}
	r.file, r.conns = nil, 0
	if err == nil && name != "" {
		r.file, err = os.Create(name)
	}
	return err
}

func (r *recorder) add(p tracetest.PDU) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		_, _ = r.file.Write(p.Append(nil)) // a trace that is not whole does not pass its test
	}
}

type recordingListener struct {
	net.Listener
	r *recorder
}

func (l recordingListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nc, err
	}
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if l.r.file == nil {
		return nc, nil
	}
	l.r.conns++
	return &recordedConn{Conn: nc, r: l.r, id: l.r.conns - 1}, nil
}

// recordedConn cuts what it reads into PDUs.
type recordedConn struct {
	net.Conn
	r   *recorder
	id  int
	buf []byte
}

func (c *recordedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.buf = append(c.buf, b[:n]...)
	for len(c.buf) >= pdu.CommonSize {
		length := int(binary.LittleEndian.Uint32(c.buf[4:]))
		if length < pdu.CommonSize || length > tracetest.MaxPDU || len(c.buf) < length {
			break
		}
		bytes := append([]byte(nil), c.buf[:length]...)
		c.r.add(tracetest.PDU{Conn: c.id, Bytes: bytes, What: what(bytes)})
		c.buf = c.buf[length:]
	}
	return n, err
}

// what says what a PDU is, for people.
func what(b []byte) string {
	kind := pdu.Type(b[0])
	if kind != pdu.TypeCapsuleCmd || len(b) < pdu.CapsuleCmdSize {
		return kind.String()
	}
	cmd := nvme.Command(b[pdu.CommonSize:pdu.CapsuleCmdSize])
	if cmd.Opcode() != fabrics.Opcode {
		return cmd.String()
	}
	switch offset, size, value := fabrics.ParseProperty(&cmd); fabrics.Type(&cmd) {
	case fabrics.TypePropertyGet:
		return fmt.Sprintf("Property Get %02xh of %d bytes", offset, size)
	case fabrics.TypePropertySet:
		return fmt.Sprintf("Property Set %02xh to %#x", offset, value)
	case fabrics.TypeConnect:
		return fmt.Sprintf("Connect queue %d", fabrics.ParseConnect(&cmd).Queue)
	case fabrics.TypeAuthSend:
		return "Authentication Send"
	case fabrics.TypeAuthReceive:
		return "Authentication Receive"
	case fabrics.TypeDisconnect:
		return "Disconnect"
	}
	return fmt.Sprintf("Fabrics command %02xh", fabrics.Type(&cmd))
}
