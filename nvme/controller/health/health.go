// Package health counts what a drive does and what it moves, remembers its errors, and makes the log pages of these:
// 01h, the error information, and 02h, SMART. A Monitor is safe for concurrent use.
package health

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// Counters are a drive's counts over its life. A drive that persists keeps them, and sets them in Options when it
// starts.
type Counters struct {
	// SectorsRead are of 512 bytes, and read by Read, Compare and copies into subsystem local memory.
	SectorsRead     uint64        `json:"sectors_read"`
	SectorsWritten  uint64        `json:"sectors_written"` // Sectors have 512 bytes.
	HostReads       uint64        `json:"host_reads"`      // Read and Compare commands
	HostWrites      uint64        `json:"host_writes"`     // Write commands
	Busy            time.Duration `json:"busy_nanoseconds"`
	PowerCycles     uint64        `json:"power_cycles"`
	PowerOn         time.Duration `json:"power_on_nanoseconds"`
	UnsafeShutdowns uint64        `json:"unsafe_shutdowns"`
	MediaErrors     uint64        `json:"media_errors"`
	Errors          uint64        `json:"errors"` // entries ever made in the error information log
}

// Sensors holds the values of a drive's sensors.
type Sensors struct {
	Temperature    uint16 // kelvin
	AvailableSpare uint8  // percent
	SpareThreshold uint8  // percent
	PercentageUsed uint8
	Unreliable     bool // the drive has degraded: critical warning bit 2
}

// Thresholds in Identify Controller, in kelvin. A drive without a sensor reports 0, which readers take for not
// available.
const (
	WarningTemperature  = 273 + 70
	CriticalTemperature = 273 + 80
)

// ErrorEntries is how many entries the error information log has.
const ErrorEntries = 64

// Monitor counts and remembers.
type Monitor struct {
	now   func() time.Time
	start time.Time
	base  Counters

	// These counts are added to those before, see Counters.
	SectorsRead, SectorsWritten, HostReads, HostWrites, MediaErrors atomic.Uint64

	Moves Moves

	mu        sync.Mutex // guards what follows
	sensors   Sensors
	running   int // I/O commands
	busySince time.Time
	busy      time.Duration
	errors    []nvme.ErrorEntry // oldest first, at most ErrorEntries
	count     uint64
}

// New returns a monitor that goes on from the counters of a drive's life so far, with sensors that warn of nothing.
func New(base Counters, now func() time.Time) *Monitor {
	m := &Monitor{now: now, start: now(), base: base, count: base.Errors}
	m.sensors = Sensors{AvailableSpare: 100, SpareThreshold: 10}
	return m
}

// SetSensors sets what the sensors measure now.
func (m *Monitor) SetSensors(s Sensors) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sensors = s
}

// Sensors returns what the sensors measure.
func (m *Monitor) Sensors() Sensors {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sensors
}

// Counters returns the counts of the drive's life until now.
func (m *Monitor) Counters() Counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.base
	c.SectorsRead += m.SectorsRead.Load()
	c.SectorsWritten += m.SectorsWritten.Load()
	c.HostReads += m.HostReads.Load()
	c.HostWrites += m.HostWrites.Load()
	c.MediaErrors += m.MediaErrors.Load()
	c.Errors = m.count
	c.Busy += m.busy
	if m.running > 0 {
		c.Busy += m.now().Sub(m.busySince)
	}
	c.PowerOn += m.now().Sub(m.start)
	return c
}

// EnterCommand and LeaveCommand bracket an I/O command: the controller is busy while one is outstanding.
func (m *Monitor) EnterCommand() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == 0 {
		m.busySince = m.now()
	}
	m.running++
}

// LeaveCommand ends an I/O command.
func (m *Monitor) LeaveCommand() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running--; m.running == 0 {
		m.busy += m.now().Sub(m.busySince)
	}
}

// RecordError makes an entry in the error information log.
func (m *Monitor) RecordError(e nvme.ErrorEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count++
	e.Count = m.count
	if len(m.errors) == ErrorEntries {
		copy(m.errors, m.errors[1:])
		m.errors = m.errors[:ErrorEntries-1]
	}
	m.errors = append(m.errors, e)
}

// ErrorLog is log page 01h: the latest entry first.
func (m *Monitor) ErrorLog() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := make([]byte, 0, ErrorEntries*nvme.ErrorEntrySize)
	for i := len(m.errors) - 1; i >= 0; i-- {
		b = m.errors[i].AppendTo(b)
	}
	return b[:ErrorEntries*nvme.ErrorEntrySize]
}

// CriticalWarning returns the critical warning byte for the sensors' values; a temperature of at most under or at least
// over sets its bit.
func (s Sensors) CriticalWarning(under, over uint16) uint8 {
	var w uint8
	if s.AvailableSpare < s.SpareThreshold {
		w |= nvme.WarningSpare
	}
	if s.Temperature != 0 && (s.Temperature >= over || s.Temperature <= under) { // 0: there is no sensor
		w |= nvme.WarningTemperature
	}
	if s.Unreliable {
		w |= nvme.WarningReliability
	}
	return w
}

// SMARTLog is log page 02h.
func (m *Monitor) SMARTLog(warning uint8) []byte {
	c, s := m.Counters(), m.Sensors()
	l := nvme.SMARTLog{
		CriticalWarning: warning, Temperature: s.Temperature, AvailableSpare: s.AvailableSpare,
		SpareThreshold: s.SpareThreshold, PercentageUsed: s.PercentageUsed,
		DataUnitsRead: dataUnits(c.SectorsRead), DataUnitsWritten: dataUnits(c.SectorsWritten),
		HostReads: c.HostReads, HostWrites: c.HostWrites, BusyMinutes: uint64(c.Busy / time.Minute),
		PowerCycles: c.PowerCycles, PowerOnHours: uint64(c.PowerOn / time.Hour), UnsafeShutdowns: c.UnsafeShutdowns,
		MediaErrors: c.MediaErrors, ErrorEntries: c.Errors,
	}
	return l.Marshal()
}

// dataUnits are thousands of sectors, rounded up.
func dataUnits(sectors uint64) uint64 {
	units := sectors / 1000
	if sectors%1000 != 0 {
		units++
	}
	return units
}

// Moves counts what commands moved between flash, device DRAM and the host.
type Moves struct {
	FlashToDRAM, DRAMToHost, HostToDRAM, FlashLent Movement

	Copied [cs.MaxRegions]atomic.Uint64 // by region: bytes of flash that Memory Copy commands moved or lent
}

// Movement counts moves in one direction.
type Movement struct{ bytes, commands, nanoseconds atomic.Uint64 }

// Add counts a move.
func (m *Movement) Add(bytes uint64, took time.Duration) {
	m.bytes.Add(bytes)
	m.commands.Add(1)
	m.nanoseconds.Add(uint64(max(took, 0)))
}

// AddBytes counts bytes of a move that was counted without them.
func (m *Movement) AddBytes(bytes uint64) { m.bytes.Add(bytes) }

// Counters returns the counts until now.
func (m *Movement) Counters() cs.Movement {
	return cs.Movement{Bytes: m.bytes.Load(), Commands: m.commands.Load(), Nanoseconds: m.nanoseconds.Load()}
}
