package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/sdk/dataset"
)

// faults are the probabilities and times of a day's faults.
type faults struct {
	loss, doubled float64       // The probabilities that a message is lost, or comes twice.
	slow          time.Duration // The longest transmission time of a message.
	lostAnswer    float64       // The probability that the store's answer is lost.
	cutEvery      time.Duration // The time between two cuts of links. Zero means that no link is cut.
	crashEvery    time.Duration // The time between two deaths of launchers.
	nodeEvery     time.Duration // The time between two deaths of nodes.
	memberEvery   time.Duration // The time between two deaths of members.
	pauseEvery    time.Duration // The time between two pauses of members.
	fullEvery     time.Duration // The time between two times at which the store is full.
	fetchFails    float64       // The probability that a node does not serve a fragment.
	halves        float64       // The probability that a node or a launcher dies when a part of a mini-batch has come.
	prepareFails  float64
	zombies       float64       // The probability that a launcher survives its replacement.
	patience      time.Duration // The time for which launchers ask for a leader.
	allocateEvery time.Duration // The time between two changes of allocations.
	rollOutAt     time.Duration // The time of a rollout. Zero means that the day has none.
	resubmissions bool          // Jobs are cancelled and submitted again.
}

// The greatest numbers that a schedule draws.
const (
	mostJobs       = 3
	mostRanks      = 4
	mostEpochs     = 3
	mostEditions   = 3
	mostPartitions = 9
	mostNodes      = 5
	mostMembers    = 3
)

// quickMessage is the longest transmission time of a message that is not late.
const quickMessage = 2 * time.Millisecond

// draw draws the schedule of the day. A reduction does not change what is drawn, so that the rest of the schedule is
// that of the seed.
func (w *World) draw() {
	r := w.random
	pick := func(values ...time.Duration) time.Duration { return values[r.IntN(len(values))] }
	share := func(values ...float64) float64 { return values[r.IntN(len(values))] }
	w.faults = faults{
		loss: share(0, 0, 0.01, 0.05), doubled: share(0, 0.01, 0.05),
		slow:       pick(quickMessage, 20*time.Millisecond, 300*time.Millisecond, 2*time.Second),
		lostAnswer: share(0, 0.01, 0.1),
		cutEvery:   pick(0, 20*time.Second, time.Minute), crashEvery: pick(0, 10*time.Second, 40*time.Second),
		nodeEvery: pick(0, 20*time.Second, time.Minute), memberEvery: pick(0, 30*time.Second, 2*time.Minute),
		pauseEvery: pick(0, 0, 30*time.Second, time.Minute), fetchFails: share(0, 0.02),
		prepareFails: share(0, 0.1), zombies: share(0, 0.3),
		patience: pick(20*time.Second, 2*time.Minute), allocateEvery: pick(0, 10*time.Second, time.Minute),
		rollOutAt: pick(0, 0, 0, 15*time.Second, 40*time.Second), resubmissions: true, halves: 0.02,
	}
	if w.Seed%4 == 3 {
		w.faults.fullEvery = 30 * time.Second
	}
	w.faultsEnd = start.Add(w.between(20*time.Second, 3*time.Minute))
	w.store = newStore(w)
	for i := range mostMembers {
		w.members = append(w.members, newMember(w, i))
	}
	for i := range mostNodes {
		w.addNode(fmt.Sprintf("node%d", i), ledger.Held, nil)
	}
	for i := range r.IntN(3) {
		w.addNode(fmt.Sprintf("worker%d", i), ledger.Any, nil)
	}
	for i := range 1 + r.IntN(mostJobs) {
		j, submitted := w.drawJob(i), w.between(0, 10*time.Second)
		again, resubmitted := r.IntN(3) == 0, w.between(15*time.Second, 90*time.Second)
		if !w.reduction.has(i) {
			continue
		}
		w.jobs = append(w.jobs, j)
		w.after(submitted, "submit "+j.id, func() { w.submit(j) })
		if again && !j.follow {
			w.after(resubmitted, "resubmit "+j.id, func() {
				if w.faults.resubmissions {
					w.resubmit(j)
				}
			})
		}
	}
	w.reduce()
	for _, n := range w.nodes {
		n.start()
	}
	w.repeat(w.faults.allocateEvery, "an allocation changes", w.changeAllocation)
	if w.faults.rollOutAt > 0 {
		w.after(w.faults.rollOutAt, "a rollout begins", w.rollOut)
	}
	w.repeat(w.faults.cutEvery, "cut a link", w.cutLink)
	w.repeat(w.faults.crashEvery, "a launcher dies", w.crashLauncher)
	w.repeat(w.faults.nodeEvery, "a node dies", w.crashNode)
	w.repeat(w.faults.memberEvery, "a member dies", w.crashMember)
	w.repeat(w.faults.pauseEvery, "a member pauses", w.pauseMember)
	w.repeat(w.faults.fullEvery, "the store is full", w.fillStore)
	w.after(w.faultsEnd.Sub(start), "faults stop", w.heal)
}

// repeat schedules a fault at random times until faults end.
func (w *World) repeat(every time.Duration, what string, do func()) {
	if every == 0 {
		return
	}
	w.after(w.between(every/10, 2*every), what, func() {
		if w.faulty() {
			do()
			w.repeat(every, what, do)
		}
	})
}

