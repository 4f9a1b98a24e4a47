package controller

import (
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// LendingFlash is implemented by a Flash whose bytes can be read where they lie. Copies of blocks into subsystem local
// memory are then put off: the memory holds the blocks as if they had been copied, executions read them on the flash,
// and they are copied when a command needs them in the memory itself, or before they change on the flash.
type LendingFlash interface {
	Flash
	// Lend returns bytes [off, off+n). They stay readable and nobody changes them as long as the term lasts, except by
	// WriteAt and Discard. b has capacity up to the end of what lies behind it in one piece. ok is false where the bytes
	// cannot be lent: they are then read. Lend may read from the medium.
	Lend(off, n int64) (b []byte, term uint64, ok bool)
	// Lasts reports whether a term lasts. It is quick, and takes no lock that is held while recall is called.
	Lasts(term uint64) bool
	// OnRecall sets the function that the flash calls when a term has ended and before the bytes that were lent in it may
	// change. Nobody reads lent bytes once the function has returned. OnRecall is called once, before Lend.
	OnRecall(recall func())
}

// InputReader is implemented by a Compute whose programs read one of their ranges and never write it, and which finds
// lent blocks there by Execution.Input.
type InputReader interface {
	// InputRange returns the index of that range: constant.
	InputRange() int
}

// failUnread returns the status of a command that needs memory whose blocks could not be read. The failed copy is in
// the error log, with its block, and counts as one media error however many commands it fails.
func (r *request) failUnread(st nvme.Status) nvme.Status {
	r.recorded = true
	return st
}

// beginChange begins a change of blocks of the request's namespace; the function that it returns ends it.
func (r *request) beginChange(off, n int64) (done func()) {
	s := r.c.sub
	if r.ns.id != cs.NamespaceNVM || s.slm == nil {
		return func() {}
	}
	w := s.slm.Lent.BeginWrite(off, n)
	return func() { s.slm.Lent.EndWrite(w) }
}

// lendBlocks puts off a copy of blocks of namespace 1, and reports whether it did.
func (r *request) lendBlocks(ns *namespace, k cs.Copy) bool {
	s := r.c.sub
	n := int64(k.NLB) << ns.shift
	if ns.id != cs.NamespaceNVM || !s.slm.Lent.Lend(k.Dest, int64(k.SLBA<<ns.shift), n) {
		return false
	}
	s.health.SectorsRead.Add(uint64(n) / 512)
	return true
}

// lendFromFlash makes the memory lend blocks of a flash, if flash and compute device can.
func (s *Subsystem) lendFromFlash(flash Flash, compute Compute) {
	f, lends := flash.(LendingFlash)
	c, reads := compute.(InputReader)
	if !lends || !reads {
		return
	}
	s.inputRange = c.InputRange()
	moved := func(bytes uint64) { s.health.Moves.FlashToDRAM.AddBytes(bytes) }
	s.slm.Lent.From(f, moved, func(off int64, n int, err error) {
		s.log.Error("read flash for a copy that was put off", "offset", off, "bytes", n, "error", err)
		s.health.MediaErrors.Add(1)
		s.health.RecordError(nvme.ErrorEntry{
			SQID: 0xffff, CID: 0xffff, Status: nvme.UnrecoveredReadError, Location: 0xffff,
			LBA: uint64(off) >> s.blockNamespace(cs.NamespaceNVM).shift, NSID: cs.NamespaceNVM,
		})
	})
	f.OnRecall(s.slm.Lent.Recall)
}
