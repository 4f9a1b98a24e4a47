package controller

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/features"
	"github.com/millrace/millrace/nvme/controller/health"
	"github.com/millrace/millrace/nvme/fabrics"
)

// DiscoveryOptions describe a discovery subsystem. The zero value works and has no entries.
type DiscoveryOptions struct {
	Entries         []fabrics.Entry
	MaxAssociations int              // default 64, at most 1024
	Now             func() time.Time // default time.Now
	Logger          *slog.Logger     // default: no log
}

// discovery is the part of a subsystem that only a discovery subsystem has.
type discovery struct {
	mu  sync.Mutex
	log fabrics.DiscoveryLog
}

// noticeDiscovery is the bit of the Asynchronous Event Configuration feature for changes of the discovery log.
const noticeDiscovery = 1 << 31

// eventDiscoveryChanged says that the discovery log page changed.
var eventDiscoveryChanged = nvme.AsyncEvent{Type: 2, Info: 0xf0, Log: fabrics.LogDiscovery}

const controllerTypeDiscovery = 2

// NewDiscovery makes a discovery subsystem: one without namespaces and I/O queues, whose log page 70h says where
// subsystems can be reached. Everything else about an association, its states, events, keep alive and Abort, is as with
// a drive.
func NewDiscovery(o DiscoveryOptions) *Subsystem {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxAssociations <= 0 || o.MaxAssociations > 1024 {
		o.MaxAssociations = 64
	}
	s := &Subsystem{
		opt: Options{
			NQN: fabrics.DiscoveryNQN, Serial: "discovery", Model: "Millrace discovery", Firmware: "1.0",
			MaxAssociations: o.MaxAssociations, Now: o.Now, Logger: o.Logger,
		},
		tables: discoveryTables(), log: o.Logger, health: health.New(health.Counters{}, o.Now),
		live:      map[uint16]*Controller{},
		discovery: &discovery{log: fabrics.DiscoveryLog{Generation: 1, Entries: slices.Clone(o.Entries)}},
	}
	s.spaces.Store(new(spaces))
	return s
}

func discoveryTables() tables {
	all := newTables(false, false)
	t := tables{io: map[uint8]*table{}}
	for _, op := range []uint8{nvme.AdminGetLogPage, nvme.AdminIdentify, nvme.AdminAbort, nvme.AdminSetFeatures,
		nvme.AdminGetFeatures,
		nvme.AdminAsyncEventRequest, nvme.AdminKeepAlive} {
		t.admin[op] = all.admin[op]
	}
	return t
}

// IsDiscovery reports whether this is a discovery subsystem.
func (s *Subsystem) IsDiscovery() bool { return s.discovery != nil }

// SetEntries replaces the entries of a discovery subsystem, and reports the change to the hosts that asked for such
// events. It does nothing to a drive.
func (s *Subsystem) SetEntries(entries []fabrics.Entry) {
	d := s.discovery
	if d == nil {
		return
	}
	d.mu.Lock()
	d.log.Generation++
	d.log.Entries = slices.Clone(entries)
	d.mu.Unlock()
	s.eachController(func(c *Controller) { c.raiseEvent(eventDiscoveryChanged) })
}

func (d *discovery) encodePage() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Marshal()
}

// discoveryFeature reports whether a discovery controller has a feature.
func discoveryFeature(fid uint8) bool {
	return fid == nvme.FeatureAsyncEvents || fid == nvme.FeatureKeepAlive
}

func (c *Controller) identifyDiscovery() []byte {
	o := &c.sub.opt
	id := nvme.IdentifyController{
		Serial: o.Serial, Model: o.Model, Firmware: o.Firmware, MDTS: mdtsShift, ControllerID: c.id,
		Version:     nvme.VersionSpec,
		AsyncEvents: noticeDiscovery, Attributes: ctratt, ControllerType: controllerTypeDiscovery, AbortLimit: AbortLimit - 1,
		AsyncEventLimit: AsyncEventLimit - 1, LogAttributes: 1 << 2, KeepAliveGranularity: features.KeepAliveGranularity,
		SQES: 0x66, CQES: 0x44, MaxCommands: AdminDepth, SGLs: sgls, SubsystemNQN: o.NQN,
		CommandCapsule: capsuleCommand, ResponseCapsule: capsuleResponse, DataDescriptors: 1,
	}
	return id.Marshal()
}