// patience is the longest time that a job may take after faults have ended.
const patience = 15 * time.Minute

// heal restores the links, the nodes and the store.
func (w *World) heal() {
	w.store.full = false
	for _, m := range w.members {
		m.cut, m.storeCut = false, false
	}
	for _, n := range w.nodes {
		n.cut = false
		n.start()
	}
	w.after(patience, "patience ends", func() {
		for _, j := range w.jobs {
			switch {
			case !j.over:
				w.fail("job %s has not ended %v after faults stopped: %s", j.id, patience, j.describe())
			case !j.follow && j.remembered():
				w.fail("job %s has ended, and nodes still have it %v after faults stopped", j.id, patience)
			}
		}
	})
}

// drawJob draws a job with its data.
func (w *World) drawJob(i int) *job {
	r := w.random
	j := &job{
		world: w, id: fmt.Sprintf("job%d", i), epochs: uint64(1 + r.IntN(mostEpochs)), ranks: 1 + r.IntN(mostRanks),
		keepTail: r.IntN(2) == 0, deterministic: r.IntN(2) == 0, tokens: r.IntN(3) > 0, announces: r.IntN(2) == 0,
		filters: r.IntN(4) == 0,
		plan:    dataset.Options{Batch: 10, SplitBatches: 1 + r.IntN(5), Seed: r.Uint64N(8)},
	}
	if r.IntN(2) == 0 {
		j.plan.Shuffle = dataset.ShuffleNone
	}
	if r.IntN(2) == 0 {
		j.plan.Tail = dataset.DropTail
	}
	big := r.IntN(24) == 0
	if big { // The job has more splits than one record of the ledger has bits.
		j.epochs, j.ranks, j.tokens, j.plan.SplitBatches, j.plan.Batch = 1, 1+r.IntN(2), false, 1, 1
	}
	own := rand.New(rand.NewPCG(w.Seed, uint64(i))) // What it draws changes no other draw of the schedule.
	if own.IntN(3) == 0 {
		j.plan.Boundary = dataset.BoundaryNone
		j.rowGroup = []int64{0, 5, 12, 25, 60}[own.IntN(5)]
		if big { // Behind a partition with an odd number of rows, every split begins in the middle of a mini-batch.
			j.plan.Batch, j.rowGroup, j.longer = 2, 2, 3
		}
	}
	j.epochs = min(j.epochs, uint64(bounded(mostEpochs, w.reduction.Epochs)))
	j.ranks = bounded(j.ranks, w.reduction.Ranks)
	more := 0
	if r.IntN(3) == 0 {
		j.follow, more = true, r.IntN(mostEditions)
		j.once = own.IntN(2) == 0
	}
	partitions := 2 + r.IntN(mostPartitions-1)
	if big {
		partitions += 5
	}
	j.addEdition(partitions)
	for range more {
		j.addEdition(1 + r.IntN(4))
	}
	j.editions = j.editions[:bounded(len(j.editions), w.reduction.Editions)]
	if j.follow {
		j.appeared = 1
		for n := range more {
			appear := w.between(5*time.Second, 2*time.Minute)
			if n+1 < len(j.editions) && w.reduction.has(i) {
				w.after(appear, "partitions of "+j.id+" appear", func() { j.appeared = max(j.appeared, n+2) })
			}
		}
	}
	for rank := range j.ranks {
		j.consumers = append(j.consumers, newConsumer(j, uint32(rank)))
	}
	j.workers = r.IntN(4) - 1
	if share := float64(r.IntN(20)) / 4; share <= 1 {
		j.share = &share
		for rank := range j.ranks {
			w.addNode(fmt.Sprintf("own CPUs of %s-%d", j.id, rank), ledger.Any,
				&ledger.RankRef{Job: j.id, Rank: uint32(rank)})
		}
	}
	return j
}

// changeAllocation changes the number of nodes that a job runs at once, as the autoscaler does.
func (w *World) changeAllocation() {
	j := w.jobs[w.random.IntN(len(w.jobs))]
	j.drives = w.random.IntN(mostNodes + 1)
	m := w.leading()
	if m == nil || w.now.Before(m.paused) || m.term.jobs[j.id] == nil || m.term.jobs[j.id].Phase().Ended() {
		return // A later leader takes the job with the number.
	}
	if err := m.term.machine.Ledger.Allocate(j.id, j.drives, m.clock()); err != nil {
		w.fail("allocate %d drives to %s: %v", j.drives, j.id, err)
	}
	m.term.settle()
}

// rollOut restarts every member and every node, one after another, as an operator does who brings another version.
func (w *World) rollOut() {
	var steps []func()
	for _, m := range w.members {
		steps = append(steps, func() { m.crash(w.between(time.Second, 5*time.Second)) })
	}
	for _, n := range w.nodes {
		steps = append(steps, func() {
			n.draining = true
			w.after(w.between(time.Second, 4*time.Second), n.name+" is stopped", func() {
				n.draining = false
				n.die(w.between(time.Second, 4*time.Second))
			})
		})
	}
	var next func()
	next = func() {
		if len(steps) == 0 {
			return
		}
		step := steps[0]
		steps = steps[1:]
		step()
		w.after(w.between(4*time.Second, 10*time.Second), "the rollout goes on", next)
	}
	next()
}
