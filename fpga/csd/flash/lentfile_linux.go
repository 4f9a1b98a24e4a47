package flash

import (
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/fpga/csd/memory"
)

// lentFile lends the bytes of a file, which it maps. The file is mapped only as long as nobody else can change it: the
// kernel grants a lease on a file that nobody else has open (or, if this process only reads it, that nobody has open
// for writing), and keeps whoever opens or cuts the file later waiting until the lease is given back. It is given back
// when no one reads lent bytes any more, and asked for again a little later.
//
// Some kinds of file system grant no lease, or grant one that binds the processes of one machine only. Their files are
// not lent.
type lentFile struct {
	f      *os.File
	lease  int            // unix.F_WRLCK, which keeps all others away, or unix.F_RDLCK
	terms  *atomic.Uint64 // leases so far; files that are lent in turn count them together
	recall func()

	mu      sync.Mutex     // guards what follows; never held while recall is called
	bytes   []byte         // the file, mapped
	touched []uint64       // a bit for each touchedBytes of the file that was read since it was mapped and has pages still
	pieces  []int64        // the set bits of touched
	term    uint64         // The lease has this number; 0: there is no lease.
	next    time.Time      // no lease is asked for before
	wake    chan os.Signal // looks after the lease; nil before the first
	done    sync.WaitGroup
	closed  bool

	recalling bool // what was lent in the last term may still be read
}

const (
	touchedBytes  = 2 << 20
	residentBytes = 64 << 20    // of the mapping: when as many were touched, the pages of all go, and come again when read
	leaseInterval = time.Second // between two attempts to get a lease
	faultAround   = 64 << 10    // of cached bytes that Linux maps at an access to one of them, aligned
)

// lendingFileSystems are the file systems on which a lease keeps every writer away.
var lendingFileSystems = []int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC,
}

// newLentFile returns what lends the bytes of a file, nil if its file system is none of those that can. writable says
// that the file is open for writing, terms counts the leases.
func newLentFile(f *os.File, writable bool, terms *atomic.Uint64) *lentFile {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil || !slices.Contains(lendingFileSystems, st.Type) {
		return nil
	}
	if writable {
		return &lentFile{f: f, lease: unix.F_WRLCK, terms: terms}
	}
	return &lentFile{f: f, lease: unix.F_RDLCK, terms: terms}
}

// lend returns bytes [off, off+n) of the file, and the term of the lease under which they lie there.
func (l *lentFile) lend(off, n int64) (b []byte, term uint64, ok bool) {
	if l == nil || n <= 0 || off < 0 {
		return nil, 0, false
	}
	l.mu.Lock()
	if l.term == 0 && !l.acquire() || off > int64(len(l.bytes)) || n > int64(len(l.bytes))-off {
		l.mu.Unlock()
		return nil, 0, false
	}
	all, term := l.bytes, l.term
	first, last := off/touchedBytes, (off+n-1)/touchedBytes
	for first <= last && l.isTouched(first) {
		first++
	}
	l.mu.Unlock()
	if first <= last {
		// The bytes are read from the medium here and not when an execution needs them, so that an error of the medium is
		// one of the command that moves blocks. For that they are then read as any other.
		lo, hi := first*touchedBytes, min((last+1)*touchedBytes, int64(len(all)))
		if l.populate(all[lo:hi], lo) != nil {
			return nil, 0, false
		}
		l.mu.Lock()
		if l.term == term {
			l.touch(first, last)
		}
		l.mu.Unlock()
	}
	return all[off : off+n], term, true
}

// populate reads bytes of the mapped file, which begin and end where pages do, and enters their pages in the process's
// page table. Where all of them lie in the page cache, one access enters the pages around it too, which takes a
// fraction of the time of MADV_POPULATE_READ. Elsewhere that call waits for the medium, as an access would, but leaves
// its processor to others.
func (l *lentFile) populate(mapped []byte, off int64) error {
	if l.isCached(off, int64(len(mapped))) && faultPagesIn(mapped) {
		return nil
	}
	return unix.Madvise(mapped, unix.MADV_POPULATE_READ)
}

// isCached reports whether bytes of the file lie in the page cache. It may report false where they do: before Linux
// 6.5, and for files of others.
func (l *lentFile) isCached(off, n int64) bool {
	var stat unix.Cachestat_t
	err := unix.Cachestat(uint(l.f.Fd()), &unix.CachestatRange{Off: uint64(off), Len: uint64(n)}, &stat, 0)
	page := uint64(os.Getpagesize())
	return err == nil && stat.Cache >= (uint64(n)+page-1)/page
}

