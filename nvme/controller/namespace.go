package controller

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// Identifiers of namespaces that ChangeNamespaces adds. Those below are the drive's own, and on a drive of n regions
// the n - 1 from FirstAddedNSID on are too.
const (
	FirstAddedNSID = cs.NamespaceCompute + 1
	MaxNSID        = 128 // NN of Identify
)

// Errors of ChangeNamespaces.
var (
	ErrNamespaceExists = errors.New("there is a namespace with this identifier")
	ErrNoNamespace     = errors.New("no namespace with this identifier was added")
)

// Namespace describes a namespace of blocks (NVM command set) that a drive has beside its own. Flash is required.
type Namespace struct {
	NSID      uint32 // FirstAddedNSID to MaxNSID; 0: the first that is free
	Flash     Flash
	BlockSize uint32 // bytes of a logical block: 512 (default) or 4096
	// UUID identifies the content of Flash: hosts recognise a namespace by it. Zero: a random one.
	UUID uuid.UUID
}

// namespace is a namespace with blocks.
type namespace struct {
	id     uint32
	flash  Flash
	shift  uint   // a block holds 1<<shift bytes
	blocks uint64 // blocks is the number of blocks of the namespace.
	uuid   uuid.UUID

	readOnly bool // the flash is

	// users is the number of users of the flash. When the namespace is retired, the constant retired is added to it, so
	// that it is below 0.
	users atomic.Int64
	once  sync.Once
	idle  chan struct{} // closed when the namespace is retired and the flash is not in use
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

// enterFlash reports whether the caller may use the flash, which then stays until leaveFlash: the namespace is not
// retired.
func (ns *namespace) enterFlash() bool {
	if ns.users.Add(1) > 0 {
		return true
	}
	ns.leaveFlash()
	return false
}

func (ns *namespace) leaveFlash() {
	if ns.users.Add(-1) == retired {
		ns.once.Do(func() { close(ns.idle) }) // once: a refused enterFlash leaves too
	}
}

// retireAndWait ends the use of the flash: enterFlash fails from now on, and retireAndWait waits until all users have
// left. It is called once.
func (ns *namespace) retireAndWait() {
	ns.users.Add(1) // so that leaveFlash finds that there is no user left
	ns.users.Add(retired)
	ns.leaveFlash()
	<-ns.idle
}

// isRetiring reports whether the namespace is being retired, so that its users should leave.
func (ns *namespace) isRetiring() bool { return ns.users.Load() < 0 }

// checkBlocks checks that the n blocks from slba on exist.
func (ns *namespace) checkBlocks(slba, n uint64) nvme.Status {
	if slba > ns.blocks || n > ns.blocks-slba {
		return nvme.LBAOutOfRange
	}
	return nvme.Success
}

// spaces are the namespaces with blocks by identifier: a value that is replaced, not changed.
type spaces [MaxNSID + 1]*namespace

func (s *spaces) blockNamespace(nsid uint32) *namespace {
	if nsid < uint32(len(s)) {
		return s[nsid]
	}
	return nil
}

// blockNamespace returns a namespace with blocks, or nil.
func (s *Subsystem) blockNamespace(nsid uint32) *namespace {
	return s.spaces.Load().blockNamespace(nsid)
}

// eachNamespace calls f for each namespace with blocks, which is not retired meanwhile. The errors are joined.
func (s *spaces) eachNamespace(f func(*namespace) error) (err error) {
	for _, ns := range s {
		if ns != nil && ns.enterFlash() {
			err = errors.Join(err, f(ns))
			ns.leaveFlash()
		}
	}
	return err
}

// syncAll puts what was written to any namespace on stable storage.
func (s *Subsystem) syncAll() error {
	return s.spaces.Load().eachNamespace(func(ns *namespace) error {
		if ns.readOnly {
			return nil
		}
		return ns.flash.Sync()
	})
}

// ChangeNamespaces removes and adds namespaces while the drive runs, in one step: hosts see the namespaces of before or
// those of after, and an error means that nothing has changed. It returns the identifiers of the added namespaces in
// the order of add, and reports the change to the hosts that asked for such events.
//
// An identifier of remove may be used again in add. Commands to a removed namespace end with Invalid Namespace or
// Format from then on, and so do commands that run and take long; ChangeNamespaces waits for the others. When it
// returns, the drive uses the flash of the removed namespaces no longer. The caller syncs what was written there and
// not flushed. The drive uses the flash of an added namespace until it is removed, or every association is closed.
//
// The error wraps ErrNamespaceExists or ErrNoNamespace where that is the cause.
func (s *Subsystem) ChangeNamespaces(remove []uint32, add []Namespace) ([]uint32, error) {
	if s.discovery != nil {
		return nil, errors.New("change namespaces: a discovery subsystem has no namespaces")
	}
	added := make([]*namespace, len(add))
	for i, n := range add {
		var err error
		if added[i], err = n.openNamespace(s.firstAdded()); err != nil {
			return nil, fmt.Errorf("add namespace %d: %w", n.NSID, err)
		}
	}
	removed, err := s.replaceSpaces(remove, added)
	if err != nil {
		return nil, err
	}
	ids := make([]uint32, len(added))
	for i, ns := range added {
		ids[i] = ns.id
		s.log.Info("namespace added", "nsid", ns.id, "bytes", ns.flash.Size(), "block_bytes", 1<<ns.shift)
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(remove, ids)))) {
		s.NamespaceChanged(id)
	}
	for _, ns := range removed {
		ns.retireAndWait()
		s.log.Info("namespace removed", "nsid", ns.id)
	}
	return ids, nil
}

