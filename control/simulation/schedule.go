package simulation

import (
	"fmt"
	"time"

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
	fetchFails    float64       // The probability that a node does not serve a mini-batch.
	prepareFails  float64
	zombies       float64 // The probability that a launcher survives its replacement.
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
		w.nodes = append(w.nodes, newNode(w, i))
	}
	for i := range 1 + r.IntN(mostJobs) {
		j, submitted := w.drawJob(i), w.between(0, 10*time.Second)
		if w.reduction.has(i) {
			w.jobs = append(w.jobs, j)
			w.after(submitted, "submit "+j.id, func() { w.submit(j) })
		}
	}
	w.reduce()
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
		plan: dataset.Options{Batch: 10, SplitBatches: 1 + r.IntN(5), Seed: r.Uint64N(8)},
	}
	if r.IntN(2) == 0 {
		j.plan.Shuffle = dataset.ShuffleNone
	}
	if r.IntN(2) == 0 {
		j.plan.Tail = dataset.DropTail
	}
	j.epochs = min(j.epochs, uint64(bounded(mostEpochs, w.reduction.Epochs)))
	j.ranks = bounded(j.ranks, w.reduction.Ranks)
	more := 0
	if r.IntN(3) == 0 {
		j.follow, more = true, r.IntN(mostEditions)
	}
	j.addEdition(2 + r.IntN(mostPartitions-1))
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
	return j
}
