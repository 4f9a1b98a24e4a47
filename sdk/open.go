package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/internal/openfiles"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/passthru"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk/partition"
)

// DeviceOptions say how a device is opened, beside its URI. The zero value works.
type DeviceOptions struct {
	Depth  int          // commands outstanding at a time; 0 means DefaultDepth
	Trace  *Trace       // nil: none
	Logger *slog.Logger // the drive's log; nil: none
	HostID uuid.UUID    // The identity of this host; zero: a random one.
	Plain  bool         // an in-process drive without computation
	NoMap  bool         // an in-process drive lends no views of its memory, as one on a wire does not
	Owner  *csd.Owner   // Names the owner of a drive in a file to processes that find the drive open; nil: none.

	// Shared are the drives in files that this device may share with others, a region each; nil: a drive in a file that
	// is open is refused. The device that opens the drive first decides on its Trust, weights, timing and faults.
	Shared *SharedDrives

	// Regions is the number of regions of a mem: or file: drive whose URI names none; see csd.Options. Region is the
	// region in which the device computes, if the URI names none.
	Regions, Region int

	// RegionWeights are those of a mem: or file: drive; see csd.Options.
	RegionWeights []int

	// HostIOShare limits ordinary reads and writes of a mem: or file: drive; see csd.Options.
	HostIOShare int

	// FileThreads and FileSLM are the engine threads and the bytes of local memory of a drive in a file (file:) whose URI
	// names none; 0 means csd's defaults.
	FileThreads int
	FileSLM     int64

	// Trust changes which images a drive opened from a file, or made in memory, takes; see csd.Options. It has no
	// effect on a drive over TCP or behind the kernel, whose trust is set where it is served.
	Trust func(*image.Trust) error

	// Timing makes a drive in this process take the time of a modelled one; see csd.Options. Opening a drive elsewhere
	// with it is an error. nil: native timing.
	Timing *timing.Pacing

	// TCP says how a drive over NVMe/TCP is reached. Its address and subsystem come from the URI, and HostID and Logger
	// from here where it has none; digests are used where either asks for them.
	TCP tcp.DialOptions

	// WrapFlash and WrapCompute put faults into an in-process drive, in tests; see csd.Options.
	WrapFlash   func(controller.Flash) controller.Flash
	WrapCompute func(controller.Compute) controller.Compute
}

// Open opens a drive by URI; see the package comment for the kinds. A mem: drive is made unless the process has it
// open already; a file: drive must exist (Create makes one). Errors wrap ErrURI, csd.ErrBusy, csd.ErrGeometry or
// csd.ErrNoDrive.
func Open(ctx context.Context, uri string, o DeviceOptions) (*Device, error) {
	return open(ctx, uri, o, false)
}

// Create makes a drive and opens it: file:PATH must not exist, mem:NAME must not be open. Errors are Open's, and
// fs.ErrExist.
func Create(ctx context.Context, uri string, o DeviceOptions) (*Device, error) {
	return open(ctx, uri, o, true)
}

func open(ctx context.Context, uri string, o DeviceOptions, create bool) (*Device, error) {
	u, err := ParseURI(uri)
	if err != nil {
		return nil, err
	}
	if o.Timing != nil && u.Scheme != "mem" && u.Scheme != "file" {
		return nil, fmt.Errorf("%s: modelled timing is for drives of this process (mem:, file:, files): the deadlines of "+
			"NVMe/TCP and of the kernel run on the machine's time, which the model's is not; open the drive with native "+
			"timing: %w", uri, ErrURI)
	}
	opt := o.drive()
	opt.Create = create
	opt.Size, opt.LBA, opt.SLMBytes, opt.Threads, opt.Diskless = u.Size, u.LBA, u.SLM, u.Threads, u.Diskless
	opt.Regions, o.Region = cmp.Or(u.Regions, o.Regions, len(o.RegionWeights)), cmp.Or(u.Region, o.Region)
	switch u.Scheme {
	case "mem":
		d, release, err := openNamed(u.Name, opt)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", uri, err)
		}
		return attach(ctx, uri, d, release, u.Commands, o)
	case "file":
		opt.Path, opt.Threads, opt.SLMBytes = u.Name, cmp.Or(u.Threads, o.FileThreads), cmp.Or(u.SLM, o.FileSLM)
		d, release, err := openInFile(opt, o.Shared)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", uri, err)
		}
		dev, err := attach(ctx, uri, d, release, u.Commands, o)
		if err == nil {
			o.own(uri, d)
		}
		return dev, err
	case "nvme":
		return openKernel(ctx, u, o, create)
	}
	return openRemote(ctx, u, o, create)
}

// openInFile opens a drive in a file. shared has it afterwards, unless shared is nil or the drive is made.
func openInFile(opt csd.Options, shared *SharedDrives) (d *csd.Drive, release func() error, err error) {
	if shared != nil && !opt.Create {
		return shared.open(opt)
	}
	if d, err = csd.Open(opt); err != nil {
		return nil, nil, err
	}
	return d, d.Close, nil
}

