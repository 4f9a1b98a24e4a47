package controller

import (
	"slices"
	"sort"
	"sync"

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

// maxLentRuns bounds the runs that are lent at a time, since each access walks some of them.
const maxLentRuns = 1 << 16

// lentRun is a run of blocks of namespace 1 whose copy into subsystem local memory is put off: the memory from at on
// holds the bytes, which lie on the flash from off on.
type lentRun struct {
	at    uint64
	off   int64
	bytes []byte
	term  uint64
}

func (r lentRun) endAddress() uint64 { return r.at + uint64(len(r.bytes)) }

// partWithin returns the part of the run that lies in memory [lo, hi); without bytes, if there is none.
func (r lentRun) partWithin(lo, hi uint64) lentRun {
	lo, hi = max(lo, r.at), min(hi, r.endAddress())
	if lo >= hi {
		return lentRun{}
	}
	return lentRun{at: lo, off: r.off + int64(lo-r.at), bytes: r.bytes[lo-r.at : hi-r.at], term: r.term}
}

// overlapsFlash reports whether the run has some of the bytes [off, off+n) of the flash.
func (r lentRun) overlapsFlash(off, n int64) bool {
	return r.off < off+n && off < r.off+int64(len(r.bytes))
}

// flashSpan is a run of bytes of the flash.
type flashSpan struct{ off, n int64 }

// lender keeps the runs of blocks whose copy is put off. Without a flash that lends it does nothing.
type lender struct {
	flash LendingFlash                    // nil: nothing is lent
	slm   []byte                          // not guarded: claims and accesses keep commands apart
	fault func(off int64, n int, _ error) // called when a copy that was put off fails
	moved func(bytes uint64)              // called for each copy that was put off
	ended *sync.Cond                      // an execution that reads lent blocks has ended; its lock is mu

	mu     sync.Mutex
	runs   []lentRun  // sorted by address, disjoint, none empty
	viewed []cs.Range // memory of which hosts have views: nothing is lent there. Sorted, apart
	// unread is memory whose blocks could not be read when a copy that was put off was made: it holds zeros instead of
	// them, and reading it is an error until it is written again or has another holder. Sorted, apart.
	unread []cs.Range
	inputs map[*Input]struct{}
	writes map[*flashSpan]struct{} // blocks that commands change now
}

func newLender(slm []byte) *lender {
	l := &lender{slm: slm, inputs: map[*Input]struct{}{}, writes: map[*flashSpan]struct{}{}}
	l.ended = sync.NewCond(&l.mu)
	return l
}

// lendRun puts off the copy of n bytes of the flash to an address of memory that the caller's association holds. It
// reports whether it did; if not, the caller copies them.
func (l *lender) lendRun(addr uint64, off, n int64) bool {
	if l.flash == nil || n == 0 {
		return false
	}
	b, term, ok := l.flash.Lend(off, n)
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lo, hi := addr, addr+uint64(n)
	for w := range l.writes {
		if w.off < off+n && off < w.off+w.n {
			return false
		}
	}
	if len(l.runs) >= maxLentRuns || !l.flash.Lasts(term) || overlapsAny(l.viewed, cs.Range{Addr: lo, Len: hi - lo}) {
		return false
	}
	l.dropLocked(cs.Range{Addr: lo, Len: hi - lo})
	at := l.firstBehind(lo)
	if at > 0 {
		// A window that grows is copied in pieces. One run of them all can be read in one piece.
		p := &l.runs[at-1]
		if p.endAddress() == lo && p.off+int64(len(p.bytes)) == off && p.term == term && follows(p.bytes, b) {
			p.bytes = p.bytes[:len(p.bytes)+len(b)]
			return true
		}
	}
	l.runs = slices.Insert(l.runs, at, lentRun{at: lo, off: off, bytes: b, term: term})
	return true
}

// follows reports whether b lies behind a in one piece of memory.
func follows(a, b []byte) bool {
	return cap(a)-len(a) >= len(b) && len(b) > 0 && &a[:len(a)+1][len(a)] == &b[0]
}

func overlapsAny(sorted []cs.Range, r cs.Range) bool {
	return slices.ContainsFunc(sorted, r.Overlaps)
}

// firstBehind returns the index of the first run that ends behind an address. l.mu is held.
func (l *lender) firstBehind(addr uint64) int {
	return sort.Search(len(l.runs), func(i int) bool { return l.runs[i].endAddress() > addr })
}

// cutRuns takes what is lent in memory [lo, hi) out of the list and returns it. l.mu is held.
func (l *lender) cutRuns(lo, hi uint64) (parts []lentRun) {
	first := l.firstBehind(lo)
	last := first
	for ; last < len(l.runs) && l.runs[last].at < hi; last++ {
		parts = append(parts, l.runs[last].partWithin(lo, hi))
	}
	if first == last {
		return nil
	}
	var keep [2]lentRun
	n := 0
	if p := l.runs[first].partWithin(0, lo); len(p.bytes) > 0 {
		keep[n], n = p, n+1
	}
	if p := l.runs[last-1].partWithin(hi, ^uint64(0)); len(p.bytes) > 0 {
		keep[n], n = p, n+1
	}
	l.runs = slices.Replace(l.runs, first, last, keep[:n]...)
	return parts
}

// dropLocked is overwrite. l.mu is held.
func (l *lender) dropLocked(r cs.Range) {
	l.cutRuns(r.Addr, r.Addr+r.Len)
	if len(l.unread) > 0 {
		l.unread = cutRanges(l.unread, r)
	}
}

// copyAll performs copies that were put off. The memory of a copy that fails becomes unread. l.mu is held.
func (l *lender) copyAll(runs []lentRun) {
	for _, r := range runs {
		b := l.slm[r.at:r.endAddress()]
		if n, err := l.flash.ReadAt(b, r.off); n < len(b) || err != nil {
			n = max(n, 0)
			clear(b[n:]) // nothing of an earlier holder stays
			l.unread = insertMerged(l.unread, cs.Range{Addr: r.at + uint64(n), Len: uint64(len(b) - n)})
			l.fault(r.off+int64(n), len(b), err)
		}
		l.moved(uint64(len(b)))
	}
}

// copyPending performs the copies to ranges that were put off, since a command reads the memory itself. It fails if
// blocks of the ranges could not be read, now or earlier.
func (l *lender) copyPending(ranges ...cs.Range) nvme.Status {
	if l.flash == nil {
		return nvme.Success
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copyPendingLocked(ranges...)
}

// copyPendingLocked is copyPending. l.mu is held.
func (l *lender) copyPendingLocked(ranges ...cs.Range) nvme.Status {
	st := nvme.Success
	for _, r := range ranges {
		if len(l.runs) > 0 {
			l.copyAll(l.cutRuns(r.Addr, r.Addr+r.Len))
		}
		if overlapsAny(l.unread, r) {
			st = nvme.UnrecoveredReadError
		}
	}
	return st
}

// overwrite drops what is lent or unread in a range: all of it is written.
func (l *lender) overwrite(r cs.Range) {
	if l.flash == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked(r)
}

// allowView performs the copies to a range of which a host gets a view, and lends nothing there until forgetRange. It
// reports whether the range may be viewed: a view could not say that blocks of it were not read, as Fetch does.
func (l *lender) allowView(r cs.Range) bool {
	if l.flash == nil || r.Len == 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.viewed {
		if v.Addr <= r.Addr && r.Addr+r.Len <= v.Addr+v.Len {
			return true
		}
	}
	if !l.copyPendingLocked(r).OK() {
		return false
	}
	l.viewed = insertMerged(l.viewed, r)
	return true
}

// forgetRange drops what is lent in a range that its holder gave back, and the views of it. Parts that claimed says are
// held still are copied.
func (l *lender) forgetRange(r cs.Range, claimed func(cs.Range) bool) {
	if l.flash == nil || r.Len == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.cutRuns(r.Addr, r.Addr+r.Len) {
		if claimed(cs.Range{Addr: p.at, Len: uint64(len(p.bytes))}) {
			l.copyAll([]lentRun{p})
		}
	}
	if !claimed(r) {
		l.viewed = cutRanges(l.viewed, r)
	}
}

// beginWrite is called before blocks of the flash change: it performs the copies of them that were put off, and waits
// for executions that read them. Until endWrite they are not lent.
func (l *lender) beginWrite(off, n int64) *flashSpan {
	if l.flash == nil {
		return nil
	}
	w := &flashSpan{off, n}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[w] = struct{}{}
	for i := 0; i < len(l.runs); i++ {
		if r := l.runs[i]; r.overlapsFlash(off, n) {
			lo := r.at + uint64(max(off-r.off, 0))
			hi := r.at + uint64(min(off+n-r.off, int64(len(r.bytes))))
			l.copyAll(l.cutRuns(lo, hi))
			i = max(l.firstBehind(lo)-1, -1) // what is left of the run has none of the blocks
		}
	}
	for l.isReadByExecution(off, n) {
		l.ended.Wait()
	}
	return w
}

// isReadByExecution reports whether an execution reads bytes of the flash. l.mu is held.
func (l *lender) isReadByExecution(off, n int64) bool {
	for in := range l.inputs {
		if slices.ContainsFunc(in.runs, func(r lentRun) bool { return r.overlapsFlash(off, n) }) {
			return true
		}
	}
	return false
}

func (l *lender) endWrite(w *flashSpan) {
	if w == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.writes, w)
}

// recallAll performs all copies that were put off, and waits until no execution reads lent blocks.
func (l *lender) recallAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := l.runs
	l.runs = nil
	l.copyAll(runs)
	for len(l.inputs) > 0 {
		l.ended.Wait()
	}
}

