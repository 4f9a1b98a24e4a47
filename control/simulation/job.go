package simulation

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/sdk/dataset"
)

// job is a job of the schedule, with what its trainers have got: the oracle.
type job struct {
	world         *World
	id            string
	epochs        uint64
	ranks         int
	keepTail      bool
	deterministic bool
	tokens        bool // Its trainers resume from tokens; otherwise from what was acknowledged.
	follow        bool
	announces     bool // Its launchers announce that they say when their rank is through.
	plan          dataset.Options
	editions      []*edition
	known         int // editions whose partitions there are
	consumers     []*consumer
	submitting    *term // The term in which the job is being stored; nil: none.
	over          bool
}

// edition is a set of partitions of a job.
type edition struct {
	number   int
	digest   dataset.Digest
	manifest *dataset.Manifest
	words    []string
	epochs   []*epoch // the epochs over the edition
}

// epoch is what there is to train of an epoch.
type epoch struct {
	number  uint64
	edition *edition
	plan    *dataset.Plan
	shares  []dataset.Range // by rank, computed apart
}

// addEdition draws a set of partitions, and copies of them on nodes.
func (j *job) addEdition(partitions int) {
	w, g := j.world, &edition{number: len(j.editions)}
	g.digest = sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", w.Seed, j.id, g.number))
	var list []dataset.Partition
	for i := range partitions {
		rows := w.random.Int64N(200)
		if i == 0 {
			rows = 200 // no edition is empty
		}
		name := fmt.Sprintf("%s-%d-%02d", j.id, g.number, i)
		list = append(list, dataset.Partition{
			Name: name, Bytes: 1, Rows: rows, RowGroups: []int64{rows}, Content: sha256.Sum256([]byte(name)),
		})
		g.words = append(g.words, name)
		for copies := 1 + w.random.IntN(2); copies > 0; copies-- {
			w.nodes[w.random.IntN(len(w.nodes))].holds[name] = true
		}
	}
	var err error
	if g.manifest, err = dataset.NewManifest(list); err != nil {
		panic(err) // a fault of this package
	}
	for i := range j.epochs {
		o := j.plan
		o.Epoch = uint64(g.number)*j.epochs + i
		e := &epoch{number: o.Epoch, edition: g}
		if e.plan, err = dataset.NewPlan(g.manifest, o); err != nil {
			panic(err)
		}
		e.shares = j.sharesApart(g)
		g.epochs = append(g.epochs, e)
	}
	j.editions = append(j.editions, g)
}

// sharesApart computes the ranks' numbers of an epoch by the words of the specification: mini-batches of each
// partition, one after the other, and as many for each rank.
func (j *job) sharesApart(g *edition) (shares []dataset.Range) {
	total := uint64(0)
	for _, p := range g.manifest.Partitions {
		n := uint64(p.Rows) / uint64(j.plan.Batch)
		if p.Rows%int64(j.plan.Batch) != 0 && j.plan.Tail == dataset.KeepTail {
			n++
		}
		total += n
	}
	from := uint64(0)
	for rank := range uint64(j.ranks) {
		n := total / uint64(j.ranks)
		if j.keepTail && rank < total%uint64(j.ranks) {
			n++
		}
		shares = append(shares, dataset.Range{From: from, To: from + n})
		from += n
	}
	return shares
}

// epoch returns an epoch by its number, or nil.
func (j *job) epoch(number uint64) *epoch {
	g := int(number / j.epochs)
	if g >= len(j.editions) {
		return nil
	}
	return j.editions[g].epochs[number%j.epochs]
}

// end returns the number of epochs that the job has in all.
func (j *job) end() uint64 { return uint64(len(j.editions)) * j.epochs }

// dropped reports whether a job no longer keeps the edition of an epoch: it keeps the last two.
func (j *job) dropped(epoch uint64) bool { return int(epoch/j.epochs)+2 < j.known }

// content returns the bytes of a mini-batch, which stand for its tensors: they name the partition and the rows.
func (e *epoch) content(number uint64) string {
	b, err := e.plan.MiniBatch(number)
	if err != nil {
		return "no mini-batch"
	}
	return fmt.Sprintf("%s[%d,%d)", e.edition.words[b.Partition], b.First, b.First+int64(b.Rows))
}

// trained holds what a model was trained with, by epoch.
type trained map[uint64][]bool

func (t trained) has(epoch, number uint64) bool {
	list := t[epoch]
	return number < uint64(len(list)) && list[number]
}

