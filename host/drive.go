package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/extents"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/cpu"
)

// Engine says who computes.
type Engine string

const (
	EngineAuto      Engine = ""          // the drive if it computes, else the node's CPU
	EngineDrive     Engine = "drive"     // the drive; one that does not compute is refused
	EngineCPU       Engine = "cpu"       // the node's CPU, with the drive's kernels
	EngineReference Engine = "reference" // the node's CPU, by the definition: slow
)

// ParseEngine reads reference, cpu or drive.
func ParseEngine(s string) (Engine, error) {
	switch e := Engine(s); e {
	case EngineDrive, EngineCPU, EngineReference:
		return e, nil
	}
	return "", fmt.Errorf("engine %q: want reference, cpu or drive", s)
}

// DriveOptions say what is on a drive and who computes. The zero value: Parquet, every member of the drive's volume,
// the drive itself if it computes.
type DriveOptions struct {
	Name    string // "" takes the URI, or api.FilesDrive
	Engine  Engine
	Source  program.Source // format of the partitions, 0 means Parquet
	Text    text.Options   // of text partitions
	Members []string       // of the volume, by name or pattern (path.Match); nil means all
	SLM     uint64         // bytes of the drive's memory to use, 0 means all
	// jobs that the drive holds at once, each with an equal part of its memory; 0 means 1. SLM, if given, is one job's
	Jobs     int
	Streams  int          // splits at once, 0 means two, or one where memory is short
	Coalesce uint64       // see sdk.Options
	Commands sdk.Commands // OpenFiles: the command set
	Threads  int          // OpenFiles, EngineCPU: engine threads, 0 means 1

	// Skip is told of members of a volume that cannot be read as partitions, which are then left out. nil: such a
	// member is an error, and so is a pattern of Members that nothing matches.
	Skip func(member string, err error)

	// Device says how the device is opened, beside its URI: depth, trace, log, and faults in tests.
	Device sdk.DeviceOptions
}

// Drive is a device and the partitions that lie on it.
type Drive struct {
	name    string
	o       DriveOptions
	device  *sdk.Device                     // nil for files that the CPU reads
	engine  Engine                          // never auto
	volume  *volume.Volume                  // nil for files
	maps    map[*sdk.Partition]*extents.Map // of files on a mounted file system
	closers []func() error

	scanning sync.Mutex // held by Rescan

	mu         sync.Mutex       // guards what follows
	partitions []*sdk.Partition // replaced, never changed
	held       uint64           // number of what it holds, see holding
	byName     map[string]*sdk.Partition
	prints     map[*sdk.Partition]fingerprint
	running    int    // open splits, of all jobs
	active     string // id of the active image
	suspended  bool   // no processors are made: Manager.Suspend
}

// OpenDrive opens a drive by URI and its volume's members as partitions; of a drive behind the kernel (nvme:) also
// files of a file system on it, when all Members are paths.
func OpenDrive(ctx context.Context, uri string, o DriveOptions) (*Drive, error) {
	if o.Name == "" {
		o.Name = uri
	}
	dev, err := sdk.Open(ctx, uri, o.Device)
	if err != nil {
		return nil, err
	}
	d := &Drive{name: o.Name, o: o, device: dev, closers: []func() error{dev.Close}}
	if u, uerr := sdk.ParseURI(uri); uerr == nil && d.mounted(u.Scheme) {
		err = d.openMounted(ctx, u.Name)
	} else {
		err = d.openVolume(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("drive %s: %w", o.Name, err), d.Close())
	}
	d.lookAtImage(ctx)
	return d, nil
}

// OpenFiles makes a drive of existing files, which are not copied: with EngineDrive an in-process drive whose
// namespace 1 is the files, else the node's CPU reads them. A partition's name is its file's base name.
func OpenFiles(ctx context.Context, paths []string, o DriveOptions) (*Drive, error) {
	if o.Name == "" {
		o.Name = api.FilesDrive
	}
	d := &Drive{name: o.Name, o: o}
	if err := d.openFiles(ctx, paths); err != nil {
		return nil, errors.Join(err, d.Close()) // it names the file
	}
	return d, nil
}

func (d *Drive) openVolume(ctx context.Context) error {
	if err := d.chooseEngine(); err != nil {
		return err
	}
	vol, err := volume.Open(ctx, d.device)
	if err != nil {
		return err
	}
	d.volume = vol
	used, err := d.scan(ctx)
	if err != nil {
		return err
	}
	for i, ok := range used {
		if !ok && d.o.Skip == nil {
			return fmt.Errorf("no member is called %q: see millrace drive ls", d.o.Members[i])
		}
	}
	return nil
}

