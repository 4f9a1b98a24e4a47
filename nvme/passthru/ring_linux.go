package passthru

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/nvme"
)

// The constants of include/uapi/linux/io_uring.h and nvme_ioctl.h that this package uses.
const (
	setupSQE128 = 1 << 10
	setupCQE32  = 1 << 11

	featSingleMmap = 1 << 0

	enterGetEvents = 1 << 0

	registerProbe = 8
	probeOps      = 64
	probeHeader   = 16
	opSupported   = 1 << 0

	opPollAdd  = 6
	opUringCmd = 46

	mapRing    = 0
	mapEntries = 0x10000000

	sqeSize    = 128
	cqeSize    = 32
	sqeFD      = 4
	sqeCommand = 8  // cmd_op
	sqePoll    = 28 // poll32_events
	sqeData    = 32 // user_data
	sqeNVMe    = 48 // the command itself

	uringIO    = 0xc0484e80
	uringAdmin = 0xc0484e82
)

// wakeID is the user data of the poll for more work; others are indices of ops.
const wakeID = 1 << 32

// ring is an io_uring that carries NVMe commands. One goroutine, bound to its thread, owns both queues: it alone writes
// submissions and reads completions, and waits in the kernel for completions and for more work at once, the latter
// through an event descriptor that the ring polls.
type ring struct {
	fd, wakeFD int
	memory     []byte // both rings
	entries    []byte // submission queue entries

	// Into memory, shared with the kernel.
	sqTail, cqHead, cqTail *uint32
	sqMask, cqMask         uint32
	sqArray                []uint32
	cqes                   []byte

	freeOps chan uint32 // indices of free ops
	ops     []ringOp
	ended   chan struct{} // closed when the owner has returned

	mu      sync.Mutex // guards what follows
	queued  []uint32   // indices of ops that wait for the owner
	closing bool
	broken  error // why the ring takes nothing any more
}

// ringOp is a command in the ring. The goroutine that holds its index owns it until it is queued; then the ring's owner
// does, until it sends on done.
type ringOp struct {
	fd     int32
	op     uint32
	w      wire
	res    int32
	result uint64
	err    error
	done   chan struct{}
}

// newRing makes a ring for depth commands at a time and starts its owner.
func (system) newRing(depth int) (carrier, error) {
	r := &ring{fd: -1, wakeFD: -1, ended: make(chan struct{}), freeOps: make(chan uint32, depth),
		ops: make([]ringOp, depth)}
	if err := r.setUpRings(depth + 1); err != nil { // one more for the poll
		return nil, errors.Join(err, r.releaseRing())
	}
	for i := range r.ops {
		r.ops[i].done = make(chan struct{}, 1)
		r.freeOps <- uint32(i)
	}
	go r.serveUntilClosed()
	return r, nil
}

// setUpRings makes the rings and maps them.
func (r *ring) setUpRings(n int) error {
	const (
		entriesAt, cqEntriesAt, flagsAt, featuresAt = 0, 4, 8, 20
		sqOffsets, cqOffsets                        = 40, 80
	)
	var params [120]byte
	ne := binary.NativeEndian
	ne.PutUint32(params[flagsAt:], setupSQE128|setupCQE32)
	size := uint32(1) << bits.Len32(uint32(n-1))
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(size), uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return fmt.Errorf("set up a ring: %w", errno)
	}
	r.fd = int(fd)
	if err := r.probePassthrough(); err != nil {
		return err
	}
	if ne.Uint32(params[featuresAt:])&featSingleMmap == 0 {
		return errors.New("set up a ring: the kernel maps its two halves apart")
	}
	sqEntries, cqEntries := ne.Uint32(params[entriesAt:]), ne.Uint32(params[cqEntriesAt:])
	sq := func(i int) uint32 { return ne.Uint32(params[sqOffsets+4*i:]) }
	cq := func(i int) uint32 { return ne.Uint32(params[cqOffsets+4*i:]) }
	const head, tail, mask, sqArray, cqCQEs = 0, 1, 2, 6, 5
	bytes := max(int(sq(sqArray))+4*int(sqEntries), int(cq(cqCQEs))+cqeSize*int(cqEntries))
	var err error
	if r.memory, err = unix.Mmap(r.fd, mapRing, bytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return fmt.Errorf("map a ring: %w", err)
	}
	if r.entries, err = unix.Mmap(r.fd, mapEntries, sqeSize*int(sqEntries), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return fmt.Errorf("map a ring's entries: %w", err)
	}
	at := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.memory[off])) }
	r.sqTail, r.sqMask = at(sq(tail)), *at(sq(mask))
	r.cqHead, r.cqTail, r.cqMask = at(cq(head)), at(cq(tail)), *at(cq(mask))
	r.sqArray = unsafe.Slice(at(sq(sqArray)), sqEntries)
	r.cqes = r.memory[cq(cqCQEs):][:cqeSize*int(cqEntries)]
	if r.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("make an event descriptor: %w", err)
	}
	return nil
}

