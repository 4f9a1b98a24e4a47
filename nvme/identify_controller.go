package nvme

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// IdentifyController is the Identify Controller data structure (CNS 01h): the fields that are used here, at the offsets
// of the base specification 2.0, figure 275.
type IdentifyController struct {
	VendorID, SubsystemVendorID uint16
	Serial                      string // at most 20 characters
	Model                       string // at most 40 characters
	Firmware                    string // at most 8 characters
	IEEE                        [3]byte
	MultiPath                   uint8 // CMIC; bit 1: more than one controller
	MDTS                        uint8 // most data of a command is 2^MDTS times 4 KiB
	ControllerID                uint16
	Version                     uint32
	AsyncEvents                 uint32 // OAES
	Attributes                  uint32 // CTRATT
	ControllerType              uint8  // 1 I/O
	AdminCommands               uint16 // OACS
	AbortLimit                  uint8  // ACL, 0's based
	AsyncEventLimit             uint8  // AERL, 0's based
	FirmwareUpdates             uint8  // FRMW
	LogAttributes               uint8  // LPA
	ErrorEntries                uint8  // ELPE, 0's based
	AdminVendorFormat           uint8  // AVSCC
	WarningTemperature          uint16 // WCTEMP, kelvin
	CriticalTemperature         uint16 // CCTEMP, kelvin
	TotalCapacity               uint64 // TNVMCAP, bytes
	KeepAliveGranularity        uint16 // KAS, units of 100 ms
	SQES, CQES                  uint8
	MaxCommands                 uint16 // MAXCMD
	Namespaces                  uint32 // NN
	NVMCommands                 uint16 // ONCS
	WriteCache                  uint8  // VWC
	VendorFormat                uint8  // ICSVSCC
	SGLs                        uint32 // SGLS
	SubsystemNQN                string // at most 223 bytes
	CommandCapsule              uint32 // IOCCSZ, units of 16 bytes
	ResponseCapsule             uint32 // IORCSZ, units of 16 bytes
	CapsuleOffset               uint16 // ICDOFF
	FabricsAttributes           uint8  // FCATT; bit 0 set: static controller model
	DataDescriptors             uint8  // MSDBD
}

// Bits of NVMCommands (ONCS).
const (
	ONCSCompare     = 1 << 0
	ONCSDataset     = 1 << 2
	ONCSWriteZeroes = 1 << 3
	ONCSSaveSelect  = 1 << 4
)

// Marshal writes the structure's 4096 bytes.
func (id *IdentifyController) Marshal() []byte {
	b := make([]byte, IdentifySize)
	le := binary.LittleEndian
	le.PutUint16(b[0:], id.VendorID)
	le.PutUint16(b[2:], id.SubsystemVendorID)
	padString(b[4:24], id.Serial)
	padString(b[24:64], id.Model)
	padString(b[64:72], id.Firmware)
	copy(b[73:76], id.IEEE[:])
	b[76], b[77] = id.MultiPath, id.MDTS
	le.PutUint16(b[78:], id.ControllerID)
	le.PutUint32(b[80:], id.Version)
	le.PutUint32(b[92:], id.AsyncEvents)
	le.PutUint32(b[96:], id.Attributes)
	b[111] = id.ControllerType
	le.PutUint16(b[256:], id.AdminCommands)
	b[258], b[259], b[260], b[261] = id.AbortLimit, id.AsyncEventLimit, id.FirmwareUpdates, id.LogAttributes
	b[262], b[264] = id.ErrorEntries, id.AdminVendorFormat
	le.PutUint16(b[266:], id.WarningTemperature)
	le.PutUint16(b[268:], id.CriticalTemperature)
	le.PutUint64(b[280:], id.TotalCapacity)
	le.PutUint16(b[320:], id.KeepAliveGranularity)
	b[512], b[513] = id.SQES, id.CQES
	le.PutUint16(b[514:], id.MaxCommands)
	le.PutUint32(b[516:], id.Namespaces)
	le.PutUint16(b[520:], id.NVMCommands)
	b[525], b[530] = id.WriteCache, id.VendorFormat
	le.PutUint32(b[536:], id.SGLs)
	copy(b[768:768+223], id.SubsystemNQN)
	le.PutUint32(b[1792:], id.CommandCapsule)
	le.PutUint32(b[1796:], id.ResponseCapsule)
	le.PutUint16(b[1800:], id.CapsuleOffset)
	b[1802], b[1803] = id.FabricsAttributes, id.DataDescriptors
	return b
}

// Unmarshal reads the structure from at least 4096 bytes.
func (id *IdentifyController) Unmarshal(b []byte) error {
	if len(b) < IdentifySize {
		return fmt.Errorf("identify controller: %d bytes where %d belong", len(b), IdentifySize)
	}
	le := binary.LittleEndian
	*id = IdentifyController{
		VendorID: le.Uint16(b[0:]), SubsystemVendorID: le.Uint16(b[2:]),
		Serial: trimString(b[4:24]), Model: trimString(b[24:64]), Firmware: trimString(b[64:72]),
		IEEE: [3]byte(b[73:76]), MultiPath: b[76], MDTS: b[77], ControllerID: le.Uint16(b[78:]),
		Version: le.Uint32(b[80:]), AsyncEvents: le.Uint32(b[92:]), Attributes: le.Uint32(b[96:]), ControllerType: b[111],
		AdminCommands: le.Uint16(b[256:]), AbortLimit: b[258], AsyncEventLimit: b[259], FirmwareUpdates: b[260],
		LogAttributes: b[261], ErrorEntries: b[262], AdminVendorFormat: b[264], WarningTemperature: le.Uint16(b[266:]),
		CriticalTemperature: le.Uint16(b[268:]), TotalCapacity: le.Uint64(b[280:]), KeepAliveGranularity: le.Uint16(b[320:]),
		SQES: b[512], CQES: b[513], MaxCommands: le.Uint16(b[514:]), Namespaces: le.Uint32(b[516:]),
		NVMCommands: le.Uint16(b[520:]), WriteCache: b[525], VendorFormat: b[530], SGLs: le.Uint32(b[536:]),
		SubsystemNQN: trimString(b[768 : 768+256]), CommandCapsule: le.Uint32(b[1792:]), ResponseCapsule: le.Uint32(b[1796:]),
		CapsuleOffset: le.Uint16(b[1800:]), FabricsAttributes: b[1802], DataDescriptors: b[1803],
	}
	return nil
}

// padString writes an ASCII string field: left justified, padded with spaces, bytes that are not printable replaced.
func padString(b []byte, s string) {
	for i := range b {
		b[i] = ' '
	}
	copy(b, s)
	for i, c := range b {
		if c < 0x20 || c > 0x7e {
			b[i] = '?'
		}
	}
}

func trimString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.TrimRight(s, " ")
}
