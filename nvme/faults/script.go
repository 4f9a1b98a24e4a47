package faults

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/nvme"
)

// Limits of a script.
const (
	MaxScript = 1 << 20   // bytes of the document
	MaxRules  = 256       // of each kind: every transfer and PDU is held against all of them
	MaxTime   = time.Hour // of a delay or an absence
	maxCount  = 1 << 40   // PDUs, commands, matches
)

// Always is Count.Times without end.
const Always = -1

// Count says which of a rule's matches go wrong.
type Count struct {
	After int64 // matches that pass first
	Times int64 // matches that go wrong then; Always, or above 0
}

// Script says what goes wrong. Make one with Parse, or fill it in and let New check it.
type Script struct {
	Fail    []Fail
	Delay   []Delay
	Flip    []Flip
	Drop    []Drop
	Away    []Away
	Execute []Execute // not in a document that Parse reads: for a drive in the same process
}

// Operation is an operation of a drive on its flash.
type Operation int

// The operations that fail. A Write Zeroes or a deallocation writes.
const (
	Read Operation = iota
	Write
	Flush
)

var operations = []string{Read: "read", Write: "write", Flush: "flush"}

// String names the operation as scripts do.
func (o Operation) String() string { return nameAt(operations, int(o)) }

// Fail makes transfers of flash that touch blocks [LBA, LBA+Blocks) stop there; with Flush, putting what was written on
// stable storage.
type Fail struct {
	Operation   Operation
	LBA, Blocks uint64 // not of Flush
	Count
	// Status of the command: UnrecoveredReadError for Read; WriteFault or CapacityExceeded for the others.
	Status nvme.Status
}

// Queues chooses connections by the queue that they are.
type Queues int32

// AnyQueue means every connection, also before it says Connect; IOQueue every queue but the admin queue. 0 is the
// admin queue, and a greater number is an I/O queue's identifier.
const (
	AnyQueue Queues = -1
	IOQueue  Queues = -2
)

// noQueue is the queue of a connection that has not said Connect.
const noQueue = -1

func (q Queues) includes(id int32) bool {
	switch q {
	case AnyQueue:
		return true
	case IOQueue:
		return id > 0
	}
	return id == int32(q)
}

// AnyOpcode is Delay.Opcode for every command.
const AnyOpcode = -1

// Delay keeps commands from the drive for a while. Others pass them.
type Delay struct {
	By     time.Duration
	Opcode int // AnyOpcode, or 0 to 255
	// Blocks says that Opcode is one of the NVM command set: commands to memory and to programs with the same are not
	// meant.
	Blocks bool
	Queue  Queues
	Count
}

// Direction is that of a PDU, as the drive sees it.
type Direction int

// The directions.
const (
	Sent Direction = iota
	Received
)

var directions = []string{Sent: "sent", Received: "received"}

// String names the direction as scripts do.
func (d Direction) String() string { return nameAt(directions, int(d)) }

// Digest is one of a PDU's digests.
type Digest int

// The digests.
const (
	HeaderDigest Digest = iota
	DataDigest
)

var digests = []string{HeaderDigest: "header", DataDigest: "data"}

// String names the digest as scripts do.
func (d Digest) String() string { return nameAt(digests, int(d)) }

// Flip makes digests wrong. Count is over PDUs that carry that digest, of all connections together.
type Flip struct {
	Digest    Digest
	Queue     Queues
	Direction Direction
	Count
}

// Drop closes a connection behind its PDU number PDU (from 1), or, if Torn, in the middle of it. The PDUs of each
// connection are counted on their own, from its first; Times is the number of connections that are dropped.
type Drop struct {
	PDU       int64
	Queue     Queues
	Direction Direction
	Torn      bool
	Times     int64
}

// Away closes all connections when command number Command (from 1) comes, which the drive does not see any more, and
// serves none for a while. With Times above 1 the count begins again.
type Away struct {
	For     time.Duration
	Command int64
	Times   int64
}

// Execute makes executions of programs end at once, with a status and a result, on a drive whose compute device
// Injector.Compute wraps. Where several rules meet one execution, the first decides and the others do not count it.
type Execute struct {
	Status nvme.Status // not Success
	Result uint64
	Count
}

func nameAt(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprint(i)
	}
	return names[i]
}

