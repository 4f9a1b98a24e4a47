package host

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/inventory"
	"github.com/millrace/millrace/host/source"
)

// Given is partitions of a store, which no node holds. An agent whose options have their URLs announces them to the
// control plane.
type Given struct {
	Inventory *inventory.Inventory // their descriptions and schemas; no drive holds them
	Sources   []api.Source         // where each is read, with its identity
}

// Unchanged reports whether the partitions at URIs are those that Given describes: it asks each for its identity and
// reads nothing else.
func (g *Given) Unchanged(ctx context.Context, files []source.Location, sources Sources) (bool, error) {
	if len(files) != len(g.Sources) {
		return false, nil
	}
	known := make(map[string]string, len(g.Sources))
	for _, s := range g.Sources {
		known[s.URL] = s.Identity
	}
	var (
		asks   sync.WaitGroup
		places = make(chan struct{}, farOpens)
		mu     sync.Mutex // guards what follows
		same   = true
		failed error
	)
	for _, file := range files {
		places <- struct{}{}
		asks.Go(func() {
			defer func() { <-places }()
			src, err := sources.Opener.Open(ctx, file, source.Identity{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = errors.Join(failed, err)
				return
			}
			same = same && known[file.Name()] == src.Identity().String()
			failed = errors.Join(failed, src.Close())
		})
	}
	asks.Wait()
	return same, failed
}

// DescribeFiles describes files of this machine as a node describes what it holds. No drive holds them.
func DescribeFiles(ctx context.Context, files []filename.File) (*inventory.Inventory, error) {
	given, err := describeOpened(ctx, files, Sources{})
	if err != nil {
		return nil, err
	}
	return given.Inventory, nil
}

// DescribeGiven opens partitions by their URIs, describes them and closes them again. A worker that makes mini-batches
// of them opens them by what Given says.
func DescribeGiven(ctx context.Context, files []filename.File, sources Sources) (*Given, error) {
	for _, f := range files {
		if err := f.Location.CheckAnnounced(); err != nil {
			return nil, err
		}
	}
	return describeOpened(ctx, files, sources)
}

// describeOpened opens files, describes them and closes them again.
func describeOpened(ctx context.Context, files []filename.File, sources Sources) (given *Given, err error) {
	d, err := OpenFiles(ctx, filename.Locations(files),
		DriveOptions{Engine: EngineCPU, Sources: sources, FileNames: filename.Names(files)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	var b inventory.Builder
	if err := b.Add(d.Partitions(), d.o.Text); err != nil {
		return nil, err
	}
	given = &Given{Inventory: b.Inventory()}
	for i, p := range d.Partitions() {
		if r := d.far[p]; r != nil {
			given.Sources = append(given.Sources, api.Source{Partition: p.Name, URL: files[i].Location.Name(),
				Identity: r.Source().Identity().String()})
		}
	}
	return given, nil
}
