package csd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/google/uuid"

	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/fpga/csd/images"
	"github.com/millrace/millrace/fpga/csd/memory"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/internal/hugepages"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

// Defaults of Options.
const (
	DefaultSize = 1 << 30
	// DefaultSLM holds the mini-batches, pages and dictionaries of two streams of RM5. Where these do not fit, a drive
	// moves and unpacks pages of dictionaries twice. The drive does not touch memory that no job uses.
	DefaultSLM = 1 << 30
	// MinSLM and MaxSLM bound the local memory; an execution's six ranges need some pages.
	MinSLM = 64 << 10
	MaxSLM = 1 << 40
	// MaxThreads bounds the engine threads.
	MaxThreads = 256
)

// Block sizes that a drive can have.
const (
	LBA512  = flash.LBA512
	LBA4096 = flash.LBA4096
)

// Why a drive cannot be opened.
var (
	// ErrBusy says that the drive is open already, here or in another process.
	ErrBusy = errors.New("drive is open elsewhere")
	// ErrGeometry says that the drive was created with another size or block size.
	ErrGeometry = flash.ErrGeometry
	// ErrNoDrive says that the drive of a path does not exist.
	ErrNoDrive = errors.New("the drive does not exist")
)

// Options describe a drive to open. The zero value is a new drive in memory.
type Options struct {
	// Path names a drive in a file. Flash is the caller's own flash, which the drive closes. Without either the flash is
	// in memory.
	Path  string
	Flash flash.Flash
	// Create makes the drive in a file. The drive must not exist.
	Create bool
	// Size is the capacity in bytes. 0 means DefaultSize for a new drive, and the present size of an existing drive.
	Size int64
	// LBA is the block size, 512 or 4096. 0 means 512 for a new drive, and the present block size of an existing drive.
	LBA int

	// Diskless makes a drive without flash: it has no namespace 1, computes on what hosts store in its memory, and has
	// neither Size nor LBA. In a file it keeps its identity, its images and which images it takes.
	Diskless bool
	Plain    bool  // no computation: namespace 1 only
	SLMBytes int64 // device memory; 0 means DefaultSLM
	Threads  int   // engine threads of each region of weight 1; 0 means 1

	// Regions is the number of regions, 1 to cs.MaxRegions. 0 means one for a new drive, and as many as it has for an
	// existing one. Another number changes an existing drive: the regions past it end, and new ones start with the stock
	// image.
	Regions int

	// RegionWeights are weights of the regions, one each, 1 to cs.MaxRegionWeight. A region of weight w has w shares of
	// the local memory and w times Threads engine threads. nil means equal weights for a new drive and for another number
	// of regions, and else the weights that the drive has. They give the number of regions where Regions is 0.
	RegionWeights []int

	// HostIOShare is how much of the time, in percent, ordinary reads and writes of hosts may use the flash while regions
	// compute: controller.MinHostIOShare to controller.NoHostIOLimit. 0 means no limit for a new drive, and the share that
	// it has for an existing one. Another share changes an existing drive.
	HostIOShare int

	// Trust changes which images the drive takes. It gets the trust that the drive kept; a new drive takes any image. nil
	// leaves the trust as it is. The result is kept, and holds from the start, also for images that the drive has.
	Trust func(*image.Trust) error

	UUID   uuid.UUID    // UUID is for a drive that is not in a file; zero: random.
	NQN    string       // NQN is that of the subsystem; empty: made from the UUID.
	NoMap  bool         // hosts in the process get no views of the memory
	Logger *slog.Logger // nil: no log

	// Timing makes executions take the time of a modelled drive. nil: native, as fast as the host.
	Timing *timing.Pacing

	// WrapFlash and WrapCompute wrap the flash and the compute device that the controller uses: for an injector of package
	// nvme/faults.
	WrapFlash   func(controller.Flash) controller.Flash
	WrapCompute func(controller.Compute) controller.Compute

	atStep func(name string) // tests end the process at a step of loading or activating an image
}

