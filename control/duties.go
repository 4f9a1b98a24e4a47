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
	if c.begunWithFilter() {
		c.wg.Go(c.keepSelections)
	}
	ticker := time.NewTicker(c.o.ScaleEvery)
	defer ticker.Stop()
	for {
		for again := true; again; {
			duty := c.duty()
			if duty == lifecycle.Retire {
				c.retire()
				return
			}
			again = c.discharge(duty)
		}
		select {
		case <-ticker.C:
			c.steer()
		case <-c.job.wake:
		case <-c.ctx.Done():
			return
		}
		c.mu.Lock()
		c.job.Review()
		c.mu.Unlock()
	}
}

// begunWithFilter reports whether the job has begun, under an earlier leader, and its pipeline has a filter.
func (c *conductor) begunWithFilter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.job.Phase().Begun() && c.job.pipeline.Filter != nil && c.s.jobFiles != nil
}

// duty returns the next duty of the job's goroutine. If the state was stored a moment ago, duty checks it again
// after a second.
func (c *conductor) duty() lifecycle.Duty {
	c.mu.Lock()
	defer c.mu.Unlock()
	duty := c.job.Duty(time.Now())
	if duty == lifecycle.Rest && c.job.Unwritten() {
		time.AfterFunc(time.Second, c.job.poke)
	}
	return duty
}

// discharge carries out a duty of a job, without the lock. It reports whether the next duty may follow at once,
// which is not the case after a failure or if there was nothing to do.
func (c *conductor) discharge(duty lifecycle.Duty) bool {
	var err error
	switch duty {
	case lifecycle.Prepare:
		c.prepareJob()
	case lifecycle.Measure:
		c.measureJob()
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
		if err = c.storeNextEdition(); err != nil && c.ctx.Err() == nil {
			c.logger.Warn("the job's end could not be stored; trying again", "job", c.job.ID, "error", err)
		}
	default:
		return false
	}
	return err == nil && c.ctx.Err() == nil
}

// happen applies an event to a job's life and carries out its effects.
func (c *conductor) happen(event func(now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	event(now)
	c.settle(now)
}

// prepareJob makes the selection of the edition with which the job begins or continues, if the pipeline has a filter,
// and makes the nodes prepare the edition. A job that had given its room away needs all editions that ranks may be in.
func (c *conductor) prepareJob() {
	c.mu.Lock()
	editions := []*edition{c.job.editions[c.job.Preparing()]}
	if c.job.Returning() {
		editions = editions[:0]
		for _, e := range c.job.Editions() {
			editions = append(editions, c.job.editions[e.Number])
		}
	}
	c.mu.Unlock()
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
func (c *conductor) measureJob() {
	c.mu.Lock()
	g := c.job.latest()
	c.mu.Unlock()
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
			a, err = c.allocate(g, p, c.job.spec.TRowsPerSecond, now)
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
func (c *conductor) storeNextEdition() error {
	c.mu.Lock()
	g := c.job.editions[c.job.Preparing()]
	c.mu.Unlock()
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
	err := c.await(ctx, func(number uint64) { c.upkeep.Dismiss(number, g.Digest) })
	if err != nil && c.ctx.Err() == nil {
		c.logger.Warn("not every node has answered that it has forgotten a job", "job", c.job.ID, "error", err)
	}
}
