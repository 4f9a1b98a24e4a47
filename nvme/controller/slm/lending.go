package slm

import (
	"io"
	"slices"
	"sort"
	"sync"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// Flash is a flash whose bytes can be read where they lie.
type Flash interface {
	io.ReaderAt
	// Lend and Lasts are those of controller.LendingFlash.
	Lend(off, n int64) (b []byte, term uint64, ok bool)
	Lasts(term uint64) bool
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

// Write is a run of bytes of the flash.
type Write struct{ off, n int64 }

// Lender keeps the runs of blocks whose copy is put off. Without a flash that lends it does nothing.
type Lender struct {
	flash Flash  // nil: nothing is lent
	slm   []byte // not guarded: claims and accesses keep commands apart
	fault func(off int64, n int, _ error)
	moved func(bytes uint64)
	ended *sync.Cond // an execution that reads lent blocks has ended; its lock is mu

	mu     sync.Mutex
	runs   []lentRun  // sorted by address, disjoint, none empty
	viewed []cs.Range // memory of which hosts have views: nothing is lent there. Sorted, apart
	// unread is memory whose blocks could not be read when a copy that was put off was made: it holds zeros instead of
	// them, and reading it is an error until it is written again or has another holder. Sorted, apart.
	unread []cs.Range
	inputs map[*Input]struct{}
	writes map[*Write]struct{} // blocks that commands change now
}

func newLender(slm []byte) *Lender {
	l := &Lender{slm: slm, inputs: map[*Input]struct{}{}, writes: map[*Write]struct{}{}}
	l.ended = sync.NewCond(&l.mu)
	return l
}

// From makes the flash one whose blocks are lent. moved is called for each copy that was put off, and fault for one
// that fails. From is called before any other method.
func (l *Lender) From(flash Flash, moved func(bytes uint64), fault func(off int64, n int, _ error)) {
	l.flash, l.moved, l.fault = flash, moved, fault
}

// Lend puts off the copy of n bytes of the flash to an address of memory that the caller's association holds. It
// reports whether it did; if not, the caller copies them.
func (l *Lender) Lend(addr uint64, off, n int64) bool {
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
func (l *Lender) firstBehind(addr uint64) int {
	return sort.Search(len(l.runs), func(i int) bool { return l.runs[i].endAddress() > addr })
}

// cutRuns takes what is lent in memory [lo, hi) out of the list and returns it. l.mu is held.
func (l *Lender) cutRuns(lo, hi uint64) (parts []lentRun) {
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

// dropLocked is Overwrite. l.mu is held.
func (l *Lender) dropLocked(r cs.Range) {
	l.cutRuns(r.Addr, r.Addr+r.Len)
	if len(l.unread) > 0 {
		l.unread = cutRanges(l.unread, r)
	}
}

// copyAll performs copies that were put off. The memory of a copy that fails becomes unread. l.mu is held.
func (l *Lender) copyAll(runs []lentRun) {
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

// CopyPending performs the copies to ranges that were put off, since a command reads the memory itself. It fails if
// blocks of the ranges could not be read, now or earlier.
func (l *Lender) CopyPending(ranges ...cs.Range) nvme.Status {
	if l.flash == nil {
		return nvme.Success
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copyPendingLocked(ranges...)
}

// copyPendingLocked is CopyPending. l.mu is held.
func (l *Lender) copyPendingLocked(ranges ...cs.Range) nvme.Status {
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

// Overwrite drops what is lent or unread in a range: all of it is written.
func (l *Lender) Overwrite(r cs.Range) {
	if l.flash == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked(r)
}

// allowView performs the copies to a range of which a host gets a view, and lends nothing there until forgetRange. It
// reports whether the range may be viewed: a view could not say that blocks of it were not read, as Fetch does.
func (l *Lender) allowView(r cs.Range) bool {
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
func (l *Lender) forgetRange(r cs.Range, claimed func(cs.Range) bool) {
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

// BeginWrite is called before blocks of the flash change: it performs the copies of them that were put off, and waits
// for executions that read them. Until EndWrite they are not lent.
func (l *Lender) BeginWrite(off, n int64) *Write {
	if l.flash == nil {
		return nil
	}
	w := &Write{off, n}
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
func (l *Lender) isReadByExecution(off, n int64) bool {
	for in := range l.inputs {
		if slices.ContainsFunc(in.runs, func(r lentRun) bool { return r.overlapsFlash(off, n) }) {
			return true
		}
	}
	return false
}

// EndWrite ends what BeginWrite began.
func (l *Lender) EndWrite(w *Write) {
	if w == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.writes, w)
}

// Recall performs all copies that were put off, and waits until no execution reads lent blocks.
func (l *Lender) Recall() {
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
	lender *Lender
	span   cs.Range
	runs   []lentRun   // what was lent in the range when the execution began
	failed nvme.Status // not Success: the execution asked for blocks that could not be read
}

// Begin returns the input of an execution over ranges, nil if all of it lies in the memory. What is lent in the
// other ranges is copied; Begin fails if that cannot be read. End ends the input.
func (l *Lender) Begin(ranges []cs.Range, input int) (*Input, nvme.Status) {
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

// End ends the input of an execution.
func (l *Lender) End(in *Input) {
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
	if st := in.lender.CopyPending(cs.Range{Addr: lo, Len: n}); !st.OK() {
		in.failed = st
	}
	return in.lender.slm[lo:hi:hi]
}

// Status returns Success, or with what the execution's command fails because it asked for blocks that could not be
// read.
func (in *Input) Status() nvme.Status { return in.failed }