// probePassthrough asks whether the kernel passes commands through to drivers.
func (r *ring) probePassthrough() error {
	var b [probeHeader + 8*probeOps]byte
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), registerProbe, uintptr(unsafe.Pointer(&b)),
		probeOps, 0, 0)
	if errno != 0 {
		return fmt.Errorf("probe a ring: %w", errno)
	}
	at := probeHeader + 8*opUringCmd
	if b[1] <= opUringCmd || binary.NativeEndian.Uint16(b[at+2:])&opSupported == 0 {
		return errors.New("the kernel passes no commands through (5.19 does)")
	}
	return nil
}

// carryCommand implements carrier.
func (r *ring) carryCommand(n node, req request, w *wire, data []byte) (nvme.Status, error) {
	d, ok := n.(*device)
	if !ok {
		return 0, fmt.Errorf("a ring carries no commands for a %T", n)
	}
	op := uint32(uringIO)
	if req == adminRequest {
		op = uringAdmin
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	w.pinData(&pin, data)
	res, result, err := r.submitAndAwait(int32(d.fd), op, w)
	w.setAddress(0)
	w.setResult(result)
	switch {
	case err != nil:
		return 0, err
	case res < 0:
		return 0, unix.Errno(-res)
	}
	return nvme.Status(res), nil
}

// submitAndAwait gives a command to the owner and waits for it. An error means that the kernel has not seen the
// command.
func (r *ring) submitAndAwait(fd int32, op uint32, w *wire) (int32, uint64, error) {
	index := <-r.freeOps
	defer func() { r.freeOps <- index }()
	o := &r.ops[index]
	o.fd, o.op, o.w, o.res, o.result, o.err = fd, op, *w, 0, 0, nil
	r.mu.Lock()
	if r.broken != nil || r.closing {
		defer r.mu.Unlock()
		return 0, 0, errors.Join(errors.New("the ring is closed"), r.broken)
	}
	r.queued = append(r.queued, index)
	first := len(r.queued) == 1
	r.mu.Unlock()
	if first {
		r.wakeOwner()
	}
	<-o.done
	return o.res, o.result, o.err
}

// wakeOwner makes the owner look for work. A full event counter wakes too, so there is no failure.
func (r *ring) wakeOwner() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(r.wakeFD, one[:])
}

// Close waits for the commands that run, ends the owner and frees the ring.
func (r *ring) Close() error {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	r.wakeOwner()
	<-r.ended
	return r.releaseRing()
}