// Drive is a computational storage drive: controller, flash, memory and engine.
type Drive struct {
	opt   Options
	flash flash.Flash
	sub   *controller.Subsystem
	comp  *compute // nil: plain
	free  func() error

	created bool // the file is this open's own
	unused  bool // the file is empty, and the drive was never in use
	changed bool // this open changed the number of regions, or the share of ordinary reads and writes

	mu     sync.Mutex // guards state, closed and the writing of PATH.json
	state  state
	kept   []byte // essence of the state that PATH.json has; nil: there is none yet
	warned bool   // The log has that the state cannot be kept.
	closed bool
}

// Open opens a drive, or with Options.Create makes one. The error wraps ErrBusy, ErrGeometry, ErrNoDrive or fs.ErrExist
// where that is the cause.
func Open(o Options) (*Drive, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.atStep == nil {
		o.atStep = func(string) {}
	}
	d := &Drive{opt: o, free: func() error { return nil }}
	err := d.openDrive()
	if err != nil {
		return nil, fmt.Errorf("drive %s: %w", d.logName(), errors.Join(err, d.undoOpen()))
	}
	return d, nil
}

func (d *Drive) logName() string {
	if d.opt.Path != "" {
		return d.opt.Path
	}
	return "in memory"
}

func (d *Drive) openDrive() error {
	o := &d.opt
	if o.SLMBytes == 0 {
		o.SLMBytes = DefaultSLM
	}
	if o.Threads == 0 {
		o.Threads = 1
	}
	if o.SLMBytes < MinSLM || o.SLMBytes > MaxSLM || o.SLMBytes%4096 != 0 {
		return fmt.Errorf("local memory of %d bytes: want a multiple of 4096 from %d to %d", o.SLMBytes, MinSLM,
			int64(MaxSLM))
	}
	if o.Threads < 1 || o.Threads > MaxThreads {
		return fmt.Errorf("%d engine threads: want 1 to %d", o.Threads, MaxThreads)
	}
	if o.Regions < 0 || o.Regions > cs.MaxRegions {
		return fmt.Errorf("%d regions: want 1 to %d", o.Regions, cs.MaxRegions)
	}
	if err := d.openFlash(); err != nil {
		return err
	}
	if err := errors.Join(d.setRegions(), d.setHostIOShare()); err != nil {
		return err
	}
	opt := controller.Options{
		BlockSize: uint32(d.state.LBA), NoMap: o.NoMap, NQN: o.NQN, UUID: d.state.UUID, Logger: o.Logger,
		Lost: d.Lost,
	}
	if !o.Plain {
		if err := d.openCompute(); err != nil {
			return err
		}
		opt.Compute, opt.HostIOShare = d.comp, d.state.HostIOShare
		if o.WrapCompute != nil {
			opt.Compute = o.WrapCompute(d.comp)
		}
	}
	switch {
	case d.hasNoFlash():
		if o.Plain {
			return errors.New("it has no flash and does not compute: there is nothing it could do")
		}
		if o.Timing != nil {
			return errors.New("the model of drives reads from a drive's flash, and this drive has none: use native timing")
		}
	case o.WrapFlash != nil:
		opt.Flash = o.WrapFlash(d.flash)
	default:
		opt.Flash = d.flash
	}
	if err := d.beginUse(); err != nil {
		return err
	}
	opt.Counters = d.state.Counters
	var err error
	if d.sub, err = controller.New(opt); err == nil && o.Timing != nil && d.comp != nil {
		for region, pacer := range o.Timing.NewPacers(o.Threads, d.state.regionWeights()) {
			d.comp.pacing = append(d.comp.pacing, &pacing{Pacer: pacer,
				copied: func() uint64 { return d.sub.FlashCopied(region) }})
		}
	}
	return err
}

