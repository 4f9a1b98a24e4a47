// Package local runs a job on the drives of this machine. A launcher on one machine uses it instead of a control
// plane.
//
//	manager, err := local.Open(ctx, local.Config{Files: source.ParseLocations(paths...)})
//	defer manager.Close()
//	job, err := trainmgr.Submit(ctx, manager, trainmgr.Options{Pipeline: spec})
//
// # Concurrency
//
// Open returns when every drive is open; nothing runs in the background.
//
// # Errors
//
// [ErrConfig] says that the configuration names no drive, or both files and drives.
package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/openfiles"
)

// ErrConfig says that a configuration is invalid.
var ErrConfig = errors.New("local drives")

// Config lists the drives: existing drives by URI, with their volumes' members as partitions, or files, each of
// which is a partition.
type Config struct {
	Drives []string          // URIs
	Files  []source.Location // in the order of the data set
	Names  []string          // Names are those of the partitions of Files; if nil, filename.NameEach names them.
	Spread int               // number of in-process drives, to which files are dealt in turn; 0 means 1
	// TrainerCores is how many cores of this machine the drives made of Files leave to the trainer: 0 means one, below
	// 0 none. The drives share the other cores as engine threads, at least one each, unless DriveOptions.Threads sets
	// the number.
	TrainerCores int
	host.DriveOptions
	Manager host.Options
}

// Open opens the drives and a manager over them; closing it closes them.
func Open(ctx context.Context, c Config) (*host.Manager, error) {
	spread := max(c.Spread, 1)
	switch {
	case len(c.Drives) == 0 && len(c.Files) == 0:
		return nil, fmt.Errorf("%w: name drives or files", ErrConfig)
	case len(c.Drives) > 0 && len(c.Files) > 0:
		return nil, fmt.Errorf("%w: name drives or files, not both; members of a drive's volume are chosen by name",
			ErrConfig)
	case c.Names != nil && len(c.Names) != len(c.Files):
		return nil, fmt.Errorf("%w: %d names of %d files", ErrConfig, len(c.Names), len(c.Files))
	case c.Spread < 0 || (len(c.Files) > 0 && spread > len(c.Files)):
		return nil, fmt.Errorf("%w: %d files cannot be dealt to %d drives", ErrConfig, len(c.Files), c.Spread)
	}
	if c.DriveOptions.Files == nil {
		c.DriveOptions.Files = openfiles.New(0)
	}
	var drives []*host.Drive
	fail := func(err error) (*host.Manager, error) {
		errs := []error{err}
		for _, d := range drives {
			errs = append(errs, d.Close())
		}
		return nil, errors.Join(errs...)
	}
	for _, uri := range c.Drives {
		d, err := host.OpenDrive(ctx, uri, c.DriveOptions)
		if err != nil {
			return fail(err)
		}
		drives = append(drives, d)
	}
	if len(c.Files) > 0 {
		c.Threads = c.EngineThreads(availableCores())
		names := c.Names
		if names == nil {
			var err error
			if names, err = filename.NameEach(c.Files); err != nil {
				return fail(err)
			}
		}
		dealt, named, places := make([][]source.Location, spread), make([][]string, spread), make([][]int, spread)
		for i, f := range c.Files {
			drive := i % spread
			dealt[drive], named[drive] = append(dealt[drive], f), append(named[drive], names[i])
			places[drive] = append(places[drive], i)
		}
		for i, files := range dealt {
			o := c.DriveOptions
			o.FileNames, o.FilePlaces = named[i], places[i]
			if spread > 1 {
				o.Name = fmt.Sprintf("drive%d", i)
			}
			d, err := host.OpenFiles(ctx, files, o)
			if err != nil {
				return fail(err)
			}
			drives = append(drives, d)
		}
	}
	m, err := host.NewManager(c.Manager, drives...)
	if err != nil {
		return fail(err)
	}
	// A job here is over all that there is.
	if _, err := m.Dataset(ctx); err != nil {
		return fail(err)
	}
	return m, nil
}
