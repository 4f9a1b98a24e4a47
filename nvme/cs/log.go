package cs

import (
	"fmt"
	"math"
	"strings"
)

// Log is vendor log page C0h: what the drive has counted since it was powered on. The counters are those of SNIA's
// computational storage architecture. Times are in nanoseconds.
//
// On the wire, little endian: a header of LogHeaderSize bytes {version u16 = 1, units u16, programs u16, threads u16,
// uptime u64, rows u64, executions u64, backend 32 bytes of text padded with zeros; from byte 64 on three movements of
// {bytes u64, commands u64, nanoseconds u64}: flash to DRAM, DRAM to host, host to DRAM; SLM bytes u64, of them
// reserved u64; a fourth movement, flash lent, and the share of ordinary commands u8, which drives of before have as
// zeros; reserved up to 256}, the units and then the programs, each of LogEntrySize bytes: {name or identity 32 bytes,
// runs u64, total u64, shortest u64, longest u64, average u64, rows u64, rows a second f64, version u32, reserved}.
type Log struct {
	Backend     string // at most 32 bytes: functional, rtl-sim or bitstream
	Threads     uint16 // engine threads
	Uptime      uint64
	Rows        uint64 // rows that executions put out
	Executions  uint64
	FlashToDRAM Movement // bytes that were copied
	FlashLent   Movement // bytes of copies that were put off: executions read them on the flash
	DRAMToHost  Movement
	HostToDRAM  Movement
	SLMBytes    uint64
	SLMReserved uint64
	HostIOShare uint8            // percent of the time for ordinary commands while regions compute; 0: no limit
	Units       []UnitCounter    // at most MaxLogEntries
	Programs    []ProgramCounter // at most MaxLogEntries
}

// Movement counts the bytes that commands moved one way, and the time they took.
type Movement struct{ Bytes, Commands, Nanoseconds uint64 }

// Timing counts runs and their times in nanoseconds.
type Timing struct{ Runs, Total, Shortest, Longest uint64 }

// Add counts one run of ns nanoseconds.
func (t *Timing) Add(ns uint64) {
	if t.Runs == 0 || ns < t.Shortest {
		t.Shortest = ns
	}
	t.Longest = max(t.Longest, ns)
	t.Runs++
	t.Total += ns
}

// Average is the mean time of a run in nanoseconds, 0 before the first.
func (t *Timing) Average() uint64 {
	if t.Runs == 0 {
		return 0
	}
	return t.Total / t.Runs
}

// UnitCounter counts the work of one unit of the engine.
type UnitCounter struct {
	Name    string // at most 32 bytes
	Version uint32
	Rows    uint64 // values that went through
	Timing
}

// ProgramCounter counts the executions of one device program, which its digest identifies.
type ProgramCounter struct {
	ID   [32]byte
	Rows uint64
	P    float64 // rows a second of execution
	Timing
}

// Sizes of the parts of a Log in bytes, and the numbers of units and programs that it can hold.
const (
	LogVersion    = 1
	LogHeaderSize = 256
	LogEntrySize  = 96
	MaxLogEntries = 256
)

