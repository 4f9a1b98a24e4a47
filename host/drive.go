package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/extents"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/internal/openfiles"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// DriveOptions describe the partitions of a drive and the engine that computes. The zero value means Parquet, every
// member of the drive's volume, and the drive itself if it computes.
type DriveOptions struct {
	Name    string // "" takes the URI, or api.FilesDrive
	Engine  Engine
	Source  program.Source // format of the partitions, 0 means Parquet
	Text    text.Options   // Text says how text partitions are read.
	Members []string       // Members are names or patterns (path.Match) of the volume's members; nil means all.
	SLM     uint64         // bytes of the drive's memory to use, 0 means all
	// StreamMemory is how much of its memory a stream of a drive that computes uses, unless it needs more; see
	// processor.Options.
	StreamMemory uint64
	// Jobs is how many jobs the drive holds at once, each with an equal part of its memory; 0 means 1. SLM, if given,
	// is one job's part.
	Jobs int
	// Streams is how many splits of a job the drive makes at once. 0 means two, of files and of a drive in a file one
	// more than engine threads, or fewer where memory is short.
	Streams  int
	Coalesce uint64       // see processor.Options
	Commands sdk.Commands // OpenFiles: the command set
	// Image is the image that the drive made by OpenFiles is to run, with EngineDrive; nil means the stock image.
	Image []byte
	// Threads are the engine threads of OpenFiles, of EngineCPU, and of a drive in a file (file:) whose URI names none;
	// 0 means 1. Package trainmgr/local gives drives made of files the machine's cores, a storage node its drives in
	// files.
	Threads int
	// Regions is how many regions a drive in a file (file:) has at least: each gets the memory of one drive, where the URI
	// names none. 0 means as many as the URI says, or 1.
	Regions int
	// Accelerator is the URI of a drive that computes for this one: this host reads the partitions, of files or of a
	// plain drive, and stores their windows in the accelerator's memory. It may be a drive without flash. Empty: none.
	Accelerator string

	// Skip is called for members of a volume that cannot be read as partitions, which are then left out. nil: such a
	// member is an error, and so is a pattern of Members that matches nothing.
	Skip func(member string, err error)

	Sources Sources // OpenFiles: of files that are named by a URI
	// Files keeps the descriptors of the files that this host reads. nil means a pool of the drive's own.
	Files *openfiles.Pool
	// FileNames are the names of the partitions that OpenFiles makes of the files. If nil, filename.NameEach names them.
	FileNames []string
	// FilePlaces are the places of the files of OpenFiles among the files of all drives. If nil, their order is used.
	FilePlaces []int
	// Sort is the order of partitions in a data set of all that the drives hold. By default they come as their files or
	// Members were given.
	Sort dataset.Sort

	// Simulate makes the processors of EngineRTL. Package sdk/rtl has it.
	Simulate func(prog *program.Program, schema *tensor.Schema) (processor.Processor, error)

	// Device says how the device is opened, beside its URI: depth, trace, log, and faults in tests.
	Device sdk.DeviceOptions
}

// Drive is a device and the partitions that lie on it.
type Drive struct {
	name    string
	o       DriveOptions
	device  *sdk.Device                              // Partitions lie on it; nil means that files are read by path.
	card    *sdk.Device                              // It computes on what this host reads; nil means that nothing does.
	inFile  bool                                     // the device is a drive in a file, which this process opened
	engine  Engine                                   // never auto
	volume  *volume.Volume                           // nil for files
	maps    map[*partition.Partition]*extents.Map    // Files on a mounted file system have maps.
	far     map[*partition.Partition]*source.Reader  // Files that lie elsewhere have readers; OpenFiles makes them.
	files   map[*partition.Partition]*openfiles.File // Files of this machine are opened with the drive.
	closers []func() error

	elsewhere *openPartitions // A drive of reach any has it and holds no partition; of others it is nil.

	scanning sync.Mutex // held by Rescan

	mu           sync.Mutex             // guards what follows
	partitions   []*partition.Partition // replaced, never changed
	heldVersion  uint64                 // grows when partitions changes
	places       map[string]int         // Partitions have places by name, if files or members were given in an order.
	byName       map[string]*partition.Partition
	fingerprints map[*partition.Partition]fingerprint
	running      int    // open streams, of all jobs
	activeImage  string // its id
	suspended    bool   // by Manager.Suspend: no processors are made
}

