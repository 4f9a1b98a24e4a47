package drives

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/health"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/internal/admission"
	"github.com/millrace/millrace/internal/openfiles"
	"github.com/millrace/millrace/sdk"
)

// Config is one drive of a node's configuration.
type Config struct {
	Name string
	URI  string
	Host host.DriveOptions // how the drive is opened; the Set fills in Device and Skip
	// Open opens a drive that has no URI; nil: URI is opened.
	Open func(context.Context, host.DriveOptions) (*host.Drive, error)
}

// Options are the things that a Set needs of its node. All but Image, Probe, Sources and Device are
// required.
type Options struct {
	Node    string // the node's name, for errors
	Drives  []Config
	Manager *host.Manager
	Splits  *splits.Table
	Image   Image         // the image that the drives are kept at
	Drain   time.Duration // how long splits may go on on a drive that is about to get an image
	Probe   time.Duration // between two probes of a drive; 0 means a second
	// Owner describes the node to a process that finds one of its drives open.
	Owner   func(drive string) *csd.Owner
	Changed func() // a drive's state changed; must not block
	Log     *slog.Logger
	// Sources reads the partitions of drives without flash that are named by a URI.
	Sources host.Sources
	// Device changes how a drive is opened, in tests.
	Device func(drive string, o *sdk.DeviceOptions)
}

// Set is the drives of a node.
type Set struct {
	o           Options
	supervisors []*supervisor    // as configured
	opened      chan struct{}    // wakes RollOut: a drive was opened, or failed to open; capacity 1
	shared      sdk.SharedDrives // in files: each region of a drive has a supervisor
	files       *openfiles.Pool  // This host reads these files for the drives.
	running     sync.WaitGroup

	mu sync.Mutex // guards the supervisors' state
}

// States of a drive. A drive that cannot be used is "failed: " and the reason.
const (
	stateOpening = "opening"
	stateReady   = "ready"
	stateLoading = "loading image"
	failedPrefix = "failed: "
)

// New makes a Set whose drives are not open yet. Until they are, requests for them are refused.
func New(o Options) *Set {
	if o.Probe <= 0 {
		o.Probe = time.Second
	}
	s := &Set{o: o, opened: make(chan struct{}, 1), files: openfiles.New(admission.Reserved / 2)}
	for _, c := range o.Drives {
		v := &supervisor{set: s, config: c, faults: make(chan error, 1),
			known: Status{Name: c.Name, State: stateOpening}}
		s.supervisors = append(s.supervisors, v)
		v.refuse(fmt.Errorf("drive %s: %w: it is being opened", c.Name, errorcode.ErrUnavailable))
	}
	return s
}

// Start opens the drives and keeps them open until ctx ends. It does not wait for them.
func (s *Set) Start(ctx context.Context) {
	for _, v := range s.supervisors {
		s.running.Add(1)
		go func() {
			defer s.running.Done()
			v.run(ctx)
		}()
	}
}

// Wait returns when the goroutines of Start have ended.
func (s *Set) Wait() { s.running.Wait() }

// Status is the state of a drive as far as it is known without asking the drive.
type Status struct {
	Name    string
	State   string           // "opening", "ready", "loading image", "failed: WHY"
	Drained bool             // by an operator: it takes no new splits
	Tried   bool             // it was opened, or failed to open, at least once
	Busy    float64          // engine threads that were busy in the last interval, 0 to threads
	Opens   int              // how often it was opened
	Drift   string           // why it is not at the wanted image; "" if it is
	Drive   *host.Drive      // nil while it is not open
	Health  *health.SMARTLog // nil if the drive does not report it, or was not asked yet
}

// Ready reports whether the drive is open and in order. A drained drive is ready, too.
func (s *Status) Ready() bool { return s.State == stateReady }

// Statuses returns the status of every drive, as configured.
func (s *Set) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Status, len(s.supervisors))
	for i, v := range s.supervisors {
		list[i] = v.known
	}
	return list
}