// Marshal writes the page. Units and programs past MaxLogEntries are left out.
func (l *Log) Marshal() []byte {
	units, programs := l.Units[:min(len(l.Units), MaxLogEntries)], l.Programs[:min(len(l.Programs), MaxLogEntries)]
	b := make([]byte, LogHeaderSize+(len(units)+len(programs))*LogEntrySize)
	put16(b[0:], LogVersion)
	put16(b[2:], uint16(len(units)))
	put16(b[4:], uint16(len(programs)))
	put16(b[6:], l.Threads)
	put64(b[8:], l.Uptime)
	put64(b[16:], l.Rows)
	put64(b[24:], l.Executions)
	copy(b[32:64], l.Backend)
	for i, m := range []Movement{l.FlashToDRAM, l.DRAMToHost, l.HostToDRAM} {
		put64(b[64+24*i:], m.Bytes)
		put64(b[72+24*i:], m.Commands)
		put64(b[80+24*i:], m.Nanoseconds)
	}
	put64(b[136:], l.SLMBytes)
	put64(b[144:], l.SLMReserved)
	for i, v := range []uint64{l.FlashLent.Bytes, l.FlashLent.Commands, l.FlashLent.Nanoseconds} {
		put64(b[152+8*i:], v)
	}
	b[176] = l.HostIOShare
	e := b[LogHeaderSize:]
	for _, u := range units {
		copy(e[:32], u.Name)
		u.Timing.put(e[32:], u.Rows, 0)
		put32(e[88:], u.Version)
		e = e[LogEntrySize:]
	}
	for _, p := range programs {
		copy(e[:32], p.ID[:])
		p.Timing.put(e[32:], p.Rows, p.P)
		e = e[LogEntrySize:]
	}
	return b
}

func (t *Timing) put(b []byte, rows uint64, perSecond float64) {
	for i, v := range []uint64{t.Runs, t.Total, t.Shortest, t.Longest, t.Average(), rows, math.Float64bits(perSecond)} {
		put64(b[8*i:], v)
	}
}

// Unmarshal reads the page from b, which may have more bytes than it.
func (l *Log) Unmarshal(b []byte) error {
	if len(b) < LogHeaderSize {
		return fmt.Errorf("vendor log: header: %w", ErrShort)
	}
	if v := le16(b); v != LogVersion {
		return fmt.Errorf("vendor log: version %d, this is version %d", v, LogVersion)
	}
	units, programs := int(le16(b[2:])), int(le16(b[4:]))
	if units > MaxLogEntries || programs > MaxLogEntries {
		return fmt.Errorf("vendor log: %d units and %d programs, at most %d each", units, programs, MaxLogEntries)
	}
	if want := LogHeaderSize + (units+programs)*LogEntrySize; len(b) < want {
		return fmt.Errorf("vendor log: %d bytes where the header says %d: %w", len(b), want, ErrShort)
	}
	*l = Log{
		Backend: text(b[32:64]), Threads: le16(b[6:]), Uptime: le64(b[8:]), Rows: le64(b[16:]), Executions: le64(b[24:]),
		SLMBytes: le64(b[136:]), SLMReserved: le64(b[144:]),
		FlashLent: Movement{le64(b[152:]), le64(b[160:]), le64(b[168:])}, HostIOShare: b[176],
	}
	for i, m := range []*Movement{&l.FlashToDRAM, &l.DRAMToHost, &l.HostToDRAM} {
		*m = Movement{le64(b[64+24*i:]), le64(b[72+24*i:]), le64(b[80+24*i:])}
	}
	e := b[LogHeaderSize:]
	for range units {
		l.Units = append(l.Units, UnitCounter{text(e[:32]), le32(e[88:]), le64(e[72:]), timing(e[32:])})
		e = e[LogEntrySize:]
	}
	for range programs {
		l.Programs = append(l.Programs, ProgramCounter{[32]byte(e[:32]), le64(e[72:]), math.Float64frombits(le64(e[80:])),
			timing(e[32:])})
		e = e[LogEntrySize:]
	}
	return nil
}

// LogSize is the length of the marshalled page that b's header describes, so that a host can read the header first; 0
// where b is not a header.
func LogSize(b []byte) int {
	if len(b) < 8 || le16(b) != LogVersion || le16(b[2:]) > MaxLogEntries || le16(b[4:]) > MaxLogEntries {
		return 0
	}
	return LogHeaderSize + (int(le16(b[2:]))+int(le16(b[4:])))*LogEntrySize
}

func timing(b []byte) Timing { return Timing{le64(b), le64(b[8:]), le64(b[16:]), le64(b[24:])} }

func text(b []byte) string { return strings.TrimRight(string(b), "\x00") }