// openFlash opens the flash and learns geometry, identity and counters.
func (d *Drive) openFlash() error {
	o := &d.opt
	d.state = state{UUID: o.UUID, Size: o.Size, LBA: o.LBA, Clean: true}
	if d.state.UUID == (uuid.UUID{}) {
		var err error
		if d.state.UUID, err = uuid.NewRandom(); err != nil {
			return err
		}
	}
	if o.Diskless && (o.Size != 0 || o.LBA != 0 || o.Flash != nil) {
		return fmt.Errorf("a drive without flash has no size and no blocks: %w", ErrGeometry)
	}
	if d.state.LBA == 0 && !o.Diskless {
		d.state.LBA = LBA512
	}
	if d.state.Size == 0 && !o.Diskless {
		d.state.Size = DefaultSize
	}
	switch {
	case o.Path != "" && o.Flash != nil:
		return errors.New("both Path and Flash are given")
	case o.Path != "":
		return d.openFile()
	case o.Flash != nil:
		d.flash = o.Flash
		d.state.Size = o.Flash.Size()
		return flash.CheckGeometry(d.state.Size, d.state.LBA)
	}
	if err := flash.CheckGeometry(d.state.Size, d.state.LBA); err != nil {
		return err
	}
	m, err := flash.NewMemory(d.state.Size)
	if err != nil {
		return err
	}
	d.flash = m
	d.state.Counters.PowerCycles = 1
	return nil
}

// openFlashFile opens the file of a drive's flash, and says what it means for the drive where the file is locked or is
// not there.
func openFlashFile(path string, create bool) (*flash.File, error) {
	f, err := flash.OpenFile(path, create)
	switch {
	case errors.Is(err, flash.ErrLocked):
		return nil, lockedError(path)
	case !create && errors.Is(err, os.ErrNotExist):
		return nil, noFlashError(path, err)
	}
	return f, err
}

// noFlashError returns the error of a drive whose flash is not there. A state without its flash does not make a drive,
// and keeps another from being created at the path.
func noFlashError(path string, err error) error {
	if _, serr := os.Lstat(statePath(path)); serr != nil {
		return fmt.Errorf("%w: %w; create it with millrace drive create", ErrNoDrive, err)
	}
	return fmt.Errorf("%w: %w, but %s is there: restore the flash, or remove that file and create another drive",
		ErrNoDrive, err, statePath(path))
}

// openFile opens a drive in a file. The file is locked before anything of it is believed.
func (d *Drive) openFile() error {
	o := &d.opt
	if o.Create {
		if err := flash.CheckGeometry(d.state.Size, d.state.LBA); err != nil {
			return err
		}
		if _, err := os.Lstat(statePath(o.Path)); err == nil {
			if _, err := os.Stat(o.Path); errors.Is(err, os.ErrNotExist) {
				return noFlashError(o.Path, err)
			}
			return fmt.Errorf("%s: %w: the drive is there; use it, or choose another path", statePath(o.Path), os.ErrExist)
		}
	}
	f, err := openFlashFile(o.Path, o.Create)
	if err != nil {
		return err
	}
	d.flash = f
	d.created = o.Create
	// An owner that was killed has left its file, which would send others to a process that is gone.
	if err := removeOwnerFile(o.Path); err != nil {
		o.Logger.Warn("what the last owner of a drive said of itself stays", "file", ownerPath(o.Path), "error", err)
	}
	if !o.Create {
		s, err := readState(o.Path)
		if err != nil {
			return err
		}
		if o.Diskless && s.Size != 0 {
			return fmt.Errorf("it has %d bytes of flash, and was asked for as a drive without: %w", s.Size, ErrGeometry)
		}
		if o.Size != 0 && o.Size != s.Size || o.LBA != 0 && o.LBA != s.LBA {
			return fmt.Errorf("size %d and block size %d, the drive has %d and %d: %w", d.state.Size, d.state.LBA, s.Size, s.LBA,
				ErrGeometry)
		}
		d.state = *s
		if d.kept, err = s.keptPart(); err != nil {
			return err
		}
		if !s.Clean {
			d.state.Counters.UnsafeShutdowns++
		}
	}
	n, err := f.Length()
	if err != nil {
		return err
	}
	d.unused = d.state.Counters.PowerCycles == 0 && n == 0
	d.state.Counters.PowerCycles++
	return nil
}