// status returns the status of a drive by name; its error wraps api.ErrUnknownDrive.
func (s *Set) status(name string) (Status, error) {
	v := s.find(name)
	if v == nil {
		return Status{}, s.unknownDrive(name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return v.known, nil
}

// Known returns an error that wraps api.ErrUnknownDrive unless a drive has the name.
func (s *Set) Known(name string) error {
	if s.find(name) == nil {
		return s.unknownDrive(name)
	}
	return nil
}

// Drive returns an open drive that has not failed, by name.
func (s *Set) Drive(name string) (*host.Drive, error) {
	status, err := s.status(name)
	if err != nil {
		return nil, err
	}
	if status.Drive == nil || strings.HasPrefix(status.State, failedPrefix) {
		return nil, fmt.Errorf("drive %s: %w: %s", name, errorcode.ErrUnavailable, status.State)
	}
	return status.Drive, nil
}

// Siblings returns the other open regions of a drive, which hold what the drive holds.
func (s *Set) Siblings(d *host.Drive) []*host.Drive {
	var list []*host.Drive
	for _, status := range s.Statuses() {
		if other := status.Drive; other != nil && other != d && d.UUID() != "" && other.UUID() == d.UUID() {
			list = append(list, other)
		}
	}
	return list
}

// DriveWithDevice returns an open drive by name, even if the drive has failed, provided that it has a device.
func (s *Set) DriveWithDevice(name string) (*host.Drive, error) {
	status, err := s.status(name)
	if err != nil {
		return nil, err
	}
	if status.Drive == nil || status.Drive.Device() == nil {
		return nil, fmt.Errorf("drive %s: %w: %s", name, errorcode.ErrUnavailable, status.State)
	}
	return status.Drive, nil
}

// NotOpen returns the name of a drive that is not open, or "" if all are.
func (s *Set) NotOpen() string {
	for _, status := range s.Statuses() {
		if status.Drive == nil {
			return status.Name
		}
	}
	return ""
}

// Unready returns why the drives take no splits, or "" if every drive was tried and at least one is ready.
func (s *Set) Unready() string {
	ready := 0
	statuses := s.Statuses()
	for i := range statuses {
		if !statuses[i].Tried {
			return fmt.Sprintf("drive %s is being opened", statuses[i].Name)
		}
		if statuses[i].Ready() {
			ready++
		}
	}
	if ready == 0 && len(statuses) > 0 {
		return fmt.Sprintf("none of %d drives is ready: %s is %s", len(statuses), statuses[0].Name, statuses[0].State)
	}
	return ""
}

// SetDrained makes a drive refuse new splits, or take them again.
func (s *Set) SetDrained(name string, drained bool) error {
	v := s.find(name)
	if v == nil {
		return s.unknownDrive(name)
	}
	v.deciding.Lock()
	s.mu.Lock()
	v.known.Drained = drained
	ready := v.known.Ready()
	s.mu.Unlock()
	if ready {
		v.refuse(v.drainReason(drained))
	}
	v.deciding.Unlock()
	s.o.Log.Info("drive draining", "drive", name, "to", drained)
	s.o.Changed()
	return nil
}

// Fail tells the drive's supervisor that a split failed on the drive. It does not wait. An error that does not put the
// drive in question changes nothing.
func (s *Set) Fail(name string, err error) {
	if v := s.find(name); v != nil && questionsDrive(err) {
		select {
		case v.faults <- err:
		default: // the supervisor is about to look at an earlier one
		}
	}
}

func (s *Set) find(name string) *supervisor {
	for _, v := range s.supervisors {
		if v.config.Name == name {
			return v
		}
	}
	return nil
}

func (s *Set) unknownDrive(name string) error {
	return fmt.Errorf("drive %.80q: %w on node %s", name, api.ErrUnknownDrive, s.o.Node)
}