// openNamespace makes the namespace that n describes. Its identifier is 0 where n leaves the choice, and else not below
// first.
func (n Namespace) openNamespace(first uint32) (*namespace, error) {
	if n.NSID != 0 && (n.NSID < first || n.NSID > MaxNSID) {
		return nil, fmt.Errorf("use an identifier from %d to %d: those below are the drive's own", first, MaxNSID)
	}
	if n.Flash == nil {
		return nil, errors.New("no flash: Namespace.Flash is required")
	}
	if n.BlockSize == 0 {
		n.BlockSize = 512
	}
	ns, err := newNamespace(n.NSID, n.Flash, n.BlockSize)
	if err != nil {
		return nil, err
	}
	if ns.uuid = n.UUID; ns.uuid == (uuid.UUID{}) {
		if ns.uuid, err = uuid.NewRandom(); err != nil {
			return nil, fmt.Errorf("random uuid: %w", err)
		}
	}
	return ns, nil
}

// replaceSpaces replaces the namespaces with blocks, and returns those that are gone. Where it fails, nothing has
// changed.
func (s *Subsystem) replaceSpaces(remove []uint32, added []*namespace) (removed []*namespace, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	next := *s.spaces.Load()
	for _, id := range remove {
		ns := next.blockNamespace(id)
		if ns == nil || id < s.firstAdded() {
			return nil, fmt.Errorf("remove namespace %d: %w", id, ErrNoNamespace)
		}
		removed = append(removed, ns)
		next[id] = nil
	}
	// Identifiers that were asked for first: a free one must not be taken from under them.
	for _, ns := range added {
		if ns.id == 0 {
			continue
		}
		if next[ns.id] != nil {
			return nil, fmt.Errorf("add namespace %d: %w", ns.id, ErrNamespaceExists)
		}
		next[ns.id] = ns
	}
	for _, ns := range added {
		if ns.id != 0 {
			continue
		}
		first := s.firstAdded()
		free := slices.Index(next[first:], nil)
		if free < 0 {
			return nil, fmt.Errorf("add a namespace: there are %d already: %w", MaxNSID-first+1, ErrNamespaceExists)
		}
		ns.id = first + uint32(free)
		next[ns.id] = ns
	}
	s.spaces.Store(&next)
	return removed, nil
}