// faultPagesIn reads a byte of each faultAround bytes of a mapped file. It reports false if the medium failed.
func faultPagesIn(mapped []byte) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if !memory.IsFault(r) {
				panic(r)
			}
			ok = false
		}
	}()
	sum := byte(0)
	for i := 0; i < len(mapped); i += faultAround {
		sum += mapped[i]
	}
	runtime.KeepAlive(sum)
	return true
}

// touch notes that pieces first to last of the file were read. When enough were, it takes the pages of all from the
// process, whose memory they count as: they stay in the page cache, and come back where they are read again. l.mu is
// held.
func (l *lentFile) touch(first, last int64) {
	if len(l.pieces) >= residentBytes/touchedBytes {
		_ = unix.Madvise(l.bytes, unix.MADV_DONTNEED)
		for _, i := range l.pieces {
			l.touched[i/64] &^= 1 << (i % 64)
		}
		l.pieces = l.pieces[:0]
	}
	for i := first; i <= last; i++ {
		if !l.isTouched(i) {
			l.touched[i/64] |= 1 << (i % 64)
			l.pieces = append(l.pieces, i)
		}
	}
}

func (l *lentFile) isTouched(i int64) bool { return l.touched[i/64]>>(i%64)&1 != 0 }

// acquire asks for a lease and maps the file, unless it was asked in vain a little ago. l.mu is held.
func (l *lentFile) acquire() bool {
	if l.closed || l.recalling || time.Now().Before(l.next) {
		return false
	}
	l.next = time.Now().Add(leaseInterval)
	if l.wake == nil {
		l.wake = make(chan os.Signal, 1)
		signal.Notify(l.wake, unix.SIGIO)
		l.done.Go(l.lookAfter)
	}
	fd := int(l.f.Fd())
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, l.lease); err != nil {
		return false
	}
	// The kernel reports to the thread that asked, which may end: it is to report to the process. A report of between the
	// two calls is seen by held.
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETOWN, os.Getpid())
	if err != nil || !l.held() || !l.mapFile() {
		l.giveBack()
		return false
	}
	l.term = l.terms.Add(1)
	return true
}

// held reports whether the kernel still grants the lease and nobody waits for it.
func (l *lentFile) held() bool {
	kind, err := unix.FcntlInt(l.f.Fd(), unix.F_GETLEASE, 0)
	return err == nil && kind == l.lease
}

// mapFile maps the file as large as it is. l.mu is held.
func (l *lentFile) mapFile() bool {
	st, err := l.f.Stat()
	if err != nil || st.Size() == 0 || int64(int(st.Size())) != st.Size() {
		return false
	}
	if int64(len(l.bytes)) == st.Size() {
		clear(l.touched) // somebody may have cut it meanwhile
		l.pieces = nil
		return true
	}
	if l.unmap() != nil {
		return false
	}
	b, err := unix.Mmap(int(l.f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return false
	}
	l.bytes, l.touched = b, make([]uint64, (st.Size()+touchedBytes-1)/touchedBytes/64+1)
	return true
}

func (l *lentFile) unmap() error {
	b := l.bytes
	l.bytes, l.touched, l.pieces = nil, nil, nil
	if b == nil {
		return nil
	}
	return unix.Munmap(b)
}

func (l *lentFile) giveBack() { _, _ = unix.FcntlInt(l.f.Fd(), unix.F_SETLEASE, unix.F_UNLCK) }

// lasts reports whether the lease of a term holds.
func (l *lentFile) lasts(term uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if term == 0 || l.term != term {
		return false
	}
	if l.held() {
		return true
	}
	select {
	case l.wake <- unix.SIGIO: // in case that no signal came
	default:
	}
	return false
}

// lookAfter is a goroutine: it gives the lease back when another process waits for it. It ends with close.
func (l *lentFile) lookAfter() {
	for range l.wake {
		l.mu.Lock()
		broken := l.term != 0 && !l.held()
		if broken {
			l.term, l.recalling, l.next = 0, true, time.Now().Add(leaseInterval)
		}
		recall := l.recall
		l.mu.Unlock()
		if broken {
			recall()
			l.giveBack()
			l.mu.Lock()
			l.recalling = false
			l.mu.Unlock()
		}
	}
}

// close ends the lease. Nobody reads lent bytes any more.
func (l *lentFile) close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.closed, l.term = true, 0
	wake := l.wake
	l.mu.Unlock()
	if wake != nil {
		signal.Stop(wake)
		close(wake)
		l.done.Wait()
		l.giveBack()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unmap()
}
