package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/targetencoding"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Engine names the computing engine. The reference engine is slow: it computes by the definition.
type Engine string

// The engines.
const (
	EngineAuto      Engine = ""          // the drive if it computes, else the node's CPU
	EngineDrive     Engine = "drive"     // the drive; a drive that does not compute is refused
	EngineCPU       Engine = "cpu"       // the node's CPU, with the drive's kernels
	EngineReference Engine = "reference" // the node's CPU, by the definition: slow
	EngineRTL       Engine = "rtl"       // the units of fpga/rtl, simulated by DriveOptions.Simulate: slower still
)

// onHost reports whether the node computes, and no drive.
func (e Engine) onHost() bool { return e == EngineCPU || e == EngineReference || e == EngineRTL }

// ParseEngine reads reference, cpu or drive. EngineRTL is none that a configuration can name.
func ParseEngine(s string) (Engine, error) {
	switch e := Engine(s); e {
	case EngineDrive, EngineCPU, EngineReference:
		return e, nil
	}
	return "", fmt.Errorf("engine %q: want reference, cpu or drive", s)
}

// chooseEngine decides which engine computes.
func (d *Drive) chooseEngine() error {
	computes := d.device != nil && d.device.HasCompute() || d.card != nil
	d.engine = d.o.Engine
	if d.engine == EngineAuto {
		d.engine = EngineCPU
		if computes {
			d.engine = EngineDrive
		}
	}
	if d.engine == EngineRTL && d.o.Simulate == nil {
		return errors.New("the engine rtl wants a simulation of its units")
	}
	if d.engine == EngineDrive && !computes {
		return fmt.Errorf("it does not compute: use --engine cpu: %w", sdk.ErrNoCompute)
	}
	if d.o.Device.Timing != nil && (d.engine != EngineDrive || d.card != nil) {
		return errors.New("a modelled timing is that of a drive that computes on what lies on its own flash: leave out " +
			"accelerators and the engines cpu, reference and rtl, or use native timing")
	}
	return nil
}

// source returns the format of the partitions.
func (d *Drive) source() program.Source {
	if d.o.Source == 0 {
		return program.Parquet
	}
	return d.o.Source
}

// Computes reports whether the drive itself preprocesses.
func (d *Drive) Computes() bool { return d.engine == EngineDrive }

// Parquet reports whether the drive's partitions are Parquet files.
func (d *Drive) Parquet() bool { return d.source() == program.Parquet }

// threads returns the number of engine threads.
func (d *Drive) threads() int {
	if d.engine == EngineDrive {
		return d.computer().Compute().Threads()
	}
	return max(d.o.Threads, 1)
}

// streams returns how many streams a job may have on the drive at once.
func (d *Drive) streams() int {
	switch {
	case d.o.Streams > 0:
		return d.o.Streams
	case d.engine == EngineRTL:
		return 1 // one unit runs at a time, and the next split goes on in the row group that is decoded
	case d.engine == EngineReference:
		return min(2, runtime.NumCPU())
	case d.engine == EngineCPU && d.elsewhere != nil:
		return streamsElsewhere * d.threads()
	case d.engine == EngineCPU:
		return d.threads()
	}
	wanted := 2
	if d.elsewhere != nil {
		wanted = streamsElsewhere * d.threads()
	} else if d.computesOnCores() {
		wanted = max(wanted, d.threads()+1)
	}
	for wanted > 1 && d.bytesOfMemory() < MemoryOfStreams(wanted) {
		wanted--
	}
	return wanted
}

// computesOnCores reports whether the drive's engine threads are cores of this machine: the drive is made of files, or
// lies in a file that this process opened.
func (d *Drive) computesOnCores() bool {
	return !d.Fed() && (d.inFile || d.volume == nil && d.maps == nil)
}

// streamsElsewhere is the number of streams for each engine thread where the partitions lie elsewhere: some wait for
// the network while others compute.
const streamsElsewhere = 2

// memory returns how much of the drive's memory a job has; 0 means all of it.
func (d *Drive) memory() uint64 {
	if d.o.SLM > 0 || d.o.Jobs <= 1 || d.engine != EngineDrive {
		return d.o.SLM
	}
	return d.computer().Compute().SLMSize() / uint64(d.o.Jobs) &^ (memoryGrain - 1)
}

// bytesOfMemory returns the bytes of the drive's memory that a job has.
func (d *Drive) bytesOfMemory() uint64 { return cmp.Or(d.memory(), d.computer().Compute().SLMSize()) }

// memoryGrain divides the size of every job's part of a drive's memory.
const memoryGrain = 1 << 16

// MemoryOfStreams is the memory from which a job has a given number of streams on a drive: the least memory of each,
// and a program.
func MemoryOfStreams(streams int) uint64 { return uint64(streams)*processor.MinStreamMemory + 16<<20 }

