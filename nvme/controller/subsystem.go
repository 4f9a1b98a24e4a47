package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/health"
	"github.com/millrace/millrace/nvme/controller/programs"
	"github.com/millrace/millrace/nvme/controller/slm"
	"github.com/millrace/millrace/nvme/cs"
)

// MDTS is the most data that one command carries, in bytes: 2^8 times the smallest page of 4 KiB.
const MDTS = 1 << (mdtsShift + 12)

const mdtsShift = 8

// Limits of a controller, as Identify reports them.
const (
	AbortLimit      = 4   // Abort commands at a time
	AsyncEventLimit = 4   // Asynchronous Event Requests at a time
	AdminDepth      = 32  // commands in the admin queue
	MaxDepth        = 128 // commands in an I/O queue
	MaxQueues       = 64  // I/O queues
	MaxRangeSets    = 64  // memory range sets of an association
	maxControllerID = 0xffef
)

// Options describe a subsystem. Flash or Compute is required; the zero value of every other field works.
type Options struct {
	Flash     Flash   // nil: a drive without flash, which has no namespace 1
	BlockSize uint32  // bytes of a logical block: 512 (default) or 4096
	Compute   Compute // nil: a plain drive, with namespace 1 only
	NoMap     bool    // Local does not lend views of subsystem local memory

	UUID     uuid.UUID // UUID is the drive's, from which namespaces get theirs; zero: a random one for each start.
	NQN      string    // default nqn.2014-08.org.nvmexpress:uuid:UUID; at most 223 bytes
	Serial   string    // default from UUID; at most 20 characters
	Model    string    // default "Millrace CSD"; at most 40
	Firmware string    // default "1.0"; at most 8

	// HostIOShare is how much of the time, in percent, Read, Write and the other commands of the NVM command set may use
	// the flash while regions compute; they then take turns. MinHostIOShare to NoHostIOLimit; 0 means NoHostIOLimit.
	HostIOShare int

	MaxAssociations int             // More are refused; the default is 64, and the most 1024.
	Counters        health.Counters // what the drive counted before it was powered on

	// Lost returns the bytes of namespace 1 that the drive has lost, n from off on. They are whole blocks, and read as
	// zeros until they are written again. n is 0 where no bytes are lost. SMART and log page C2h report them. nil: a drive
	// that loses nothing.
	Lost func() (off, n int64)

	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default: no log
}

// Subsystem is a drive: its namespaces, its computation, its health. It is shared by the controllers of its
// associations. Methods are safe for concurrent use.
type Subsystem struct {
	opt        Options
	tables     tables
	slm        *slm.Memory
	prog       *programs.Slots
	health     *health.Monitor
	hostIO     *hostGate  // nil: no limit
	inputRange int        // Blocks may be lent in the input range of programs.
	discovery  *discovery // nil: a drive
	log        *slog.Logger

	spaces   atomic.Pointer[spaces] // namespace 1 and those that were added
	changing sync.Mutex             // held while spaces is replaced

	mu       sync.Mutex
	nextID   uint16
	live     map[uint16]*Controller
	admitted int // admitted counts the live associations that were admitted.
}