func (r *ring) releaseRing() error {
	var errs []error
	for _, b := range [][]byte{r.memory, r.entries} {
		if b != nil {
			errs = append(errs, unix.Munmap(b))
		}
	}
	r.memory, r.entries = nil, nil
	for _, fd := range []int{r.fd, r.wakeFD} {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	r.fd, r.wakeFD = -1, -1
	return errors.Join(errs...)
}

// owner is the state that only the owner's goroutine touches.
type owner struct {
	*ring
	placed  []uint32 // indices of ops whose entries the kernel has not taken yet, in order; wakeIndex for the poll
	running int      // commands with the kernel or placed
	polling bool     // the poll for work is with the kernel or placed
}

const wakeIndex = 1<<32 - 1

// serveUntilClosed serves the ring until it is closed and nothing runs.
func (r *ring) serveUntilClosed() {
	defer close(r.ended)
	// The kernel runs completions on the thread that submitted.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	o := &owner{ring: r}
	var batch []uint32
	for {
		r.mu.Lock()
		batch, r.queued = append(batch[:0], r.queued...), r.queued[:0]
		closing := r.closing
		r.mu.Unlock()
		for _, index := range batch {
			o.placeCommand(index)
		}
		if closing && o.running == 0 {
			return
		}
		if !o.polling {
			o.placePoll()
		}
		if err := o.enterKernel(); err != nil {
			o.failCommands(err)
			return
		}
		o.reapCompletions()
	}
}

// nextEntry is the next free submission queue entry, cleared. There is always one: there are more than ops.
func (o *owner) nextEntry(index uint32) []byte {
	tail := atomic.LoadUint32(o.sqTail)
	i := tail & o.sqMask
	e := o.entries[int(i)*sqeSize:][:sqeSize]
	clear(e)
	o.sqArray[i] = i
	o.placed = append(o.placed, index)
	return e
}

// publishEntry shows the entry to the kernel.
func (o *owner) publishEntry() { atomic.AddUint32(o.sqTail, 1) }

func (o *owner) placeCommand(index uint32) {
	op := &o.ops[index]
	e := o.nextEntry(index)
	ne := binary.NativeEndian
	e[0] = opUringCmd
	ne.PutUint32(e[sqeFD:], uint32(op.fd))
	ne.PutUint32(e[sqeCommand:], op.op)
	ne.PutUint64(e[sqeData:], uint64(index))
	copy(e[sqeNVMe:], op.w[:ringSize])
	o.running++
	o.publishEntry()
}

// placePoll asks to be woken when there is more work.
func (o *owner) placePoll() {
	e := o.nextEntry(wakeIndex)
	ne := binary.NativeEndian
	e[0] = opPollAdd
	ne.PutUint32(e[sqeFD:], uint32(o.wakeFD))
	ne.PutUint32(e[sqePoll:], unix.POLLIN)
	ne.PutUint64(e[sqeData:], wakeID)
	o.polling = true
	o.publishEntry()
}

// enterKernel hands over what is placed and waits for a completion. An error is the ring's end.
func (o *owner) enterKernel() error {
	n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(o.fd), uintptr(len(o.placed)), 1, enterGetEvents, 0, 0)
	switch errno {
	case 0:
		o.placed = o.placed[:copy(o.placed, o.placed[min(int(n), len(o.placed)):])]
		return nil
	case unix.EINTR:
		return nil
	case unix.EAGAIN, unix.EBUSY:
		// The kernel is short of memory, or of room for completions: it helps to read the completions.
		time.Sleep(time.Millisecond)
		return nil
	}
	return fmt.Errorf("io_uring_enter: %w", errno)
}

// reapCompletions takes the completions that are there.
func (o *owner) reapCompletions() {
	head := atomic.LoadUint32(o.cqHead)
	ne := binary.NativeEndian
	for ; head != atomic.LoadUint32(o.cqTail); head++ {
		e := o.cqes[int(head&o.cqMask)*cqeSize:][:cqeSize]
		id := ne.Uint64(e)
		if id == wakeID {
			// Cleared before the next look at the queue, so that no wake is lost.
			var b [8]byte
			_, _ = unix.Read(o.wakeFD, b[:])
			o.polling = false
			continue
		}
		op := &o.ops[id]
		op.res, op.result = int32(ne.Uint32(e[8:])), ne.Uint64(e[16:])
		o.running--
		op.done <- struct{}{}
	}
	atomic.StoreUint32(o.cqHead, head)
}

// failCommands ends a ring that the kernel no longer serves: commands that the kernel has not seen fail, and the others
// are waited for.
func (o *owner) failCommands(err error) {
	o.mu.Lock()
	o.broken = err
	lost := append(append([]uint32(nil), o.placed...), o.queued...)
	unseen := len(o.placed)
	o.queued = nil
	o.mu.Unlock()
	atomic.AddUint32(o.sqTail, -uint32(unseen))
	for i, index := range lost {
		if index == wakeIndex {
			continue
		}
		if i < unseen {
			o.running--
		}
		o.ops[index].err = err
		o.ops[index].done <- struct{}{}
	}
	for o.running > 0 {
		time.Sleep(time.Millisecond)
		o.reapCompletions()
	}
}