// scan opens the volume's members that are not open yet, and forgets those that are no longer listed. It tells which of
// the wanted patterns were used.
func (d *Drive) scan(ctx context.Context) ([]bool, error) {
	members, err := d.volume.List(ctx)
	if err != nil {
		return nil, err
	}
	used := make([]bool, len(d.o.Members))
	list := make([]*sdk.Partition, 0, len(members))
	for _, m := range members {
		if !d.wanted(m.Name, used) {
			continue
		}
		// An archive only grows: the same place means the same member, and a later one of the same name has another.
		if p := d.partition(m.Name); p != nil && p.Size == m.Size && p.Extents[0].Device == m.Offset {
			list = append(list, p)
			continue
		}
		p, err := d.openMember(ctx, m)
		if err != nil && d.leaveOut(m, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return used, d.hold(list)
}

// leaveOut reports whether a member that cannot be opened is left out, and tells of it. One without bytes holds no rows
// that could be missed, so it is left out even where other members that cannot be opened are an error, unless somebody
// named it.
func (d *Drive) leaveOut(m volume.Member, err error) bool {
	if d.o.Skip != nil && (errors.Is(err, sdk.ErrPartition) || errors.Is(err, volume.ErrSparse)) {
		d.o.Skip(m.Name, err)
		return true
	}
	if m.Size > 0 || slices.Contains(d.o.Members, m.Name) {
		return false
	}
	if d.o.Device.Logger != nil {
		d.o.Device.Logger.Warn("an empty member of the volume is no partition and is left out", "drive", d.name,
			"member", m.Name)
	}
	return true
}

// openMember opens a member of the volume as a partition.
func (d *Drive) openMember(ctx context.Context, m volume.Member) (*sdk.Partition, error) {
	// The reader outlives this call, and the CPU engine reads through it.
	r, err := d.volume.Open(context.WithoutCancel(ctx), m.Name)
	if err != nil {
		return nil, err
	}
	return sdk.OpenPartition(ctx, m.Name, r, m.Size, d.source(), sdk.PartitionOptions{
		Text: d.o.Text, Extents: []sdk.Extent{{Device: m.Offset, Len: max(m.Size, 1)}},
	})
}

// hold makes the list the drive's partitions, each with the fingerprint that tells when it has changed.
func (d *Drive) hold(list []*sdk.Partition) error {
	d.mu.Lock()
	old := d.prints
	d.mu.Unlock()
	prints := make(map[*sdk.Partition]fingerprint, len(list))
	for _, p := range list {
		if f, ok := old[p]; ok {
			prints[p] = f
			continue
		}
		f, err := takeFingerprint(p)
		if err != nil {
			return err
		}
		prints[p] = f
	}
	byName := make(map[string]*sdk.Partition, len(list))
	for _, p := range list {
		byName[p.Name] = p
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(list, d.partitions) {
		d.held++
	}
	d.partitions, d.byName, d.prints = list, byName, prints
	return nil
}

// Rescan looks again at what the drive's volume holds: members appended since are found. Splits that run go on. Drives
// of files stay as they are.
func (d *Drive) Rescan(ctx context.Context) error {
	if d.volume == nil {
		return nil
	}
	d.scanning.Lock()
	defer d.scanning.Unlock()
	if _, err := d.scan(ctx); err != nil {
		return fmt.Errorf("drive %s: rescan: %w", d.name, err)
	}
	return nil
}

// wanted tells whether a member is one of those asked for, and marks the patterns that it matches.
func (d *Drive) wanted(name string, used []bool) bool {
	if len(d.o.Members) == 0 {
		return true
	}
	found := false
	for i, pattern := range d.o.Members {
		if ok, err := filepath.Match(pattern, name); pattern == name || (err == nil && ok) {
			used[i], found = true, true
		}
	}
	return found
}

func (d *Drive) openFiles(ctx context.Context, paths []string) error {
	var extents []sdk.Extent
	if d.o.Engine == EngineDrive || d.o.Engine == EngineAuto {
		dev, ex, err := sdk.OpenFiles(ctx, paths,
			sdk.FilesOptions{DeviceOptions: d.o.Device, SLM: int64(d.o.SLM), Threads: d.o.Threads,
				Commands: d.o.Commands})
		if err != nil {
			return err
		}
		d.device, extents = dev, ex
		d.closers = append(d.closers, dev.Close)
	}
	if err := d.chooseEngine(); err != nil {
		return err
	}
	names := map[string]string{}
	list := make([]*sdk.Partition, 0, len(paths))
	for i, path := range paths {
		name := filepath.Base(path)
		if other, ok := names[name]; ok {
			return fmt.Errorf("%s and %s have the same base name: partitions are named by it", other, path)
		}
		names[name] = path
		// Looked at before it is opened: opening a pipe would wait for its writer.
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", path)
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		d.closers = append(d.closers, f.Close)
		if info, err = f.Stat(); err != nil {
			return err
		}
		o := sdk.PartitionOptions{Text: d.o.Text}
		if extents != nil {
			o.Extents = []sdk.Extent{extents[i]}
		}
		p, err := sdk.OpenPartition(ctx, name, f, info.Size(), d.source(), o)
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	return d.hold(list)
}

// chooseEngine settles who computes.
func (d *Drive) chooseEngine() error {
	computes := d.device != nil && d.device.HasCompute()
	d.engine = d.o.Engine
	if d.engine == EngineAuto {
		d.engine = EngineCPU
		if computes {
			d.engine = EngineDrive
		}
	}
	if d.engine == EngineDrive && !computes {
		return fmt.Errorf("it does not compute: use --engine cpu: %w", sdk.ErrNoCompute)
	}
	return nil
}

func (d *Drive) source() program.Source {
	if d.o.Source == 0 {
		return program.Parquet
	}
	return d.o.Source
}

// Name is what the drive is called in reports.
func (d *Drive) Name() string { return d.name }

// Device is the drive's device, nil for files that the CPU reads.
func (d *Drive) Device() *sdk.Device { return d.device }

// Partitions are what the drive holds, in the volume's order.
func (d *Drive) Partitions() []*sdk.Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.partitions
}

// Volume is the drive's volume, nil for files.
func (d *Drive) Volume() *volume.Volume { return d.volume }

// Computes tells whether the drive preprocesses itself.
func (d *Drive) Computes() bool { return d.engine == EngineDrive }

// partition finds a partition by name.
func (d *Drive) partition(name string) *sdk.Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.byName[name]
}

// threads is the number of engine threads.
func (d *Drive) threads() int {
	if d.engine == EngineDrive {
		return d.device.Compute().Threads()
	}
	return max(d.o.Threads, 1)
}

// streams is the number of splits that the drive takes at once.
func (d *Drive) streams() int {
	switch {
	case d.o.Streams > 0:
		return d.o.Streams
	case d.engine == EngineReference:
		return min(2, runtime.NumCPU())
	case d.engine == EngineCPU:
		return d.threads()
	}
	if slm := d.memory(); slm == 0 && d.device.Compute().SLMSize() >= twoStreams || slm >= twoStreams {
		return 2
	}
	return 1
}

// memory is how much of the drive's memory a job has; 0 is all of it.
func (d *Drive) memory() uint64 {
	if d.o.SLM > 0 || d.o.Jobs <= 1 || d.engine != EngineDrive {
		return d.o.SLM
	}
	return d.device.Compute().SLMSize() / uint64(d.o.Jobs) &^ (memoryGrain - 1)
}

// memoryGrain is what parts of a drive's memory are a multiple of.
const memoryGrain = 1 << 16

// twoStreams is the memory from which a drive takes two splits at once: two streams' least, and a program.
const twoStreams = 2*sdk.MinStreamMemory + 16<<20

// processor starts a job on the drive.
func (d *Drive) processor(ctx context.Context, l lowered) (sdk.Processor, error) {
	switch d.engine {
	case EngineReference:
		return cpu.NewReference(l.program, l.schema)
	case EngineCPU:
		return cpu.New(ctx, l.program, l.schema,
			cpu.Options{Threads: d.threads(),
				Processor: sdk.Options{SLM: d.o.SLM, Streams: d.streams(), Coalesce: d.o.Coalesce}})
	}
	return sdk.NewProcessor(ctx, d.device, l.program, l.schema,
		sdk.Options{SLM: d.memory(), Streams: d.streams(), Coalesce: d.o.Coalesce})
}

// counters are the drive's own, nil where the node's CPU computes.
func (d *Drive) counters(ctx context.Context) (*api.Counters, error) {
	if d.engine != EngineDrive {
		return nil, nil
	}
	c, err := ReadCounters(ctx, d.device)
	if err != nil {
		return nil, fmt.Errorf("read its counters: %w", err)
	}
	return c, nil
}

// countersTime is how long a report waits for a drive's counters: far longer than a drive that is there takes.
const countersTime = 5 * time.Second

// report tells what the drive did, given what a job's processor did since it was measured, and what the drive had
// counted by then.
func (d *Drive) report(ctx context.Context, s sdk.Stats, counted *api.Counters) (api.DriveReport, error) {
	r := api.DriveReport{
		Name: d.name, Engine: string(d.engine), Rows: s.Rows, MiniBatches: s.MiniBatches, Wait: s.Wait, Move: s.Move, Decode: s.Decode,
		Transform: s.Transform, Fetch: s.Fetch, BytesMoved: s.BytesPlanned, BytesUnneeded: s.BytesUnneeded, BytesOut: s.BytesOut, RowsDropped: s.Dropped,
	}
	if d.engine != EngineDrive {
		return r, nil
	}
	r.Engine = fmt.Sprintf("drive (%s)", d.device.Info().Commands)
	asking, cancel := context.WithTimeout(ctx, countersTime)
	defer cancel()
	now, err := d.counters(asking)
	switch {
	case err == nil:
		r.Counters = since(now, counted)
	case ctx.Err() != nil:
		return r, err
	default: // what it made is no less for a drive that went since
		r.Problem = err.Error()
	}
	return r, nil
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

// Parquet tells whether the drive's partitions are Parquet files.
func (d *Drive) Parquet() bool { return d.source() == program.Parquet }