func (t trained) add(e *epoch, number uint64) {
	if t[e.number] == nil {
		t[e.number] = make([]bool, e.plan.MiniBatches())
	}
	t[e.number][number] = true
}

func (t trained) clone() trained {
	c := trained{}
	for epoch, list := range t {
		c[epoch] = slices.Clone(list)
	}
	return c
}

// ranges returns the numbers of an epoch, as tokens have them.
func (t trained) ranges(epoch uint64) (ranges []dataset.Range) {
	for n, has := range t[epoch] {
		if has {
			ranges = dataset.InsertNumber(ranges, uint64(n))
		}
	}
	return ranges
}

// consumer is one rank of a job over all its processes: the model that it trains, and its last checkpoint.
type consumer struct {
	job     *job
	rank    uint32
	model   trained // What this lineage of the model was trained with.
	saved   trained // The model of the checkpoint; nil: there is none.
	token   *dataset.Token
	process *launcher                  // nil: none lives
	saidTo  uint64                     // the fence of the leader that answered last
	said    map[uint64][]dataset.Range // by epoch: what was answered as acknowledged
	done    bool                       // Its process was told that nothing is left.
	through bool                       // A process of the rank, perhaps one that was taken for dead, was told so.
}

func newConsumer(j *job, rank uint32) *consumer {
	return &consumer{job: j, rank: rank, model: trained{}, said: map[uint64][]dataset.Range{}}
}

// train trains the model with a mini-batch, and checks that it may.
func (c *consumer) train(e *epoch, number uint64, content string) {
	w, share := c.job.world, e.shares[c.rank]
	switch {
	case c.model.has(e.number, number):
		w.fail("%s trains mini-batch %d of epoch %d twice", c.name(), number, e.number)
	case number < share.From || number >= share.To:
		w.fail("%s trains mini-batch %d of epoch %d, which is another rank's: its own are %v", c.name(), number, e.number,
			share)
	case content != e.content(number):
		w.fail("%s trains %s as mini-batch %d of epoch %d, which is %s", c.name(), content, number, e.number,
			e.content(number))
	}
	c.model.add(e, number)
}

// checkWhole checks that a rank that is through was trained with every mini-batch of its own.
func (c *consumer) checkWhole() {
	for epoch := range c.job.end() {
		e := c.job.epoch(epoch)
		for n := e.shares[c.rank].From; n < e.shares[c.rank].To; n++ {
			if !c.model.has(epoch, n) {
				c.job.world.fail("%s is told that the job is done, and mini-batch %d of epoch %d was never trained",
					c.name(), n, epoch)
				return
			}
		}
	}
}

// noteSaid keeps what a leader answered as acknowledged. Acknowledgements inside a split of which others are missing
// are in the leader's memory only (package ledger, Durability): a later leader does not know them.
func (c *consumer) noteSaid(fence uint64, e *epoch, numbers []dataset.Range) {
	share := e.shares[c.rank]
	if c.saidTo != fence {
		var whole []dataset.Range
		for s := range e.plan.All() {
			from, to := max(s.FirstNumber, share.From), min(s.FirstNumber+uint64(s.MiniBatches), share.To)
			if from < to && said(c.said[e.number], from, to) {
				whole = dataset.UnionRanges(whole, []dataset.Range{{From: from, To: to}})
			}
		}
		c.saidTo, c.said[e.number] = fence, whole
	}
	c.said[e.number] = dataset.UnionRanges(c.said[e.number], numbers)
}

// said reports whether ranges have every number from from up to to.
func said(ranges []dataset.Range, from, to uint64) bool {
	for _, r := range ranges {
		if r.From <= from && to <= r.To {
			return true
		}
	}
	return false
}

func (c *consumer) name() string { return fmt.Sprintf("%s rank %d", c.job.id, c.rank) }

// describe says how far a job is.
func (j *job) describe() string {
	var parts []string
	for _, c := range j.consumers {
		n := 0
		for _, list := range c.model {
			for _, has := range list {
				if has {
					n++
				}
			}
		}
		words := "no process"
		if c.process != nil {
			words = c.process.describe()
		}
		parts = append(parts, fmt.Sprintf("rank %d has %d (%s)", c.rank, n, words))
	}
	if m := j.world.leading(); m != nil && m.term.jobs[j.id] != nil {
		parts = append(parts, m.name+" says "+m.term.jobs[j.id].Words())
	}
	return strings.Join(parts, "; ")
}

// review ends a job whose ranks are all through.
func (j *job) review() {
	for _, c := range j.consumers {
		if !c.done {
			return
		}
	}
	j.over = true
	j.world.note("%s is over", j.id)
}