// Input is the input range of an execution of which some blocks are lent or were not read. Its methods are for that
// execution only.
type Input struct {
	lender *lender
	span   cs.Range
	runs   []lentRun   // what was lent in the range when the execution began
	failed nvme.Status // not Success: the execution asked for blocks that could not be read
}

// beginInput returns the input of an execution over ranges, nil if all of it lies in the memory. What is lent in the
// other ranges is copied; beginInput fails if that cannot be read. endInput ends the input.
func (l *lender) beginInput(ranges []cs.Range, input int) (*Input, nvme.Status) {
	if l.flash == nil {
		return nil, nvme.Success
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.runs) == 0 && len(l.unread) == 0 {
		return nil, nvme.Success
	}
	for i, r := range ranges {
		if i == input {
			continue
		}
		if st := l.copyPendingLocked(r); !st.OK() {
			return nil, st
		}
	}
	if input >= len(ranges) {
		return nil, nvme.Success
	}
	in := &Input{lender: l, span: ranges[input], failed: nvme.Success}
	lo, hi, term := in.span.Addr, in.span.Addr+in.span.Len, uint64(0)
	for i := l.firstBehind(lo); i < len(l.runs) && l.runs[i].at < hi; i++ {
		r := l.runs[i].partWithin(lo, hi)
		if r.term != term && !l.flash.Lasts(r.term) {
			_ = l.copyPendingLocked(in.span) // the flash is about to recall it; Bytes tells of blocks that cannot be read
			in.runs = nil
			break
		}
		term = r.term
		in.runs = append(in.runs, r)
	}
	if len(in.runs) == 0 && !overlapsAny(l.unread, in.span) {
		return nil, nvme.Success
	}
	l.inputs[in] = struct{}{}
	return in, nvme.Success
}

