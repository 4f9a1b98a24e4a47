package openfiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// budgetShare is the part of the descriptors that a process may have which is the default budget: connections, other
// files and other pools need descriptors too.
const budgetShare = 4

// defaultLimit is how many descriptors a process may have, where the system does not say.
const defaultLimit = 512

// Pool holds the descriptors of many files, of which a few are open at a time.
type Pool struct {
	budget int

	mu     sync.Mutex       // guards what follows, and the fields of files that say so
	byPath map[string]*File // It has the files that are not closed.
	open   int              // descriptors, idle or in use
	idle   File             // the head of a ring of files whose descriptors nobody uses; idle.next was used longest ago
}

// New returns a pool that keeps at most budget descriptors open, beside those that are in use. A budget of 0 is a
// quarter of the descriptors that the process may have.
func New(budget int) *Pool {
	if budget <= 0 {
		budget = max(descriptorLimit()/budgetShare, 1)
	}
	p := &Pool{budget: budget, byPath: map[string]*File{}}
	p.idle.next, p.idle.previous = &p.idle, &p.idle
	return p
}

// Budget returns how many descriptors the pool keeps open at most, beside those that are in use.
func (p *Pool) Budget() int { return p.budget }

// File is a regular file whose descriptor its pool opens and closes. It implements io.ReaderAt.
type File struct {
	pool  *Pool
	path  string // absolute
	state State

	// pool.mu guards the fields below.
	file           *os.File // nil: it has no descriptor
	opens          int      // calls of Open without Close
	users          int      // They use the descriptor now.
	next, previous *File    // in the ring of idle files; nil outside it
}

// Open opens a regular file and notes its state. The caller closes the file. If the file of the path is open in the
// pool already, Open returns it, with the state that it had.
func (p *Pool) Open(path string) (*File, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	f := p.byPath[absolute]
	if f != nil {
		f.opens++
	}
	p.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f = &File{pool: p, path: absolute, opens: 1}
	if err := f.open(path, false); err != nil {
		return nil, err
	}
	f.Release()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPath[absolute] == nil { // otherwise a concurrent call opened it, too
		p.byPath[absolute] = f
	}
	return f, nil
}

// Path returns the absolute path.
func (f *File) Path() string { return f.path }

// State returns the state that the file had when it was opened first.
func (f *File) State() State { return f.state }

// Acquire returns the file's descriptor, which stays open until Release. The caller must not close it. The error is a
// *ChangedError if another file, or another state of the file, has the path now.
func (f *File) Acquire() (*os.File, error) {
	f.pool.mu.Lock()
	if f.opens == 0 {
		f.pool.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", f.path, os.ErrClosed)
	}
	if file := f.file; file != nil {
		f.useLocked()
		f.pool.mu.Unlock()
		return file, nil
	}
	f.pool.mu.Unlock()
	if err := f.open(f.path, true); err != nil {
		return nil, err
	}
	return f.file, nil
}

// useLocked notes a use of a file that has a descriptor.
func (f *File) useLocked() {
	f.users++
	if f.next != nil {
		f.next.previous, f.previous.next = f.previous, f.next
		f.next, f.previous = nil, nil
	}
}

// open opens the descriptor and uses it. A file that is opened again must have its state.
func (f *File) open(path string, again bool) error {
	p := f.pool
	p.mu.Lock()
	p.open++ // before the file is opened, so that concurrent opens keep the budget together
	spare := p.takeIdleLocked(p.open - p.budget)
	p.mu.Unlock()
	closeAll(spare)
	file, state, err := OpenRegular(path)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		p.mu.Lock()
		spare := p.takeIdleLocked(p.open)
		p.mu.Unlock()
		closeAll(spare)
		if file, state, err = OpenRegular(path); errors.Is(err, syscall.EMFILE) {
			err = fmt.Errorf("%w: let this process open more (ulimit -n)", err)
		}
	}
	if err == nil && again && state != f.state {
		err = errors.Join(&ChangedError{Path: f.path, Was: f.state, Is: state}, file.Close())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && f.opens == 0 {
		err = errors.Join(fmt.Errorf("%s: %w", f.path, os.ErrClosed), file.Close())
	}
	if err != nil {
		p.open--
		return err
	}
	if f.file != nil { // another reader opened it meanwhile
		p.open--
		f.useLocked()
		return file.Close()
	}
	if !again {
		f.state = state
	}
	f.file, f.users = file, 1
	return nil
}

// takeIdleLocked takes n descriptors out of the pool, or fewer if fewer are idle: those that were used longest ago.
func (p *Pool) takeIdleLocked(n int) (files []*os.File) {
	for ; n > 0 && p.idle.next != &p.idle; n-- {
		f := p.idle.next
		p.idle.next, f.next.previous = f.next, &p.idle
		f.next, f.previous = nil, nil
		files = append(files, f.file)
		f.file = nil
		p.open--
	}
	return files
}

// closeAll closes descriptors that were only read: there is nothing that could be lost.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// Release ends a use of the descriptor that Acquire returned.
func (f *File) Release() {
	p := f.pool
	p.mu.Lock()
	var spare []*os.File
	if f.users--; f.users == 0 {
		last := p.idle.previous
		last.next, p.idle.previous, f.previous, f.next = f, f, last, &p.idle
		spare = p.takeIdleLocked(p.open - p.budget)
	}
	p.mu.Unlock()
	closeAll(spare)
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	file, err := f.Acquire()
	if err != nil {
		return 0, err
	}
	defer f.Release()
	return file.ReadAt(b, off)
}

// Close ends what one call of Open began. The last Close closes the file; nobody may use its descriptor then.
func (f *File) Close() error {
	p := f.pool
	p.mu.Lock()
	var file *os.File
	if f.opens = max(f.opens-1, 0); f.opens == 0 {
		if p.byPath[f.path] == f {
			delete(p.byPath, f.path)
		}
		if file = f.file; file != nil {
			f.useLocked() // it leaves the ring
			f.file = nil
			p.open--
		}
	}
	p.mu.Unlock()
	if file == nil {
		return nil
	}
	return file.Close()
}
