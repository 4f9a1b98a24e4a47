package controller

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// Identifiers of namespaces that AddNamespace adds. Those below are the drive's own.
const (
	FirstAddedNSID = cs.NamespaceCompute + 1
	MaxNSID        = 128 // NN, as Identify tells it
)

// Errors of AddNamespace and RemoveNamespace.
var (
	ErrNamespaceExists = errors.New("there is a namespace with this identifier")
	ErrNoNamespace     = errors.New("no namespace with this identifier was added")
)

// Namespace is one of blocks (NVM command set) that a drive has beside its own. Flash is required.
type Namespace struct {
	NSID      uint32 // FirstAddedNSID to MaxNSID; 0: the first that is free
	Flash     Flash
	BlockSize uint32 // bytes of a logical block: 512 (default) or 4096
	// UUID is that of what Flash holds: hosts know a namespace by it. Zero: a random one.
	UUID uuid.UUID
}

// namespace is one with blocks, while it is there.
type namespace struct {
	id     uint32
	flash  Flash
	shift  uint   // a block holds 1<<shift bytes
	blocks uint64 // that there are
	uuid   uuid.UUID

	readOnly bool // the flash is

	// users is how many use the flash; from retirement on less than 0, by so much more than retired.
	users atomic.Int64
	once  sync.Once
	idle  chan struct{} // closed when it is retired and nobody uses the flash
}

const retired = math.MinInt64 / 2

func newNamespace(id uint32, flash Flash, blockSize uint32) (*namespace, error) {
	ns := &namespace{id: id, flash: flash, readOnly: flash.ReadOnly(), idle: make(chan struct{})}
	switch blockSize {
	case 512:
		ns.shift = 9
	case 4096:
		ns.shift = 12
	default:
		return nil, fmt.Errorf("blocks of %d bytes: use 512 or 4096", blockSize)
	}
	size := flash.Size()
	if size < int64(blockSize) {
		return nil, fmt.Errorf("flash of %d bytes holds no block of %d", size, blockSize)
	}
	ns.blocks = uint64(size) >> ns.shift
	return ns, nil
}

// enter keeps the flash until leave, unless the namespace is retired.
func (ns *namespace) enter() bool {
	if ns.users.Add(1) > 0 {
		return true
	}
	ns.leave()
	return false
}

func (ns *namespace) leave() {
	if ns.users.Add(-1) == retired {
		ns.once.Do(func() { close(ns.idle) }) // not by those who come later and find it retired
	}
}

// retire lets nobody in any more, and waits until those who are have left. It is called once.
func (ns *namespace) retire() {
	ns.users.Add(1) // so that leave is what finds nobody left
	ns.users.Add(retired)
	ns.leave()
	<-ns.idle
}

// retiring tells those who entered that they should leave.
func (ns *namespace) retiring() bool { return ns.users.Load() < 0 }

// span checks that n blocks from slba on exist.
func (ns *namespace) span(slba, n uint64) nvme.Status {
	if slba > ns.blocks || n > ns.blocks-slba {
		return nvme.LBAOutOfRange
	}
	return nvme.Success
}

// spaces are the namespaces with blocks by identifier: a value that is replaced, not changed.
type spaces [MaxNSID + 1]*namespace

func (s *spaces) find(nsid uint32) *namespace {
	if nsid < uint32(len(s)) {
		return s[nsid]
	}
	return nil
}

// space is a namespace with blocks, or nil.
func (s *Subsystem) space(nsid uint32) *namespace { return s.spaces.Load().find(nsid) }

// each calls f for each namespace with blocks, which stays while it does; the errors are joined.
func (s *spaces) each(f func(*namespace) error) (err error) {
	for _, ns := range s {
		if ns != nil && ns.enter() {
			err = errors.Join(err, f(ns))
			ns.leave()
		}
	}
	return err
}

// sync puts what was written to any namespace on stable storage.
func (s *Subsystem) sync() error {
	return s.spaces.Load().each(func(ns *namespace) error {
		if ns.readOnly {
			return nil
		}
		return ns.flash.Sync()
	})
}

// AddNamespace adds a namespace while the drive runs, tells the hosts that asked for such events, and returns its
// identifier. The drive uses its flash until RemoveNamespace has returned, or every association is closed. The error wraps
// ErrNamespaceExists where that is the cause; nothing has changed then.
func (s *Subsystem) AddNamespace(n Namespace) (uint32, error) {
	if n.BlockSize == 0 {
		n.BlockSize = 512
	}
	id, err := s.addNamespace(n)
	if err != nil {
		return 0, fmt.Errorf("add namespace %d: %w", n.NSID, err)
	}
	s.log.Info("namespace added", "nsid", id, "bytes", n.Flash.Size(), "block_bytes", n.BlockSize)
	s.NamespaceChanged(id)
	return id, nil
}

func (s *Subsystem) addNamespace(n Namespace) (uint32, error) {
	if s.discovery != nil {
		return 0, errors.New("a discovery subsystem has no namespaces")
	}
	if n.NSID != 0 && (n.NSID < FirstAddedNSID || n.NSID > MaxNSID) {
		return 0, fmt.Errorf("use an identifier from %d to %d: those below are the drive's own", FirstAddedNSID, MaxNSID)
	}
	if n.Flash == nil {
		return 0, errors.New("no flash: Namespace.Flash is required")
	}
	ns, err := newNamespace(n.NSID, n.Flash, n.BlockSize)
	if err != nil {
		return 0, err
	}
	if ns.uuid = n.UUID; ns.uuid == (uuid.UUID{}) {
		if ns.uuid, err = uuid.NewRandom(); err != nil {
			return 0, fmt.Errorf("random uuid: %w", err)
		}
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	next := *s.spaces.Load()
	if ns.id == 0 {
		for ns.id = FirstAddedNSID; ns.id <= MaxNSID && next[ns.id] != nil; ns.id++ {
		}
		if ns.id > MaxNSID {
			return 0, fmt.Errorf("there are %d already: %w", MaxNSID-FirstAddedNSID+1, ErrNamespaceExists)
		}
	}
	if next[ns.id] != nil {
		return 0, ErrNamespaceExists
	}
	next[ns.id] = ns
	s.spaces.Store(&next)
	return ns.id, nil
}

// RemoveNamespace takes a namespace that was added away while the drive runs, and tells the hosts that asked for such
// events. Commands to it from then on end with Invalid Namespace or Format, and so do those that run and take long; it waits for
// the others. When it returns, nothing uses the flash any more. What was written and not flushed is the caller's to sync.
// The error wraps ErrNoNamespace.
func (s *Subsystem) RemoveNamespace(nsid uint32) error {
	s.changing.Lock()
	next := *s.spaces.Load()
	ns := next.find(nsid)
	if ns == nil || nsid < FirstAddedNSID {
		s.changing.Unlock()
		return fmt.Errorf("remove namespace %d: %w", nsid, ErrNoNamespace)
	}
	next[nsid] = nil
	s.spaces.Store(&next)
	s.changing.Unlock()
	s.NamespaceChanged(nsid)
	ns.retire()
	s.log.Info("namespace removed", "nsid", nsid)
	return nil
}
