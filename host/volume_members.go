package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// openVolume opens the members of the drive's volume as partitions.
func (d *Drive) openVolume(ctx context.Context) error {
	if err := d.chooseEngine(); err != nil {
		return err
	}
	vol, err := volume.Open(ctx, d.device)
	if err != nil {
		return err
	}
	d.volume = vol
	matched, err := d.scan(ctx)
	if err != nil {
		return err
	}
	for i, ok := range matched {
		if !ok && d.o.Skip == nil {
			return fmt.Errorf("no member is called %q: see millrace drive ls", d.o.Members[i])
		}
	}
	return nil
}

// scan opens the volume's members that are not open yet, and drops those that are no longer listed. matched says which
// of Options.Members matched a member.
func (d *Drive) scan(ctx context.Context) (matched []bool, err error) {
	members, err := d.volume.List(ctx)
	if err != nil {
		return nil, err
	}
	matched = make([]bool, len(d.o.Members))
	list := make([]*partition.Partition, 0, len(members))
	places := make(map[string]int, len(members))
	for _, m := range members {
		place, wanted := d.wanted(m.Name, matched)
		if !wanted {
			continue
		}
		if d.o.Sort == dataset.SortGiven {
			places[m.Name] = place
		}
		// An archive only grows: a member at the same offset is the same member, and a later one of the same name has
		// another offset.
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
	d.mu.Lock()
	d.places = places
	d.mu.Unlock()
	return matched, d.hold(list)
}

// leaveOut reports whether a member that cannot be opened is left out, and logs that. An empty member holds no rows
// that could be missed, so it is left out even where other members that cannot be opened are an error, unless its name
// was given.
func (d *Drive) leaveOut(m volume.Member, err error) bool {
	if d.o.Skip != nil && (errors.Is(err, partition.ErrUnreadable) || errors.Is(err, volume.ErrSparse)) {
		d.o.Skip(m.Name, err)
		return true
	}
	if m.Size > 0 || slices.Contains(d.o.Members, m.Name) {
		return false
	}
	if d.o.Device.Logger != nil {
		d.o.Device.Logger.Warn("an empty member of the volume is not a partition and is left out", "drive", d.name,
			"member", m.Name)
	}
	return true
}

// openMember opens a member of the volume as a partition.
func (d *Drive) openMember(ctx context.Context, m volume.Member) (*partition.Partition, error) {
	// The reader outlives this call, and the CPU engine reads through it.
	r, err := d.volume.Open(context.WithoutCancel(ctx), m.Name)
	if err != nil {
		return nil, err
	}
	return partition.Open(ctx, m.Name, r, m.Size, d.source(), partition.Options{
		Text: d.o.Text, Extents: []partition.Extent{{Device: m.Offset, Len: max(m.Size, 1)}},
	})
}

// wanted reports whether a member is one of Options.Members, and marks the patterns that it matches. place is that of
// the first of these patterns.
func (d *Drive) wanted(name string, matched []bool) (place int, found bool) {
	if len(d.o.Members) == 0 {
		return 0, true
	}
	for i, pattern := range d.o.Members {
		if ok, err := filepath.Match(pattern, name); pattern == name || (err == nil && ok) {
			if !found {
				place = i
			}
			matched[i], found = true, true
		}
	}
	return place, found
}

// Rescan reads the members of the drive's volume again, and finds those that were appended. Open streams go on. A
// drive of files stays as it is.
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

// hold makes a list the drive's partitions, and takes the fingerprints of those that are new.
func (d *Drive) hold(list []*partition.Partition) error {
	d.mu.Lock()
	old := d.fingerprints
	d.mu.Unlock()
	fingerprints := make(map[*partition.Partition]fingerprint, len(list))
	for _, p := range list {
		if f, ok := old[p]; ok {
			fingerprints[p] = f
			continue
		}
		if d.far[p] != nil {
			continue // its identity is pinned
		}
		f, err := takeFingerprint(p)
		if err != nil {
			return err
		}
		fingerprints[p] = f
	}
	byName := make(map[string]*partition.Partition, len(list))
	for _, p := range list {
		byName[p.Name] = p
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(list, d.partitions) {
		d.heldVersion++
	}
	d.partitions, d.byName, d.fingerprints = list, byName, fingerprints
	return nil
}