// OpenDrive opens a drive by URI, and its volume's members as partitions. Of a drive behind the kernel (nvme:) it opens
// files of a file system on the drive, if all Members are paths. Of a drive without flash Members are files anywhere,
// by path or pattern: this host reads them, and stores their windows in the drive's memory.
func OpenDrive(ctx context.Context, uri string, o DriveOptions) (*Drive, error) {
	if o.Name == "" {
		o.Name = uri
	}
	u, err := sdk.ParseURI(uri)
	if err != nil {
		return nil, err
	}
	device := o.Device
	if u.Scheme == "file" {
		device.FileThreads, device.FileSLM = o.FileDriveEngine(u)
	}
	dev, err := sdk.Open(ctx, uri, device)
	if err != nil {
		return nil, err
	}
	d := newDrive(o)
	d.closers, d.inFile = []func() error{dev.Close}, u.Scheme == "file"
	if dev.Diskless() {
		d.card = dev
		err = d.openFed(ctx)
	} else if d.device = dev; d.mounted(u.Scheme) {
		err = d.openMounted(ctx, u.Name)
	} else if err = d.openAccelerator(ctx); err == nil {
		err = d.openVolume(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("drive %s: %w", o.Name, err), d.Close())
	}
	d.readActiveImage(ctx)
	return d, nil
}

// OpenFiles makes a drive of existing files, which are not copied. With EngineDrive it is an in-process drive whose
// namespace 1 is the files; otherwise the node's CPU reads them. A partition's name is its file's base name. If a file
// lies in a store, the node's CPU preprocesses all files.
func OpenFiles(ctx context.Context, files []source.Location, o DriveOptions) (*Drive, error) {
	if o.Name == "" {
		o.Name = api.FilesDrive
	}
	d := newDrive(o)
	if err := d.openFiles(ctx, files); err != nil {
		return nil, errors.Join(err, d.Close()) // it names the file
	}
	return d, nil
}

// newDrive returns a drive that holds nothing yet.
func newDrive(o DriveOptions) *Drive {
	if o.Files == nil {
		o.Files = openfiles.New(0)
	}
	return &Drive{name: o.Name, o: o, files: map[*partition.Partition]*openfiles.File{}}
}

// Name returns what reports call the drive.
func (d *Drive) Name() string { return d.name }

// Device returns the drive's device, or nil for files that the CPU reads. Of a drive without flash, and of files with
// an accelerator, it is the device that computes.
func (d *Drive) Device() *sdk.Device {
	if d.device == nil {
		return d.card
	}
	return d.device
}

// computer returns the device that computes, or nil where the node's CPU does.
func (d *Drive) computer() *sdk.Device {
	switch {
	case d.engine != EngineDrive:
		return nil
	case d.card != nil:
		return d.card
	}
	return d.device
}

// Partitions returns the drive's partitions, in the volume's order.
func (d *Drive) Partitions() []*partition.Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.partitions
}

// Volume returns the drive's volume, or nil for files.
func (d *Drive) Volume() *volume.Volume { return d.volume }

// partition returns a partition by name, or nil.
func (d *Drive) partition(name string) *partition.Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.byName[name]
}

// placeOf returns the place of a partition in the order that was given, or 0 if none was.
func (d *Drive) placeOf(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.places[name]
}

// setPlaces sets the places of partitions by the order of their names, or as Options.FilePlaces says.
func (d *Drive) setPlaces(names []string) {
	if d.o.Sort != dataset.SortGiven {
		return
	}
	places := make(map[string]int, len(names))
	for i, name := range names {
		if places[name] = i; d.o.FilePlaces != nil {
			places[name] = d.o.FilePlaces[i]
		}
	}
	d.mu.Lock()
	d.places = places
	d.mu.Unlock()
}

// Close closes the device and the files.
func (d *Drive) Close() error {
	var errs []error
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	d.closers = nil
	return errors.Join(errs...)
}
