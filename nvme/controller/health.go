package controller

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

// Health holds the values of a drive's sensors.
type Health struct {
	Temperature    uint16 // kelvin
	AvailableSpare uint8  // percent
	SpareThreshold uint8  // percent
	PercentageUsed uint8
	Unreliable     bool // the drive has degraded: critical warning bit 2
}

// Thresholds in Identify Controller, in kelvin. A drive without a sensor reports 0, which readers take for not
// available.
const (
	warningTemperature  = 273 + 70
	criticalTemperature = 273 + 80
)

const errorEntries = 64

// health counts and remembers. The counters are atomic; mu guards the rest.
type health struct {
	now   func() time.Time
	start time.Time
	base  Counters

	sectorsRead, sectorsWritten, hostReads, hostWrites, mediaErrors atomic.Uint64

	mu        sync.Mutex
	sensors   Health
	running   int // I/O commands
	busySince time.Time
	busy      time.Duration
	errors    []nvme.ErrorEntry // oldest first, at most errorEntries
	count     uint64
}

func newHealth(base Counters, now func() time.Time) *health {
	h := &health{now: now, start: now(), base: base, count: base.Errors}
	h.sensors = Health{AvailableSpare: 100, SpareThreshold: 10}
	return h
}

func (h *health) setSensors(s Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sensors = s
}

func (h *health) currentSensors() Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sensors
}

func (h *health) countersNow() Counters {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.base
	c.SectorsRead += h.sectorsRead.Load()
	c.SectorsWritten += h.sectorsWritten.Load()
	c.HostReads += h.hostReads.Load()
	c.HostWrites += h.hostWrites.Load()
	c.MediaErrors += h.mediaErrors.Load()
	c.Errors = h.count
	c.Busy += h.busy
	if h.running > 0 {
		c.Busy += h.now().Sub(h.busySince)
	}
	c.PowerOn += h.now().Sub(h.start)
	return c
}

// enterCommand and leaveCommand bracket an I/O command: the controller is busy while one is outstanding.
func (h *health) enterCommand() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == 0 {
		h.busySince = h.now()
	}
	h.running++
}

func (h *health) leaveCommand() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running--; h.running == 0 {
		h.busy += h.now().Sub(h.busySince)
	}
}

// recordError makes an entry in the error information log.
func (h *health) recordError(e nvme.ErrorEntry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	e.Count = h.count
	if len(h.errors) == errorEntries {
		copy(h.errors, h.errors[1:])
		h.errors = h.errors[:errorEntries-1]
	}
	h.errors = append(h.errors, e)
}

// errorLog is log page 01h: the latest entry first.
func (h *health) errorLog() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := make([]byte, 0, errorEntries*nvme.ErrorEntrySize)
	for i := len(h.errors) - 1; i >= 0; i-- {
		b = h.errors[i].AppendTo(b)
	}
	return b[:errorEntries*nvme.ErrorEntrySize]
}

// criticalWarning returns the critical warning byte for the sensors' values; a temperature of at most under or at least
// over sets its bit.
func (s Health) criticalWarning(under, over uint16) uint8 {
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

// smartLog is log page 02h.
func (h *health) smartLog(warning uint8) []byte {
	c, s := h.countersNow(), h.currentSensors()
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

// moves counts what commands moved between flash, device DRAM and the host.
type moves struct {
	flashToDRAM, dramToHost, hostToDRAM, flashLent movement

	copied [cs.MaxRegions]atomic.Uint64 // by region: bytes of flash that Memory Copy commands moved or lent
}

type movement struct{ bytes, commands, nanoseconds atomic.Uint64 }

func (m *movement) addMove(bytes uint64, took time.Duration) {
	m.bytes.Add(bytes)
	m.commands.Add(1)
	m.nanoseconds.Add(uint64(max(took, 0)))
}

func (m *movement) readCounters() cs.Movement {
	return cs.Movement{Bytes: m.bytes.Load(), Commands: m.commands.Load(), Nanoseconds: m.nanoseconds.Load()}
}
