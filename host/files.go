package host

import (
	"context"
	"errors"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/partition"
)

// openFiles opens existing files as partitions.
func (d *Drive) openFiles(ctx context.Context, paths []string) error {
	if d.o.Accelerator != "" && d.o.Image != nil {
		return errors.New("an image is for the drive made of the files: load the accelerator's with millrace image load")
	}
	if d.o.Accelerator != "" {
		if err := d.openAccelerator(ctx); err != nil {
			return err
		}
		if err := d.openByPath(ctx, paths, nil); err != nil {
			return err
		}
		d.readActiveImage(ctx)
		return nil
	}
	if err := d.chooseFarEngine(paths); err != nil {
		return err
	}
	if d.o.Image != nil && d.o.Engine != EngineDrive {
		return errors.New("an image is for a drive: use the engine drive")
	}
	var extents []partition.Extent
	var err error
	if d.o.Engine == EngineDrive || d.o.Engine == EngineAuto {
		d.device, extents, err = sdk.OpenFiles(ctx, paths, sdk.FilesOptions{
			DeviceOptions: d.o.Device, SLM: d.fileMemory(), Threads: d.o.Threads, Commands: d.o.Commands,
			Image: d.o.Image, Files: d.o.Files,
		})
		if err != nil {
			return err
		}
		d.closers = append(d.closers, d.device.Close)
	}
	return d.openByPath(ctx, paths, extents)
}

// openByPath opens files as partitions. extents says where each lies on the drive; nil: on none.
func (d *Drive) openByPath(ctx context.Context, paths []string, extents []partition.Extent) error {
	if err := d.chooseEngine(); err != nil {
		return err
	}
	names := d.o.FileNames
	if names == nil {
		var err error
		if names, err = NameFiles(paths); err != nil {
			return err
		}
	}
	d.setPlaces(names)
	far, err := d.openFarFiles(ctx, paths, names)
	if err != nil {
		return err
	}
	list := make([]*partition.Partition, 0, len(paths))
	for i, path := range paths {
		if p := far[path]; p != nil {
			list = append(list, p)
			continue
		}
		f, err := d.openRegularFile(path)
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
