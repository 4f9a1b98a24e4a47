package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/placement"
	"github.com/millrace/millrace/host/placement/cluster"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/trainmgr/remote"
)

// drivesWait is how long dataset place waits, where nodes answer, for further drives that it lacks: nodes that were
// started together do not register at the same moment.
const drivesWait = 3 * time.Second

// placing is one run of `millrace dataset place`.
type placing struct {
	placementCommands
	flags     *remoteFlags
	client    *remote.Client
	files     []*cluster.File
	locations map[string]source.Location // by partition
	format    cluster.Format
	replicas  int // 0: the number that is kept
	dry       bool
}

// find finds the files, and examines them.
func (p *placing) find(ctx context.Context, in *input, prefix string, args []string) error {
	named := source.ParseLocations(args...)
	err := in.findFormat(ctx, named)
	if err != nil {
		return err
	}
	if p.format.Source, err = in.source(); err != nil {
		return err
	}
	p.format.Text = in.textOptions()
	sources, err := in.far.open(named)
	if err != nil {
		return err
	}
	p.format.Opener, p.format.Cache = sources.Opener, sources.Cache
	resolver, err := in.resolver(named)
	if err != nil {
		return err
	}
	found, err := resolver.Find(ctx, named, partitionfile.Format(in.format))
	if err != nil {
		return err
	}
	p.locations = map[string]source.Location{}
	for _, file := range found {
		name := prefix + file.Name
		opened, err := cluster.OpenFile(ctx, file.Location, name, p.format)
		if err != nil {
			return err
		}
		p.locations[name], p.files = file.Location, append(p.files, opened)
		if err := opened.Close(); err != nil {
			return err
		}
	}
	return nil
}

// run places the files.
func (p *placing) run(ctx context.Context) error {
	var (
		on     *cluster.Cluster
		copies []placement.Copy
		wanted []*apiv1.PartitionCopies
		began  = time.Now()
		said   bool
	)
	defer func() {
		if on != nil {
			on.Close()
		}
	}()
	err := cluster.Await(ctx, p.flags.patience, func() (again bool, err error) {
		if on != nil {
			on.Close()
		}
		if on, err = p.flags.openCluster(ctx, p.client); err == nil {
			copies, wanted, err = on.Place(ctx, p.files, p.replicas)
		}
		again = errors.Is(err, cluster.ErrNoDrive) || errors.Is(err, placement.ErrReplicas) &&
			time.Since(began) < drivesWait
		if again && !said {
			p.Announce(fmt.Sprintf("waiting for storage nodes: %v", err))
			said = true
		}
		return again, err
	})
	if err != nil {
		return err
	}
	if !p.dry {
		// The numbers are set before the copies are made, so that a copy that fails counts as missing.
		if err := p.client.SetCopies(ctx, wanted); err != nil {
			return err
		}
	}
	if err := p.makeCopies(ctx, on, copies, p.dry, p.locations, p.format); err != nil || p.dry {
		return err
	}
	if len(copies) == 0 {
		p.Announce("every file has its copies: nothing was done")
	}
	return p.flags.awaitListing(ctx, p.client, copies)
}