func (l *lender) endInput(in *Input) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.inputs, in)
	l.ended.Broadcast()
}

// Bytes returns bytes [off, off+n) of the input range, which lie inside it: on the flash if all of them are lent in one
// piece, else in the memory, to which they are copied first. Bytes that could not be read are zeros, and fail the
// execution's command.
func (in *Input) Bytes(off, n uint64) []byte {
	lo := in.span.Addr + off
	hi := lo + n
	i := sort.Search(len(in.runs), func(i int) bool { return in.runs[i].endAddress() > lo })
	if i < len(in.runs) && in.runs[i].at <= lo && hi <= in.runs[i].endAddress() {
		r := &in.runs[i]
		return r.bytes[lo-r.at : hi-r.at : hi-r.at]
	}
	if st := in.lender.copyPending(cs.Range{Addr: lo, Len: n}); !st.OK() {
		in.failed = st
	}
	return in.lender.slm[lo:hi:hi]
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
	if r.ns.id != cs.NamespaceNVM || s.slm == nil || s.slm.lent.flash == nil {
		return func() {}
	}
	w := s.slm.lent.beginWrite(off, n)
	return func() { s.slm.lent.endWrite(w) }
}

// lendBlocks puts off a copy of blocks of namespace 1, and reports whether it did.
func (r *request) lendBlocks(ns *namespace, k cs.Copy) bool {
	s := r.c.sub
	n := int64(k.NLB) << ns.shift
	if ns.id != cs.NamespaceNVM || !s.slm.lent.lendRun(k.Dest, int64(k.SLBA<<ns.shift), n) {
		return false
	}
	s.health.sectorsRead.Add(uint64(n) / 512)
	return true
}

// lendFromFlash makes the memory lend blocks of a flash, if flash and compute device can.
func (s *Subsystem) lendFromFlash(flash Flash, compute Compute) {
	f, lends := flash.(LendingFlash)
	c, reads := compute.(InputReader)
	if !lends || !reads {
		return
	}
	l := s.slm.lent
	l.flash, s.inputRange = f, c.InputRange()
	l.moved = func(bytes uint64) { s.moves.flashToDRAM.bytes.Add(bytes) }
	l.fault = func(off int64, n int, err error) {
		s.log.Error("read flash for a copy that was put off", "offset", off, "bytes", n, "error", err)
		s.health.mediaErrors.Add(1)
		s.health.recordError(nvme.ErrorEntry{
			SQID: 0xffff, CID: 0xffff, Status: nvme.UnrecoveredReadError, Location: 0xffff,
			LBA: uint64(off) >> s.blockNamespace(cs.NamespaceNVM).shift, NSID: cs.NamespaceNVM,
		})
	}
	f.OnRecall(l.recallAll)
}