// checkRules refuses what Parse refuses.
func (s *Script) checkRules() error {
	for _, n := range []int{len(s.Fail), len(s.Delay), len(s.Flip), len(s.Drop), len(s.Away), len(s.Execute)} {
		if n > MaxRules {
			return fmt.Errorf("%d rules of a kind: want at most %d", n, MaxRules)
		}
	}
	for i := range s.Fail {
		if err := s.Fail[i].checkFail(); err != nil {
			return fmt.Errorf("fail[%d]: %w", i, err)
		}
	}
	for i := range s.Delay {
		if err := s.Delay[i].checkDelay(); err != nil {
			return fmt.Errorf("delay[%d]: %w", i, err)
		}
	}
	for i := range s.Flip {
		if err := s.Flip[i].checkFlip(); err != nil {
			return fmt.Errorf("flip[%d]: %w", i, err)
		}
	}
	for i := range s.Drop {
		if err := s.Drop[i].checkDrop(); err != nil {
			return fmt.Errorf("drop[%d]: %w", i, err)
		}
	}
	for i := range s.Away {
		if err := s.Away[i].checkAway(); err != nil {
			return fmt.Errorf("away[%d]: %w", i, err)
		}
	}
	for i := range s.Execute {
		if err := s.Execute[i].checkExecute(); err != nil {
			return fmt.Errorf("execute[%d]: %w", i, err)
		}
	}
	return nil
}

func (c Count) checkCount() error {
	if c.After < 0 || c.After > maxCount {
		return fmt.Errorf("after %d: want 0 to %d", c.After, int64(maxCount))
	}
	return checkTimes(c.Times)
}

func checkTimes(n int64) error {
	if n != Always && (n < 1 || n > maxCount) {
		return fmt.Errorf("times %d: want 1 to %d, or always", n, int64(maxCount))
	}
	return nil
}

func checkTime(what string, d time.Duration) error {
	if d <= 0 || d > MaxTime {
		return fmt.Errorf("%s %v: want a time above 0, at most %v", what, d, MaxTime)
	}
	return nil
}

func checkQueue(q Queues) error {
	if q < IOQueue || q > 0xffff {
		return fmt.Errorf("queue %d: want admin, io, or 0 to 65535", q)
	}
	return nil
}

func checkName(what string, names []string, i int) error {
	if i < 0 || i >= len(names) {
		return fmt.Errorf("there is no %s %d", what, i)
	}
	return nil
}

// statuses are the possible statuses of a failed operation, the usual one first.
var statuses = [][]nvme.Status{
	Read:  {nvme.UnrecoveredReadError},
	Write: {nvme.WriteFault, nvme.CapacityExceeded},
	Flush: {nvme.WriteFault, nvme.CapacityExceeded},
}

func (f *Fail) checkFail() error {
	if err := checkName("operation", operations, int(f.Operation)); err != nil {
		return err
	}
	switch {
	case f.Operation == Flush && (f.LBA != 0 || f.Blocks != 0):
		return fmt.Errorf("a flush is of everything: lba and blocks do not go with it")
	case f.Operation != Flush && (f.Blocks == 0 || f.Blocks > 1<<63-f.LBA || f.LBA >= 1<<63):
		return fmt.Errorf("blocks %d+%d: want at least one, below 2^63", f.LBA, f.Blocks)
	}
	for _, s := range statuses[f.Operation] {
		if s == f.Status {
			return f.Count.checkCount()
		}
	}
	return fmt.Errorf("status %s: a failed %s gives %v", f.Status.Error(), f.Operation, statuses[f.Operation])
}

func (d *Delay) checkDelay() error {
	if d.Opcode < AnyOpcode || d.Opcode > 0xff {
		return fmt.Errorf("opcode %d: want 0 to 255", d.Opcode)
	}
	if err := checkTime("by", d.By); err != nil {
		return err
	}
	if err := checkQueue(d.Queue); err != nil {
		return err
	}
	return d.Count.checkCount()
}

func (f *Flip) checkFlip() error {
	if err := checkName("digest", digests, int(f.Digest)); err != nil {
		return err
	}
	if err := checkName("direction", directions, int(f.Direction)); err != nil {
		return err
	}
	if err := checkQueue(f.Queue); err != nil {
		return err
	}
	return f.Count.checkCount()
}

func (d *Drop) checkDrop() error {
	if d.PDU < 1 || d.PDU > maxCount {
		return fmt.Errorf("pdu %d: want 1 to %d", d.PDU, int64(maxCount))
	}
	if err := checkName("direction", directions, int(d.Direction)); err != nil {
		return err
	}
	if err := checkQueue(d.Queue); err != nil {
		return err
	}
	return checkTimes(d.Times)
}

func (a *Away) checkAway() error {
	if a.Command < 1 || a.Command > maxCount {
		return fmt.Errorf("command %d: want 1 to %d", a.Command, int64(maxCount))
	}
	if err := checkTime("for", a.For); err != nil {
		return err
	}
	return checkTimes(a.Times)
}

func (e *Execute) checkExecute() error {
	if e.Status.OK() {
		return fmt.Errorf("status %s: an execution that fails needs another", e.Status.Error())
	}
	return e.Count.checkCount()
}
