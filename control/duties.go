package control

import (
	"context"
	"time"

	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// conductor takes one job through its life: it carries out the job's duties, one after the other, and runs the job's
// autoscaler. It uses the machines, the lock and the calls of the leader.
type conductor struct {
	*leader
	job *job
}

// start begins the goroutine of a job.
func (l *leader) start(j *job) {
	l.wg.Add(1)
	go (&conductor{l, j}).conduct()
}

// conduct takes a job from its present state to its end. Each job has one goroutine that runs it.
func (c *conductor) conduct() {
	defer c.wg.Done()
	if c.job.pipeline.Filter != nil && c.s.jobFiles != nil {
		c.wg.Go(c.keepSelections)
	}
	ticker := time.NewTicker(c.o.ScaleEvery)
	defer ticker.Stop()
	for {
		for again := true; again; {
			duty, editions := c.duty()
			if duty == lifecycle.Retire {
				c.retire()
				return
			}
			again = c.discharge(duty, editions)
		}
		select {
		case <-ticker.C:
			c.steer()
		case <-c.job.wake:
		case <-c.ctx.Done():
			return
		}
		c.happen(func(time.Time) { c.job.Review() })
	}
}

// duty returns the next duty of the job's goroutine, and the editions that it concerns. If the state was stored a
// moment ago, duty checks it again after a second.
func (c *conductor) duty() (duty lifecycle.Duty, editions []*edition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch duty = c.job.Duty(time.Now()); duty {
	case lifecycle.Rest:
		if c.job.Unwritten() {
			time.AfterFunc(time.Second, c.job.poke)
		}
	case lifecycle.Prepare:
		if !c.job.Returning() {
			return duty, []*edition{c.job.editions[c.job.Preparing()]}
		}
		for _, e := range c.job.Editions() { // ranks may be in all of them
			editions = append(editions, c.job.editions[e.Number])
		}
	case lifecycle.Measure:
		editions = []*edition{c.job.latest()}
	case lifecycle.StoreEdition:
		editions = []*edition{c.job.editions[c.job.Preparing()]}
	}
	return duty, editions
}

// discharge carries out a duty of a job, without the lock. It reports whether the next duty may follow at once,
// which is not the case after a failure or if there was nothing to do.
func (c *conductor) discharge(duty lifecycle.Duty, editions []*edition) bool {
	var err error
	switch duty {
	case lifecycle.Prepare:
		c.prepareJob(editions)
	case lifecycle.Measure:
		c.measureJob(editions[0])
	case lifecycle.Withdraw:
		c.withdraw()
	case lifecycle.Store:
		if err = c.storeState(c.ctx, c.job); err != nil && c.ctx.Err() == nil {
			c.logger.Warn("the job's state was not stored", "job", c.job.ID, "error", err)
		}
	case lifecycle.Commit:
		if err = c.commitState(); err != nil && c.ctx.Err() == nil {
			c.logger.Warn("the job's state was not stored; trying again", "job", c.job.ID, "error", err)
		}
	case lifecycle.Confirm:
		if err = c.confirmDelivery(); err != nil && c.ctx.Err() == nil {
			c.logger.Warn("the job's end could not be stored; trying again", "job", c.job.ID, "error", err)
		}
	case lifecycle.StoreEdition:
		if err = c.storeNextEdition(editions[0]); err != nil && c.ctx.Err() == nil {
			c.logger.Warn("the job's end could not be stored; trying again", "job", c.job.ID, "error", err)
		}
	default:
		return false
	}
	return err == nil && c.ctx.Err() == nil
}

// prepareJob makes the selections of the editions with which the job begins or continues, if the pipeline has a filter,
// and makes the nodes prepare the editions.
func (c *conductor) prepareJob(editions []*edition) {
	var err error
	for _, g := range editions {
		if err = c.selectRows(g); err == nil {
			err = c.prepareAll(g)
		}
		if err != nil {
			break
		}
	}
	if c.ctx.Err() != nil {
		return // the next leader begins again
	}
	c.happen(func(now time.Time) {
		if err != nil {
			c.job.PrepareFailed(err.Error(), now)
		} else {
			c.job.Prepared()
		}
	})
}

// measureJob measures P of the drives and decides with how many drives the job begins.
func (c *conductor) measureJob(g *edition) {
	var p map[string]float64
	err := c.retryWhileBusy(func() (err error) {
		p, err = c.measureAll(g)
		return err
	})
	if c.ctx.Err() != nil {
		return // the next leader begins again
	}
	c.happen(func(now time.Time) {
		if c.job.Phase().Ended() {
			return
		}
		var a allocation.Allocation
		if err == nil {
			a, err = c.allocateLocked(g, p, c.job.spec.TRowsPerSecond, now)
		}
		if err != nil {
			c.job.Fail(err.Error(), now)
			return
		}
		c.job.Measured(p, c.job.spec.TRowsPerSecond, a)
	})
}

// confirmDelivery makes the last acknowledgements durable, so that a later leader finds nothing to deliver of a job
// that is done.
func (c *conductor) confirmDelivery() error {
	if err := c.sync(c.ctx, true); err != nil {
		return err
	}
	c.happen(c.job.Confirmed)
	return nil
}

// storeNextEdition stores the data of a further edition.
func (c *conductor) storeNextEdition(g *edition) error {
	ops, err := storeEdition(c.job, g)
	if err == nil {
		err = c.commitAll(c.ctx, ops)
	}
	c.happen(func(time.Time) {
		if err != nil {
			c.job.EditionDropped()
		} else {
			c.job.EditionStored(len(ops))
		}
	})
	return err
}

// commitState stores the next state, and then lets the job enter it.
func (c *conductor) commitState() error {
	err := c.writeState(c.ctx, c.job, true)
	c.happen(func(time.Time) {
		if err != nil {
			c.job.CommitFailed()
		} else {
			c.job.Committed()
		}
	})
	return err
}

// retire informs the nodes that a job has ended, and forgets old jobs.
func (c *conductor) retire() {
	ctx, cancel := context.WithTimeout(c.ctx, 2*nodeTime)
	defer cancel()
	for _, g := range c.job.editions {
		c.finishEdition(ctx, g)
		c.removeParts(g)
	}
	if err := c.forget(ctx, c.o.History); err != nil && ctx.Err() == nil {
		c.logger.Warn("forget old jobs", "error", err)
	}
}

// finishEdition makes nodes forget an edition, unless another job has the same digest. It returns when every node has
// been asked, or when ctx ends.
func (c *conductor) finishEdition(ctx context.Context, g *edition) {
	err := c.await(ctx, func(number uint64) { c.mu.upkeep.Dismiss(number, g.Digest) })
	if err != nil && c.ctx.Err() == nil {
		c.logger.Warn("not every node has answered that it has forgotten a job", "job", c.job.ID, "error", err)
	}
}