func (d *Drive) openCompute() error {
	mem, free, err := memory.Map(d.opt.SLMBytes)
	if err != nil {
		return fmt.Errorf("local memory: %w", err)
	}
	hugepages.Advise(mem) // engines look up, unpack and write all over it
	d.free = func() error { return memory.Retire(mem, free) }
	o := images.Options{
		Logger: d.opt.Logger, Drive: d.opt.Path, Trust: d.state.Trust, ChangeTrust: d.opt.Trust, Kept: d.state.keptRegions(),
		Step: d.opt.atStep, RegionWeights: d.state.regionWeights(), ThreadsPerWeight: d.opt.Threads,
		LocalMemoryBytes: d.opt.SLMBytes,
	}
	if d.opt.Path != "" {
		o.Save = func() error {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.saveState()
		}
	}
	s, err := images.Open(o)
	if err != nil {
		return err
	}
	d.comp = &compute{slm: mem, slots: s, log: d.opt.Logger, stats: newCounters(d.opt.driveClock())}
	for _, weight := range o.RegionWeights {
		d.comp.threads = append(d.comp.threads, make(chan struct{}, d.opt.Threads*weight))
	}
	return nil
}

// undoOpen undoes a failed open.
func (d *Drive) undoOpen() error {
	err := d.free()
	if d.flash != nil {
		err = errors.Join(err, d.flash.Close())
	} else if d.opt.Flash != nil {
		err = errors.Join(err, d.opt.Flash.Close())
	}
	if d.created {
		// A drive that was made in part would be in the way of the next attempt.
		err = errors.Join(err, os.Remove(d.opt.Path))
		if e := os.Remove(statePath(d.opt.Path)); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Created reports whether this Open has made the drive.
func (d *Drive) Created() bool { return d.created }

// Remove closes a drive that this Open has made, and removes its files. It is for a caller that has made a drive and
// cannot use it. It refuses a drive that existed before, and then neither closes nor changes it.
func (d *Drive) Remove() error {
	if !d.created {
		return fmt.Errorf("drive %s: remove: this process has not made it", d.logName())
	}
	err := d.Close()
	if errors.Is(err, ErrBusy) {
		return err
	}
	paths := []string{d.opt.Path, statePath(d.opt.Path)}
	for slot := range images.Count {
		paths = append(paths, images.Path(d.opt.Path, slot))
	}
	for _, path := range paths {
		if e := os.Remove(path); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Subsystem returns the drive's NVMe side.
func (d *Drive) Subsystem() *controller.Subsystem { return d.sub }

// hasNoFlash reports whether the drive has no flash.
func (d *Drive) hasNoFlash() bool { return d.state.Size == 0 }

// Geometry returns the capacity of namespace 1 and the block size, in bytes. Both are 0 for a drive without flash.
func (d *Drive) Geometry() (size int64, lba int) { return d.flash.Size(), d.state.LBA }

// Flash returns the flash that stores the blocks of namespace 1: for a drive whose flash is a namespace of another
// subsystem, and which has no associations of its own. The drive closes it.
func (d *Drive) Flash() flash.Flash { return d.flash }

// UUID returns the drive's identity.
func (d *Drive) UUID() uuid.UUID { return d.state.UUID }

// ActiveImage returns the id of the active image of region 0, and whether there is one.
func (d *Drive) ActiveImage() (image.ID, bool) {
	if d.comp == nil {
		return image.ID{}, false
	}
	_, active := d.comp.slots.Running(0)
	if active == nil {
		return image.ID{}, false
	}
	return active.ID, true
}

// Images returns the drive's log page of its images; nil for a plain drive.
func (d *Drive) Images() *image.LogPage {
	if d.comp == nil {
		return nil
	}
	return d.comp.slots.Page()
}

// Close writes the drive's state, flushes the flash and closes the drive. Associations must be closed first: while
// there are some, it fails and changes nothing. Further calls do nothing.
func (d *Drive) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if n := d.sub.Associations(); n > 0 {
		return fmt.Errorf("drive %s: close: %d associations are open: %w", d.logName(), n, ErrBusy)
	}
	d.closed = true
	err := d.flash.Sync()
	if d.opt.Path != "" && !d.flash.ReadOnly() {
		d.state.Clean = err == nil
		err = errors.Join(err, d.endUse(), removeOwnerFile(d.opt.Path))
	}
	if err = errors.Join(err, d.flash.Close(), d.free()); err != nil {
		return fmt.Errorf("drive %s: close: %w", d.logName(), err)
	}
	return nil
}
