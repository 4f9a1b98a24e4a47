package control

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/upkeep"
	"github.com/millrace/millrace/internal/wait"
)

// prepareTries is how often a node that cannot be reached is asked to prepare a job.
const prepareTries = 3

// prepareAll asks every node that holds a partition to prepare an edition. A failed node is skipped as long as every
// partition has a holder that does not fail. If nodes have no room for another job, a node is away, or a drive is
// not open, the job waits, and its phase says so.
func (c *conductor) prepareAll(g *edition) error {
	return c.retryWhileBusy(func() error { return c.prepareOnce(g) })
}

// awayTime is how long a job that does not run yet waits for a node that is away and may be restarting. The unit is
// the time after which a silent node counts as dead.
const awayTime = 12

// mayRetry reports whether a failed call may succeed later.
func mayRetry(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeResourceExhausted || code == connect.CodeUnavailable || code == connect.CodeAborted
}

// retryWhileBusy repeats a step of a job until the step succeeds or fails permanently, or until the job has ended or
// has given its room to another job. It waits for room, and for files that nodes are fetching, without limit, and for
// nodes that are away for a limited time.
func (c *conductor) retryWhileBusy(do func() error) error {
	var away time.Time // since when a node has been away
	for {
		err := do()
		if err == nil || !mayRetry(err) {
			return err
		}
		var what string
		switch connect.CodeOf(err) {
		case connect.CodeAborted: // a fetch that makes no progress ends with another error
			what, away = "for a file: ", time.Time{}
		case connect.CodeUnavailable:
			what = "for a node: "
			if away.IsZero() {
				away = time.Now()
			}
		default:
			what, away = "", time.Time{}
		}
		over := false
		c.happen(func(now time.Time) {
			if what == "" {
				what = c.job.roomWords(c.mu.upkeep) + ": "
			}
			// a job that has begun waits for a node that is lost as long as it is lost
			over = !c.job.OnNodes() ||
				!away.IsZero() && now.Sub(away) > awayTime*c.o.DeadAfter && !c.job.Returning()
			if !over {
				c.job.Delayed(what + err.Error())
			}
		})
		if over || wait.Sleep(c.ctx, min(retryNode, 10*c.o.Beat)) != nil {
			return err
		}
	}
}