// own names the owner of an open drive to others who find it open. A drive is usable without that, as on a disk that is
// full.
func (o *DeviceOptions) own(uri string, d *csd.Drive) {
	if o.Owner == nil {
		return
	}
	if o.Shared != nil {
		o.Shared.owning.Lock()
		defer o.Shared.owning.Unlock()
	}
	if err := d.Own(*o.Owner); err != nil && o.Logger != nil {
		o.Logger.Warn("the owner of the drive is not kept: a process that finds the drive open cannot name it", "drive", uri,
			"error", err)
	}
}

func (o *DeviceOptions) drive() csd.Options {
	return csd.Options{
		Regions: o.Regions, RegionWeights: o.RegionWeights, HostIOShare: o.HostIOShare, Plain: o.Plain, NoMap: o.NoMap,
		Logger: o.Logger, Trust: o.Trust, Timing: o.Timing, WrapFlash: o.WrapFlash, WrapCompute: o.WrapCompute,
	}
}

// FilesOptions say what drive OpenFiles makes. The zero value works.
type FilesOptions struct {
	DeviceOptions
	LBA      int      // block size, 512 or 4096; 0 means 512
	SLM      int64    // local memory in bytes; 0 means csd.DefaultSLM
	Threads  int      // engine threads; 0 means 1
	Commands Commands // the command set; empty means Vendor
	Image    []byte   // the image that the drive is to run; nil means the stock image
	// Files keeps the descriptors of the files; nil means a pool of the drive's own.
	Files *openfiles.Pool
}

// fileImageSlot is the slot of the image that a drive made of files is to run.
const fileImageSlot = 1

// OpenFiles makes a drive whose namespace is the given files, read-only and not copied, and says where each lies: one
// extent a path, in order.
func OpenFiles(ctx context.Context, paths []string, o FilesOptions) (*Device, []partition.Extent, error) {
	const name = "files"
	lba := o.LBA
	if lba == 0 {
		lba = csd.LBA512
	}
	files, places, err := flash.Files(paths, lba, o.Files)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	opt := o.drive()
	opt.Flash, opt.LBA, opt.SLMBytes, opt.Threads = files, lba, o.SLM, o.Threads
	d, err := csd.Open(opt)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	dev, err := attach(ctx, name, d, d.Close, o.Commands, o.DeviceOptions)
	if err != nil {
		return nil, nil, err
	}
	if o.Image != nil {
		if err = dev.LoadImage(ctx, fileImageSlot, o.Image); err == nil {
			err = dev.ActivateImage(ctx, fileImageSlot)
		}
		if err != nil {
			return nil, nil, errors.Join(err, dev.Close())
		}
	}
	extents := make([]partition.Extent, len(places))
	for i, p := range places {
		extents[i] = partition.Extent{Device: p.Offset, Len: max(p.Size, 1)}
	}
	return dev, extents, nil
}

// openKernel opens a drive behind the kernel. The drive exists with its properties, so that only the command set can be
// chosen.
func openKernel(ctx context.Context, u URI, o DeviceOptions, create bool) (*Device, error) {
	if create || u.Size != 0 || u.LBA != 0 || u.SLM != 0 || u.Threads != 0 {
		return nil, fmt.Errorf("%s: a drive behind the kernel is not made here, and of size, lba, slm, threads and "+
			"commands takes only the last: %w", u, ErrURI)
	}
	conn, err := passthru.Open(u.Name, passthru.Options{})
	if err != nil {
		return nil, err
	}
	dev, err := NewDevice(ctx, u.String(), conn, u.Commands, o)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return dev, nil
}

// attach begins an association with a drive in this process. release gives the drive up, at Close and when attaching
// fails.
func attach(
	ctx context.Context, name string, d *csd.Drive, release func() error, set Commands, o DeviceOptions,
) (*Device, error) {
	id := o.HostID
	if id == (uuid.UUID{}) {
		id = uuid.New()
	}
	host := controller.HostID{NQN: "nqn.2014-08.org.nvmexpress:uuid:" + id.String(), ID: id}
	conn, err := controller.Local(d.Subsystem(), host)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), release())
	}
	dev, err := NewDevice(ctx, name, conn, set, o)
	if err != nil {
		return nil, errors.Join(err, conn.Close(), release())
	}
	dev.closers = append(dev.closers, release)
	return dev, nil
}

// NewDevice makes a device of an existing association over any transport, and identifies the drive. The
// device closes conn; when NewDevice fails, conn stays the caller's. Errors call the drive by name.
func NewDevice(ctx context.Context, name string, conn nvme.Conn, set Commands, o DeviceOptions) (*Device, error) {
	if set == "" {
		set = Vendor
	}
	d := &Device{name: name, conn: conn, trace: o.Trace, queue: newQueue(conn, o.Depth, o.Trace), region: o.Region}
	if err := d.identify(ctx); err != nil {
		return nil, d.wrap("identify", err)
	}
	if !d.hasNamespace(nvme.CSISLM) || !d.hasNamespace(nvme.CSICompute) {
		if d.region != 0 {
			return nil, d.wrap(fmt.Sprintf("open region %d", d.region), ErrNoCompute)
		}
		return d, nil
	}
	d.compute = &Compute{d: d}
	switch set {
	case Vendor:
		d.compute.set = &vendorSet{d: d}
	case Standard:
		d.compute.set = newStandardSet(d)
	default:
		return nil, fmt.Errorf("%s: command set %q: want vendor or standard: %w", name, set, ErrURI)
	}
	d.info.Commands = string(set)
	return d, nil
}