// FileDriveEngine returns the engine threads of a region, and the memory of all regions, of a drive in a file where
// its URI names none. The memory follows the threads: each of the region's jobs gets enough for its streams. A region
// of one thread has the default of a drive. 0 is the default: for a drive of one region and one thread, and for a drive
// that does not compute. Memory that is never used is never touched.
func (o *DriveOptions) FileDriveEngine(u sdk.URI) (threads int, memory int64) {
	if o.Engine.onHost() || o.Accelerator != "" || u.Diskless {
		return 0, 0
	}
	threads = cmp.Or(u.Threads, o.Threads, 1)
	regions := int64(max(o.Regions, u.Regions, 1))
	if threads == 1 && regions == 1 {
		return threads, 0
	}
	if threads == 1 {
		return threads, regions * csd.DefaultSLM
	}
	part := o.SLM
	if part == 0 {
		part = MemoryOfStreams(max(o.Streams, threads+1))
	}
	jobs := uint64(max(o.Jobs, 1))
	if part > csd.MaxSLM || jobs > csd.MaxSLM/part {
		return threads, csd.MaxSLM
	}
	memory = int64((jobs*part + memoryGrain - 1) &^ (memoryGrain - 1))
	return threads, min(regions*max(memory, csd.DefaultSLM), csd.MaxSLM)
}

// newProcessor makes a job's processor on the drive, and returns the lowered pipeline that it runs. A drive that
// computes looks ids up in the vocabularies whose tables fit in its memory. This host drops the rows that the
// pipeline's filter leaves out, encodes keys by the pipeline's targets, and then looks the other ids up.
func (d *Drive) newProcessor(ctx context.Context, l *lowering.Lowered) (processor.Processor, *lowering.Lowered, error) {
	if l.Lookups != nil {
		memory, err := d.lookupMemory(ctx)
		if err != nil {
			return nil, nil, err
		}
		if l, err = l.LookUpInDrive(memory); err != nil {
			return nil, nil, err
		}
	}
	p, err := d.newLookupProcessor(ctx, l)
	if errors.Is(err, sdk.ErrRegionOwned) || errors.Is(err, sdk.ErrSLMFull) {
		err = takenError{err}
	}
	return p, l, err
}

// takenError is an error of a drive that others have: an api.ErrTaken in the drive's own words.
type takenError struct{ error }

func (e takenError) Unwrap() []error { return []error{e.error, api.ErrTaken} }

// lookupMemory returns the bytes of the drive's memory that the lookup tables of a job may take: what is left beside
// the least memory of its streams, so that tables cost no stream. It is 0 where this machine computes, which has the
// tables already, and for drives whose image has no unit for lookups.
func (d *Drive) lookupMemory(ctx context.Context) (uint64, error) {
	if d.engine != EngineDrive {
		return 0, nil
	}
	memory, least := d.bytesOfMemory(), MemoryOfStreams(d.streams())
	if memory <= least {
		return 0, nil
	}
	images, err := d.computer().ImageLog(ctx)
	if errors.Is(err, sdk.ErrNoImageLog) || errors.Is(err, image.ErrLogPage) {
		return 0, nil // a drive of another kind, or of a version without lookups
	}
	if err != nil {
		return 0, err
	}
	if active, ok := images.Active(); !ok || !active.Lookups {
		return 0, nil
	}
	return memory - least, nil
}

// newLookupProcessor makes a processor of a lowered pipeline, behind which this host drops rows, encodes
// keys and looks ids up.
func (d *Drive) newLookupProcessor(ctx context.Context, l *lowering.Lowered) (processor.Processor, error) {
	p, err := d.newEngineProcessor(ctx, l.Program, l.Made)
	if err != nil {
		return nil, err
	}
	if l.Selection != nil {
		p = processor.WithSelections(p)
	}
	var a processor.Appliers
	if l.Encodings != nil {
		a.Encodings, err = targetencoding.NewApplier(l.Made, l.Encoded, l.Encodings)
	}
	if l.Lookups != nil && err == nil {
		a.Lookups, err = vocabulary.NewApplier(l.Encoded, l.Schema, l.Lookups)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return processor.WithAppliers(p, a), nil
}

// newEngineProcessor makes a processor on the drive's engine.
func (d *Drive) newEngineProcessor(
	ctx context.Context, prog *program.Program, schema *tensor.Schema,
) (processor.Processor, error) {
	if d.engine != EngineDrive {
		if err := checkModules(prog); err != nil {
			return nil, err
		}
	}
	switch d.engine {
	case EngineRTL:
		return d.o.Simulate(prog, schema)
	case EngineReference:
		return cpu.NewReference(prog, schema)
	case EngineCPU:
		o := processor.Options{SLM: d.o.SLM, Streams: d.streams(), Coalesce: d.o.Coalesce}
		return cpu.New(ctx, prog, schema, cpu.Options{Threads: d.threads(), Processor: o})
	}
	o := processor.Options{SLM: d.memory(), StreamMemory: d.o.StreamMemory, Streams: d.streams(), Coalesce: d.o.Coalesce,
		FromHost: d.card != nil}
	return sdk.NewProcessor(ctx, d.computer(), prog, schema, o)
}

// checkModules returns an error that wraps sdk.ErrModule if a module that a program names is not at hand.
func checkModules(prog *program.Program) error {
	for _, module := range prog.WasmModules() {
		if _, ok := prog.Modules[module]; !ok {
			return fmt.Errorf("%w: module %v: this machine's CPU runs the modules of images that its configuration names: "+
				"name one that holds it in modules.images (millrace image build --wasm makes one), or let the CPU run modules "+
				"of submitters with modules.submitted: true", sdk.ErrModule, module)
		}
	}
	return nil
}