// prepareOnce asks every node once to prepare an edition. It repeats the call a few times for nodes that cannot be
// reached.
func (c *conductor) prepareOnce(g *edition) error {
	c.awaitHolders(g)
	nodes := map[string]error{}
	c.happen(func(time.Time) {
		g.onNodes = true // nodes that join from now on are asked when they join
		for _, holders := range c.mu.fleet.Holders(g.data.Manifest) {
			if len(holders) == 0 { // a store or a worker's own files may have the partition
				c.job.needsWorkers = c.job.needsWorkers || c.job.workersMake()
			}
			for _, h := range holders {
				if c.job.drivesMake() {
					nodes[h.Node] = nil
				}
			}
		}
		c.job.needsWorkers = c.job.needsWorkers || c.job.workersMake() && !c.job.drivesMake()
		c.mu.upkeep.WorkersNeeded()
	})
	var (
		mu sync.Mutex
		wg sync.WaitGroup
	)
	gate := make(chan struct{}, 16) // nodes at once
	for _, name := range slices.Collect(maps.Keys(nodes)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			gate <- struct{}{}
			defer func() { <-gate }()
			var err error
			for try := range prepareTries {
				if try > 0 && wait.Sleep(c.ctx, c.o.Beat) != nil {
					break
				}
				if err = c.prepared(name, g.Digest); err == nil || connect.IsWireError(err) &&
					connect.CodeOf(err) != connect.CodeUnavailable {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			nodes[name] = err
		}()
	}
	wg.Wait()
	return c.preparationError(g, nodes)
}

// preparationError returns, from the answers of an edition's nodes, the error that keeps the edition from being
// served. It returns nil if every partition has a node that is prepared.
func (c *conductor) preparationError(g *edition, nodes map[string]error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var wait error
	holdersOf := c.mu.fleet.Holders(g.data.Manifest)
	readable := c.job.readable(c.mu.fleet, c.mu.upkeep, g, holdersOf)
	for i, holders := range holdersOf {
		var why error
		ok := readable(i)
		for _, h := range holders {
			err, asked := nodes[h.Node]
			ok = ok || asked && err == nil
			if err != nil && (why == nil || mayRetry(err)) {
				why = err // of several holders' errors, an error that may pass counts
			}
		}
		if ok {
			continue
		}
		name := g.data.Manifest.Partitions[i].Name
		if why == nil {
			why = connect.NewError(connect.CodeUnavailable, errors.New("no live node holds it any more"))
		}
		why = fmt.Errorf("partition %s: %w", name, why)
		if !mayRetry(why) {
			return why
		}
		if wait == nil {
			wait = why // unless another partition has a lasting error
		}
	}
	return wait
}

// readable returns a function that reports whether workers of any reach may make a partition that no holder can
// make: the partition lies at a URL, on a node whose drives the job excludes, or in files of a worker's own machine.
func (j *job) readable(
	f *fleet.Fleet, nodes *upkeep.Keeper, g *edition, holdersOf [][]fleet.DriveID,
) func(partition int) bool {
	if !j.workersMake() {
		return func(int) bool { return false }
	}
	ownFile := nodes.OwnFiles(g.Digest)
	return func(i int) bool {
		if len(holdersOf[i]) > 0 {
			return !j.drivesMake()
		}
		return f.GivenByURL(g.data.Manifest.Partitions[i]) || ownFile(g.Words[i])
	}
}

// awaitHolders waits for the heartbeats of nodes that have not yet reported to a new leader.
func (c *conductor) awaitHolders(g *edition) {
	for time.Since(c.began) < c.o.DeadAfter+2*c.o.Beat {
		c.mu.Lock()
		all := !slices.ContainsFunc(c.mu.fleet.Holders(g.data.Manifest),
			func(h []fleet.DriveID) bool { return len(h) == 0 })
		c.mu.Unlock()
		if all || wait.Sleep(c.ctx, c.o.Beat/4) != nil {
			return
		}
	}
}

// driveName returns the name of a drive in a job's reports.
func driveName(p fleet.DriveID) string { return p.Node + "/" + p.Drive }

// measureAll asks for P of every drive that holds a partition: of all nodes at once, and of a node's drives one
// after the other. The regions of a drive are measured at once, so that each P is what the region makes beside the
// others, and their sum is what the drive makes.
func (c *conductor) measureAll(g *edition) (map[string]float64, error) {
	c.mu.Lock()
	drives := c.job.drivesToMeasure(c.mu.fleet, g)
	c.mu.Unlock()
	rows := float64(g.rows()) * float64(c.job.spec.Epochs) / float64(max(len(drives), 1)) // nodes make the job together
	if len(drives) == 0 && c.job.workersMake() {
		return map[string]float64{}, nil // workers of any reach are measured when they join
	}
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		p     = map[string]float64{}
		errs  []error
		short bool
	)
	measure := func(at fleet.DriveID) {
		measured, err := c.calls.measure(c.ctx, at.Node, at.Drive, g.Digest, nil,
			int64(min(max(rows, 1), math.MaxInt64/2)))
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, err)
			c.logger.Warn("measure P", "job", c.job.ID, "node", at.Node, "drive", at.Drive, "error", err)
			return
		}
		p[driveName(at)] = measured.rows
		short = short || measured.short
		c.logger.Info("measured P", "job", c.job.ID, "node", at.Node, "drive", at.Drive, "p_rows_per_second",
			measured.rows, "spread_share", measured.spread, "settled", measured.settled)
	}
	for node, flashes := range drives {
		wg.Go(func() {
			for _, regions := range flashes {
				var together sync.WaitGroup
				for _, name := range regions {
					together.Go(func() { measure(fleet.DriveID{Node: node, Drive: name}) })
				}
				together.Wait()
			}
		})
	}
	wg.Wait()
	c.mu.Lock()
	c.job.short = short
	c.mu.Unlock()
	if len(p) == 0 {
		return nil, fmt.Errorf("no drive's P could be measured: %w", errors.Join(errs...))
	}
	return p, nil
}

// drivesToMeasure returns the drives that hold a partition of an edition and work for the job: by node, and by the
// flash that regions share.
func (j *job) drivesToMeasure(f *fleet.Fleet, g *edition) map[string]map[string][]string {
	drives, seen := map[string]map[string][]string{}, map[fleet.DriveID]bool{}
	for _, holders := range f.Holders(g.data.Manifest) {
		for _, h := range holders {
			if seen[h] || !j.employs(h, f.Drive(h)) {
				continue
			}
			seen[h] = true
			if drives[h.Node] == nil {
				drives[h.Node] = map[string][]string{}
			}
			flash := f.Flash(h)
			drives[h.Node][flash] = append(drives[h.Node][flash], h.Drive)
		}
	}
	return drives
}
