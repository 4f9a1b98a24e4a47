package fabrics

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/nvme"
)

// Opcode is the opcode of every Fabrics command; byte 4 of the entry is the command's type.
const Opcode = 0x7f

// Fabrics command types. The low bit reports whether data goes from host to controller.
const (
	TypePropertySet = 0x00
	TypeConnect     = 0x01
	TypePropertyGet = 0x04
	TypeAuthSend    = 0x05
	TypeAuthReceive = 0x06
	TypeDisconnect  = 0x08
)

// DiscoveryNQN is the well-known name of the discovery subsystem.
const DiscoveryNQN = "nqn.2014-08.org.nvmexpress.discovery"

// MaxNQN is the most bytes of a qualified name.
const MaxNQN = 223

// Statuses of Connect.
const (
	IncompatibleFormat nvme.Status = 0x180
	ControllerBusy     nvme.Status = 0x181
	InvalidParameters  nvme.Status = 0x182 // dword 0 says which
	RestartDiscovery   nvme.Status = 0x183
	InvalidHost        nvme.Status = 0x184 // the host may not connect
	InvalidQueueType   nvme.Status = 0x185
	AuthRequired       nvme.Status = 0x191
)

var connectStatuses = map[nvme.Status]string{
	IncompatibleFormat: "the connect format is not supported", ControllerBusy: "the controller is busy, try again later",
	InvalidParameters: "a connect parameter is invalid", RestartDiscovery: "start again with discovery",
	InvalidHost:      "the drive does not serve this host: add its NQN to the drive's allow-list",
	InvalidQueueType: "the queue type is not supported", AuthRequired: "the drive wants the host to authenticate",
}

// Describe says what a Connect that failed with a status means; other statuses are described as themselves.
func Describe(s nvme.Status, dw0 uint32) string {
	d, ok := connectStatuses[s.Code()]
	if !ok {
		return s.String()
	}
	if s.Code() == InvalidParameters {
		if name, ok := parameterNames[dw0&0x1ffff]; ok {
			return "the drive does not know the " + name
		}
		where := "command"
		if dw0>>16&1 != 0 {
			where = "data"
		}
		return fmt.Sprintf("%s: byte %d of its %s", d, dw0&0xffff, where)
	}
	return d
}

// inData marks in dword 0 that an invalid parameter lies in the data of Connect.
const inData = 1 << 16

// Where an invalid parameter of Connect lies, as dword 0 says it.
const (
	ParameterQueueID      = 42
	ParameterQueueSize    = 44
	ParameterControllerID = inData | 16
	ParameterSubsystemNQN = inData | 256
	ParameterHostNQN      = inData | 512
	ParameterHostID       = inData
)

var parameterNames = map[uint32]string{ParameterSubsystemNQN: "subsystem NQN",
	ParameterControllerID: "controller identifier"}

// Type is the Fabrics command type of an entry.
func Type(c *nvme.Command) uint8 { return c[4] }

// Direction returns the direction of a command's data, of Fabrics or not.
func Direction(c *nvme.Command) nvme.Direction {
	switch {
	case c.DataLength() == 0:
		return nvme.NoData
	case c.Opcode() == Opcode:
		return nvme.Direction(Type(c) & 3)
	}
	return c.Direction()
}

func command(fctype uint8, data uint32) nvme.Command {
	c := nvme.New(Opcode, 0)
	c[4] = fctype
	c.SetData(data)
	return c
}

var le = binary.LittleEndian

// DisableFlowControl is the bit of Connect.Attributes that turns off submission queue flow control.
const DisableFlowControl = 1 << 2

// Connect is a Connect command's entry.
type Connect struct {
	Format     uint16 // RECFMT: 0
	Queue      uint16 // 0: the admin queue
	Size       uint16 // SQSIZE, 0's based
	Attributes uint8  // CATTR
	KeepAlive  uint32 // KATO in milliseconds, admin queue only; 0: none
}

// Command builds the entry; its data are ConnectDataSize bytes.
func (c Connect) Command() nvme.Command {
	e := command(TypeConnect, ConnectDataSize)
	le.PutUint16(e[40:], c.Format)
	le.PutUint16(e[42:], c.Queue)
	le.PutUint16(e[44:], c.Size)
	e[46] = c.Attributes
	le.PutUint32(e[48:], c.KeepAlive)
	return e
}

// ParseConnect reads the entry.
func ParseConnect(e *nvme.Command) Connect {
	return Connect{le.Uint16(e[40:]), le.Uint16(e[42:]), le.Uint16(e[44:]), e[46], le.Uint32(e[48:])}
}

// ConnectDataSize is the size in bytes of the data of Connect.
const ConnectDataSize = 1024

// AnyController is the controller identifier that asks for a new controller.
const AnyController = 0xffff

// ConnectData is the data of Connect.
type ConnectData struct {
	HostID       [16]byte
	ControllerID uint16
	SubsystemNQN string
	HostNQN      string
}

// Marshal writes the structure's 1024 bytes.
func (d *ConnectData) Marshal() []byte {
	b := make([]byte, ConnectDataSize)
	copy(b, d.HostID[:])
	le.PutUint16(b[16:], d.ControllerID)
	copy(b[256:256+MaxNQN], d.SubsystemNQN)
	copy(b[512:512+MaxNQN], d.HostNQN)
	return b
}

// Unmarshal reads the structure from 1024 bytes. A name that is not ended by a zero byte within its 256 reads as empty.
func (d *ConnectData) Unmarshal(b []byte) error {
	if len(b) != ConnectDataSize {
		return fmt.Errorf("connect data: %d bytes where %d belong", len(b), ConnectDataSize)
	}
	*d = ConnectData{[16]byte(b), le.Uint16(b[16:]), nqn(b[256:512]), nqn(b[512:768])}
	return nil
}

// nqn reads a name. A name that CheckNQN refuses is returned as it is, so that an error can report it.
func nqn(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return ""
}

// PropertyGet builds a Property Get of 4 or 8 bytes.
func PropertyGet(offset uint32, size int) nvme.Command {
	e := command(TypePropertyGet, 0)
	e[40] = propertySize(size)
	le.PutUint32(e[44:], offset)
	return e
}

// PropertySet builds a Property Set of 4 or 8 bytes.
func PropertySet(offset uint32, size int, v uint64) nvme.Command {
	e := command(TypePropertySet, 0)
	e[40] = propertySize(size)
	le.PutUint32(e[44:], offset)
	le.PutUint64(e[48:], v)
	return e
}

func propertySize(size int) uint8 {
	if size == 8 {
		return 1
	}
	return 0
}

// ParseProperty reads the entry of a Property Get or Set. Size is 0 where the entry asks for an undefined size.
func ParseProperty(e *nvme.Command) (offset uint32, size int, value uint64) {
	switch e[40] & 7 {
	case 0:
		size = 4
	case 1:
		size = 8
	}
	return le.Uint32(e[44:]), size, le.Uint64(e[48:])
}