// New makes a subsystem over flash and, if there is one, a compute device.
func New(opt Options) (*Subsystem, error) {
	if opt.Flash == nil && opt.Compute == nil {
		return nil, errors.New("new subsystem: neither flash nor computation: Options.Flash or Options.Compute is required")
	}
	var own *namespace
	if opt.Flash != nil {
		if opt.BlockSize == 0 {
			opt.BlockSize = 512
		}
		var err error
		if own, err = newNamespace(cs.NamespaceNVM, opt.Flash, opt.BlockSize); err != nil {
			return nil, fmt.Errorf("new subsystem: %w", err)
		}
	} else if opt.BlockSize = 0; opt.Lost != nil {
		opt.Lost = nil // there are no bytes to lose
	}
	if opt.UUID == (uuid.UUID{}) {
		id, err := uuid.NewRandom()
		if err != nil {
			return nil, fmt.Errorf("new subsystem: random uuid: %w", err)
		}
		opt.UUID = id
	}
	setDefault(&opt.NQN, "nqn.2014-08.org.nvmexpress:uuid:"+opt.UUID.String())
	setDefault(&opt.Serial, fmt.Sprintf("%X", opt.UUID[:10]))
	setDefault(&opt.Model, "Millrace CSD")
	setDefault(&opt.Firmware, "1.0")
	for _, f := range []struct {
		name, value string
		most        int
	}{{"NQN", opt.NQN, 223}, {"serial number", opt.Serial, 20}, {"model", opt.Model, 40}, {"firmware revision",
		opt.Firmware, 8}} {
		if len(f.value) > f.most {
			return nil, fmt.Errorf("new subsystem: %s %q has more than %d bytes", f.name, f.value, f.most)
		}
	}
	if opt.MaxAssociations == 0 {
		opt.MaxAssociations = 64
	}
	if opt.MaxAssociations < 0 || opt.MaxAssociations > 1024 {
		return nil, fmt.Errorf("new subsystem: %d associations: use 1 to 1024", opt.MaxAssociations)
	}
	if err := checkHostIOShare(opt.HostIOShare); err != nil {
		return nil, fmt.Errorf("new subsystem: %w", err)
	}
	if opt.Lost == nil {
		opt.Lost = func() (off, n int64) { return 0, 0 }
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Subsystem{
		opt: opt, tables: newTables(opt.Flash != nil, opt.Compute != nil), log: opt.Logger,
		health: health.New(opt.Counters, opt.Now), live: map[uint16]*Controller{},
		hostIO: newHostGate(opt.HostIOShare, opt.Now),
	}
	if own != nil {
		own.uuid = s.namespaceUUID(own.id)
	}
	s.spaces.Store(&spaces{cs.NamespaceNVM: own})
	if opt.Compute != nil {
		var err error
		s.prog, err = programs.New(opt.Compute.Programs(),
			func(asks *slm.Owner, region int) []string { return s.slm.Holders(asks, region) })
		if err != nil {
			return nil, fmt.Errorf("new subsystem: %w", err)
		}
		s.slm = slm.New(opt.Compute.SLM(), s.prog.Limits().Weights, opt.Compute.ClearSLM)
		s.lendFromFlash(opt.Flash, opt.Compute)
	}
	return s, nil
}

func setDefault(s *string, v string) {
	if *s == "" {
		*s = v
	}
}

// NQN returns the subsystem's qualified name.
func (s *Subsystem) NQN() string { return s.opt.NQN }

// FlashCopied returns how many bytes of flash the Memory Copy commands of all associations have moved into the device
// memory of a region, or lent. MovedBytes has those of Preprocess.
func (s *Subsystem) FlashCopied(region int) uint64 { return s.health.Moves.Copied[region].Load() }

// BlockSize returns the size in bytes of a logical block of namespace 1, 0 for a drive without flash.
func (s *Subsystem) BlockSize() uint32 { return s.opt.BlockSize }

// Blocks returns the number of logical blocks of namespace 1, 0 for a drive without flash.
func (s *Subsystem) Blocks() uint64 {
	if ns := s.blockNamespace(cs.NamespaceNVM); ns != nil {
		return ns.blocks
	}
	return 0
}

// Counters returns what the drive has counted in its life, for the owner of the drive to keep while it is off.
func (s *Subsystem) Counters() health.Counters { return s.health.Counters() }

// SetHealth sets what the drive's sensors measure now, and reports a warning to the hosts that asked for such events.
func (s *Subsystem) SetHealth(h health.Sensors) {
	s.health.SetSensors(h)
	s.eachController(func(c *Controller) { c.healthChanged(h) })
}

// NamespaceChanged reports to the hosts that Identify of a namespace has changed.
func (s *Subsystem) NamespaceChanged(nsid uint32) {
	s.eachController(func(c *Controller) { c.namespaceChanged(nsid) })
}

// FirmwareActivating reports to the hosts that firmware is about to be activated. They wait until that is done.
func (s *Subsystem) FirmwareActivating() {
	s.eachController(func(c *Controller) { c.raiseEvent(nvme.EventFirmware) })
}

func (s *Subsystem) eachController(f func(*Controller)) {
	s.mu.Lock()
	all := make([]*Controller, 0, len(s.live))
	for _, c := range s.live {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// Associations returns the number of open associations.
func (s *Subsystem) Associations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// namespaces returns the identifiers of the active namespaces, in order.
func (s *Subsystem) namespaces() (ids []uint32) {
	for id, ns := range s.spaces.Load() {
		_, computes := s.computeSet(uint32(id))
		if ns != nil || computes {
			ids = append(ids, uint32(id))
		}
	}
	return ids
}

// commandSet returns the command set of an active namespace.
func (s *Subsystem) commandSet(nsid uint32) (csi uint8, ok bool) {
	if s.blockNamespace(nsid) != nil {
		return nvme.CSINVM, true
	}
	return s.computeSet(nsid)
}

// computeSet returns the command set of a namespace for computation.
func (s *Subsystem) computeSet(nsid uint32) (csi uint8, ok bool) {
	if s.opt.Compute != nil && nsid == cs.NamespaceSLM {
		return nvme.CSISLM, true
	}
	_, ok = s.regionOfNamespace(nsid)
	return nvme.CSICompute, ok
}

// regionOfNamespace returns the region that is a namespace of computational programs.
func (s *Subsystem) regionOfNamespace(nsid uint32) (region int, ok bool) {
	if s.prog == nil || nsid < cs.NamespaceCompute || nsid >= s.firstAdded() {
		return 0, false
	}
	return int(nsid - cs.NamespaceCompute), true
}

// firstAdded returns the first identifier of namespaces that may be added: those below are the drive's own.
func (s *Subsystem) firstAdded() uint32 {
	if s.prog == nil {
		return FirstAddedNSID
	}
	return cs.RegionNamespace(s.prog.Limits().Regions)
}

// namespaceUUID returns a UUID that is always the same for the same drive and namespace, and different for any other.
func (s *Subsystem) namespaceUUID(nsid uint32) uuid.UUID {
	return uuid.NewSHA1(s.opt.UUID, []byte{byte(nsid), byte(nsid >> 8), byte(nsid >> 16), byte(nsid >> 24)})
}
