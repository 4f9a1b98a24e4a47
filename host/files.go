package host

import (
	"context"
	"errors"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/partition"
)

// openFiles opens existing files as partitions.
func (d *Drive) openFiles(ctx context.Context, files []source.Location) error {
	if d.o.Accelerator != "" && d.o.Image != nil {
		return errors.New("an image is for the drive made of the files: load the accelerator's with millrace image load")
	}
	if d.o.Accelerator != "" {
		if err := d.openAccelerator(ctx); err != nil {
			return err
		}
		if err := d.openLocations(ctx, files, nil); err != nil {
			return err
		}
		d.readActiveImage(ctx)
		return nil
	}
	if err := d.chooseFarEngine(files); err != nil {
		return err
	}
	if d.o.Image != nil && d.o.Engine != EngineDrive {
		return errors.New("an image is for a drive: use the engine drive")
	}
	var extents []partition.Extent
	var err error
	if d.o.Engine == EngineDrive || d.o.Engine == EngineAuto {
		paths := make([]string, len(files))
		for i, f := range files {
			paths[i] = f.Name()
		}
		d.device, extents, err = sdk.OpenFiles(ctx, paths, sdk.FilesOptions{
			DeviceOptions: d.o.Device, SLM: d.fileMemory(), Threads: d.o.Threads, Commands: d.o.Commands,
			Image: d.o.Image, Files: d.o.Files,
		})
		if err != nil {
			return err
		}
		d.closers = append(d.closers, d.device.Close)
	}
	return d.openLocations(ctx, files, extents)
}

// openLocations opens files as partitions. extents says where each lies on the drive; nil: on none.
func (d *Drive) openLocations(ctx context.Context, locations []source.Location, extents []partition.Extent) error {
	if err := d.chooseEngine(); err != nil {
		return err
	}
	names := d.o.FileNames
	if names == nil {
		var err error
		if names, err = filename.NameEach(locations); err != nil {
			return err
		}
	}
	d.setPlaces(names)
	far, err := d.openFarFiles(ctx, locations, names)
	if err != nil {
		return err
	}
	list := make([]*partition.Partition, 0, len(locations))
	for i, at := range locations {
		if p := far[at]; p != nil {
			list = append(list, p)
			continue
		}
		f, err := d.openRegularFile(at.Name())
		if err != nil {
			return err
		}
		o := partition.Options{Text: d.o.Text}
		if extents != nil {
			o.Extents = []partition.Extent{extents[i]}
		}
		p, err := partition.Open(ctx, names[i], f, f.State().Size, d.source(), o)
		if err != nil {
			return err
		}
		list = append(list, p)
		d.files[p] = f
	}
	return d.hold(list)
}

// fileMemory returns the bytes of memory of a drive made of files; 0 is the default, which is enough for a few engine
// threads. More threads get as much as their streams need. Memory that is never used is never touched.
func (d *Drive) fileMemory() int64 {
	if need := MemoryOfStreams(d.o.Threads + 1); d.o.SLM == 0 && need > csd.DefaultSLM {
		return int64(need)
	}
	return int64(d.o.SLM)
}
