package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk"
)

// ErrAccelerator says that a drive cannot compute for another one.
var ErrAccelerator = errors.New("cannot be used as an accelerator")

// openAccelerator opens the drive that computes on what this host reads, if there is to be one.
func (d *Drive) openAccelerator(ctx context.Context) error {
	uri := d.o.Accelerator
	switch {
	case uri == "":
		return nil
	case d.o.Engine.onHost():
		return fmt.Errorf("accelerator %s: it %w where engine is %s: leave one of the two out",
			uri, ErrAccelerator, d.o.Engine)
	}
	o := d.o.Device
	o.Owner = nil // it names the process that has the drive with the partitions open; the card is another drive
	card, err := sdk.Open(ctx, uri, o)
	if err != nil {
		return fmt.Errorf("accelerator: %w", err)
	}
	d.closers = append(d.closers, card.Close)
	if !card.HasCompute() {
		return fmt.Errorf("accelerator %s: it %w: %w", uri, ErrAccelerator, sdk.ErrNoCompute)
	}
	d.card = card
	return nil
}

// openFed opens the files that a drive without flash is to preprocess.
func (d *Drive) openFed(ctx context.Context) error {
	if d.o.Accelerator != "" {
		return fmt.Errorf("accelerator %s: it %w beside a drive without flash, which computes itself",
			d.o.Accelerator, ErrAccelerator)
	}
	if len(d.o.Members) == 0 {
		return fmt.Errorf("%w: name the files that this machine is to read for it", sdk.ErrNoFlash)
	}
	var files []filename.File
	for _, member := range d.o.Members {
		pattern := source.ParseLocation(member)
		found, err := d.expandMember(ctx, pattern)
		if err != nil {
			return err
		}
		named, err := filename.NameFound(pattern, found, source.Location{})
		if err != nil {
			return err
		}
		slices.SortFunc(named, func(a, b filename.File) int { return d.o.Sort.Compare(a.Name, b.Name) })
		files = append(files, named...)
	}
	if err := filename.CheckNames(files); err != nil {
		return err
	}
	d.o.FileNames = filename.Names(files)
	return d.openLocations(ctx, filename.Locations(files), nil)
}

// expandMember returns the files that a member of a drive without flash stands for: a path or a pattern of this
// machine, or a URI of an object, of a folder, or of a pattern.
func (d *Drive) expandMember(ctx context.Context, member source.Location) ([]source.Location, error) {
	if !member.InStore() {
		found, err := filepath.Glob(member.Name())
		if err != nil {
			return nil, fmt.Errorf("%q: %w", member, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no file is called %q: the drive has no flash, so that this machine reads the files",
				member)
		}
		return source.ParseLocations(found...), nil
	}
	if !member.IsPattern() {
		return []source.Location{member}, nil
	}
	var err error
	if d.o.Sources, err = d.o.Sources.withDefaults(); err != nil {
		return nil, err
	}
	objects, err := d.o.Sources.Opener.List(ctx, member)
	if err != nil {
		return nil, err
	}
	found := make([]source.Location, len(objects))
	for i, o := range objects {
		found[i] = o.Location
	}
	return found, nil
}

// Fed reports whether this host reads the partitions and stores their windows in the memory of the device that
// computes.
func (d *Drive) Fed() bool { return d.card != nil }
