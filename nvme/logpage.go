package nvme

import (
	"encoding/binary"
	"fmt"
)

// Sizes of log pages and their entries in bytes.
const (
	SupportedLogSize = 1024
	ErrorEntrySize   = 64
	SMARTLogSize     = 512
	FirmwareLogSize  = 512
	ChangedLogSize   = 4096
	EffectsLogSize   = 4096
)

// SMARTLog is log page 02h. Counters of 128 bits are held in 64, and saturate on reading.
type SMARTLog struct {
	CriticalWarning    uint8
	Temperature        uint16 // kelvin
	AvailableSpare     uint8  // percent
	SpareThreshold     uint8  // percent
	PercentageUsed     uint8
	DataUnitsRead      uint64 // thousands of 512 bytes, rounded up
	DataUnitsWritten   uint64
	HostReads          uint64 // commands
	HostWrites         uint64
	BusyMinutes        uint64
	PowerCycles        uint64
	PowerOnHours       uint64
	UnsafeShutdowns    uint64
	MediaErrors        uint64
	ErrorEntries       uint64
	WarningMinutes     uint32
	CriticalMinutes    uint32
	TemperatureSensors [8]uint16 // kelvin, 0 where there is none
}

// Bits of SMARTLog.CriticalWarning.
const (
	WarningSpare       = 1 << 0
	WarningTemperature = 1 << 1
	WarningReliability = 1 << 2
	WarningReadOnly    = 1 << 3
)

// counters are the 128-bit fields in the order and at the distance in which they lie from byte 32 on.
func (l *SMARTLog) counters() [10]*uint64 {
	return [10]*uint64{&l.DataUnitsRead, &l.DataUnitsWritten, &l.HostReads, &l.HostWrites, &l.BusyMinutes, &l.PowerCycles,
		&l.PowerOnHours, &l.UnsafeShutdowns, &l.MediaErrors, &l.ErrorEntries}
}

// Marshal writes the page's 512 bytes.
func (l *SMARTLog) Marshal() []byte {
	b := make([]byte, SMARTLogSize)
	le := binary.LittleEndian
	b[0] = l.CriticalWarning
	le.PutUint16(b[1:], l.Temperature)
	b[3], b[4], b[5] = l.AvailableSpare, l.SpareThreshold, l.PercentageUsed
	for i, v := range l.counters() {
		le.PutUint64(b[32+16*i:], *v)
	}
	le.PutUint32(b[192:], l.WarningMinutes)
	le.PutUint32(b[196:], l.CriticalMinutes)
	for i, t := range l.TemperatureSensors {
		le.PutUint16(b[200+2*i:], t)
	}
	return b
}

// Unmarshal reads the page from at least 512 bytes.
func (l *SMARTLog) Unmarshal(b []byte) error {
	if len(b) < SMARTLogSize {
		return fmt.Errorf("SMART log: %d bytes where %d belong", len(b), SMARTLogSize)
	}
	le := binary.LittleEndian
	*l = SMARTLog{
		CriticalWarning: b[0], Temperature: le.Uint16(b[1:]), AvailableSpare: b[3], SpareThreshold: b[4],
		PercentageUsed: b[5],
		WarningMinutes: le.Uint32(b[192:]), CriticalMinutes: le.Uint32(b[196:]),
	}
	for i, v := range l.counters() {
		*v = le.Uint64(b[32+16*i:])
		if le.Uint64(b[40+16*i:]) != 0 {
			*v = ^uint64(0)
		}
	}
	for i := range l.TemperatureSensors {
		l.TemperatureSensors[i] = le.Uint16(b[200+2*i:])
	}
	return nil
}

// ErrorEntry is one entry of log page 01h. Count is 1 for the first error of a drive's life; an entry with count 0 is
// empty.
type ErrorEntry struct {
	Count     uint64
	SQID, CID uint16
	Status    Status
	Location  uint16 // byte and bit of the command that is to blame, FFFFh if none
	LBA       uint64
	NSID      uint32
	VendorLog uint8 // log page with details, 0 if there is none
	CSI       uint8
	Opcode    uint8
}

// AppendTo appends the entry's 64 bytes.
func (e *ErrorEntry) AppendTo(b []byte) []byte {
	var x [ErrorEntrySize]byte
	le := binary.LittleEndian
	le.PutUint64(x[0:], e.Count)
	le.PutUint16(x[8:], e.SQID)
	le.PutUint16(x[10:], e.CID)
	le.PutUint16(x[12:], uint16(e.Status)<<1)
	le.PutUint16(x[14:], e.Location)
	le.PutUint64(x[16:], e.LBA)
	le.PutUint32(x[24:], e.NSID)
	x[28], x[30], x[31] = e.VendorLog, e.CSI, e.Opcode
	return append(b, x[:]...)
}

// UnmarshalErrors reads the entries of log page 01h that are in use, latest first.
func UnmarshalErrors(b []byte) []ErrorEntry {
	var out []ErrorEntry
	le := binary.LittleEndian
	for ; len(b) >= ErrorEntrySize && le.Uint64(b) != 0; b = b[ErrorEntrySize:] {
		out = append(out, ErrorEntry{
			Count: le.Uint64(b), SQID: le.Uint16(b[8:]), CID: le.Uint16(b[10:]), Status: Status(le.Uint16(b[12:]) >> 1),
			Location: le.Uint16(b[14:]), LBA: le.Uint64(b[16:]), NSID: le.Uint32(b[24:]), VendorLog: b[28], CSI: b[30],
			Opcode: b[31],
		})
	}
	return out
}

// FirmwareLog is log page 03h.
type FirmwareLog struct {
	Active    uint8 // slot that runs, 1 to 7
	Next      uint8 // slot that will run after the next reset, 0 if that is not known to differ
	Revisions [7]string
}

// Marshal writes the page's 512 bytes.
func (l *FirmwareLog) Marshal() []byte {
	b := make([]byte, FirmwareLogSize)
	b[0] = l.Active&7 | l.Next&7<<4
	for i, r := range l.Revisions {
		if r != "" {
			padString(b[8+8*i:16+8*i], r)
		}
	}
	return b
}

// Unmarshal reads the page from at least 512 bytes.
func (l *FirmwareLog) Unmarshal(b []byte) error {
	if len(b) < FirmwareLogSize {
		return fmt.Errorf("firmware slot log: %d bytes where %d belong", len(b), FirmwareLogSize)
	}
	l.Active, l.Next = b[0]&7, b[0]>>4&7
	for i := range l.Revisions {
		l.Revisions[i] = trimString(b[8+8*i : 16+8*i])
	}
	return nil
}

// Effects of a command in log page 05h. Bits beyond these make Linux freeze queues or warn when the command is sent
// from user space.
const (
	EffectSupported    = 1 << 0 // CSUPP
	EffectBlocksChange = 1 << 1 // LBCC
)

// EffectsLog is log page 05h for one command set.
type EffectsLog struct{ Admin, IO [256]uint32 }

// Marshal writes the page's 4096 bytes.
func (l *EffectsLog) Marshal() []byte {
	b := make([]byte, EffectsLogSize)
	for i := range 256 {
		binary.LittleEndian.PutUint32(b[4*i:], l.Admin[i])
		binary.LittleEndian.PutUint32(b[1024+4*i:], l.IO[i])
	}
	return b
}

// MarshalSupportedLogs writes log page 00h for the given log page identifiers.
func MarshalSupportedLogs(lids []uint8) []byte {
	b := make([]byte, SupportedLogSize)
	for _, lid := range lids {
		binary.LittleEndian.PutUint32(b[4*int(lid):], 1)
	}
	return b
}
