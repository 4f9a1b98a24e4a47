package simulation

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/sdk/dataset"
)

// job is a job of the schedule. It records the mini-batches of its trainers and checks them.
type job struct {
	world         *World
	id            string
	epochs        uint64
	ranks         int
	keepTail      bool
	deterministic bool
	tokens        bool // The trainers resume from tokens. Otherwise they resume behind the acknowledged mini-batches.
	follow        bool
	once          bool           // Each edition but the first one has one epoch.
	filters       bool           // Only some rows of each partition become mini-batches.
	from          *dataset.Token // The job resumes from this token of a former job. Nil means a new start.
	cancelled     bool           // The user has cancelled the job.
	drives        int            // The number of nodes that may run at once. 0 means no bound.
	workers       int            // The number of workers without data that may run beside the nodes.
	share         *float64       // The share of the splits that the trainer's own CPUs do not make. Nil: it has none.
	announces     bool           // The launchers announce that they will report the end of their ranks.
	plan          dataset.Options
	rowGroup      int64 // The rows of each row group but the last of a partition. 0 means that a partition has one.
	longer        int64 // Partitions have as many times the rows that are drawn, less one. 0 means 1.
	editions      []*edition
	appeared      int // The number of editions whose partitions exist.
	consumers     []*consumer
	submitting    *term // The term in which the job is being stored. A nil term means that no leader stores the job.
	over          bool
}

// edition is a set of partitions of a job.
type edition struct {
	number   int
	first    uint64 // its first epoch
	digest   dataset.Digest
	manifest *dataset.Manifest
	passing  []int64 // The rows of each partition that pass the filter. Nil means that the job has no filter.
	words    []string
	epochs   []*epoch // the epochs over the edition
}

// epoch holds the plan of an epoch.
type epoch struct {
	number  uint64
	edition *edition
	plan    *dataset.Plan
	batches []string          // What each mini-batch consists of, computed without the machines.
	shares  []dataset.Range   // The numbers of each rank, computed without the machines.
	before  *dataset.Progress // The mini-batches that a former job has trained. Nil means none.
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
		if j.longer > 0 {
			rows = max(j.longer*rows-1, 0)
		}
		name := fmt.Sprintf("%s-%d-%02d", j.id, g.number, i)
		var passing int64
		if j.filters {
			passing = (rows+1)/2 + w.random.Int64N(rows/2+1)
		}
		if i < bounded(partitions, w.reduction.Partitions) {
			list = append(list, dataset.Partition{
				Name: name, Bytes: 1, Rows: rows, RowGroups: j.rowGroups(rows), Content: sha256.Sum256([]byte(name)),
			})
			g.words = append(g.words, name)
			if j.filters {
				g.passing = append(g.passing, passing)
			}
		}
		for copies := 1 + w.random.IntN(2); copies > 0; copies-- {
			w.nodes[w.random.IntN(mostNodes)].holds[name] = true
		}
	}
	var err error
	if g.manifest, err = dataset.NewManifest(list); err != nil {
		panic(err) // a fault of this package
	}
	j.planEpochs(g)
}

// rowGroups returns the row groups of a partition.
func (j *job) rowGroups(rows int64) (groups []int64) {
	for j.rowGroup > 0 && rows > j.rowGroup {
		groups, rows = append(groups, j.rowGroup), rows-j.rowGroup
	}
	return append(groups, rows)
}

// planEpochs adds an edition to the job and plans the epochs over it.
func (j *job) planEpochs(g *edition) {
	var err error
	epochs := j.epochs
	if j.once && g.number > 0 {
		epochs = 1
	}
	g.first = j.end()
	for i := range epochs {
		o := j.plan
		o.Epoch = g.first + i
		e := &epoch{number: o.Epoch, edition: g}
		if e.plan, err = dataset.NewSelectedPlan(g.manifest, g.passing, o); err != nil {
			panic(err) // a fault of this package
		}
		if t := j.from; t != nil && t.Epoch == e.number {
			e.before = e.progress(t.Acknowledged())
		}
		e.batches = j.batchesApart(e)
		e.shares = j.sharesApart(e)
		g.epochs = append(g.epochs, e)
	}
	j.editions = append(j.editions, g)
}

// batchesApart computes what each mini-batch consists of without the fragments of the plan: the rows of the plan's
// splits, one after the other, in pieces that end where the splits end. With the boundary partition a mini-batch ends
// with its partition.
func (j *job) batchesApart(e *epoch) (batches []string) {
	var pieces []string
	room := int64(j.plan.Batch)
	end := func() {
		if room == 0 || room < int64(j.plan.Batch) && j.plan.Tail == dataset.KeepTail {
			batches = append(batches, strings.Join(pieces, "+"))
		}
		pieces, room = nil, int64(j.plan.Batch)
	}
	for s := range e.plan.All() {
		for first := s.First; first < s.First+s.Rows; {
			rows := min(room, s.First+s.Rows-first)
			pieces = append(pieces, e.rows(s.Partition, first, rows))
			first, room = first+rows, room-rows
			if room == 0 {
				end()
			}
		}
		if j.plan.Boundary == dataset.BoundaryPartition {
			end()
		}
	}
	end()
	return batches
}

// sharesApart computes the numbers of each rank without the machines and the plan. It counts the mini-batches of the
// partitions, or of all of them together, and gives each rank an equal part of those that the job owes.
func (j *job) sharesApart(e *epoch) (shares []dataset.Range) {
	counts := []int64{0} // rows that are cut into mini-batches together
	for i, p := range e.edition.manifest.Partitions {
		rows := p.Rows
		if e.edition.passing != nil {
			rows = e.edition.passing[i]
		}
		if j.plan.Boundary == dataset.BoundaryPartition {
			counts = append(counts, 0)
		}
		counts[len(counts)-1] += rows
	}
	var owed []uint64
	total := uint64(0)
	for _, rows := range counts {
		n := uint64(rows) / uint64(j.plan.Batch)
		if rows%int64(j.plan.Batch) != 0 && j.plan.Tail == dataset.KeepTail {
			n++
		}
		for ; n > 0; n-- {
			if e.owes(total) {
				owed = append(owed, total)
			}
			total++
		}
	}
	each, more := len(owed)/j.ranks, len(owed)%j.ranks
	for rank := range j.ranks {
		n := each
		if j.keepTail && rank < more {
			n++
		}
		var share dataset.Range
		if n > 0 {
			share = dataset.Range{From: owed[0], To: owed[n-1] + 1}
		}
		shares, owed = append(shares, share), owed[n:]
	}
	return shares
}

// owes reports whether the job has to deliver a mini-batch, because no former job has.
func (e *epoch) owes(number uint64) bool { return e.before == nil || !e.before.Acked(number) }

// owned reports whether the job has to deliver a mini-batch to a rank.
func (e *epoch) owned(rank uint32, number uint64) bool {
	share := e.shares[rank]
	return share.From <= number && number < share.To && e.owes(number)
}

// epoch returns an epoch by its number, or nil.
func (j *job) epoch(number uint64) *epoch {
	for _, g := range j.editions {
		if i := number - g.first; i < uint64(len(g.epochs)) {
			return g.epochs[i]
		}
	}
	return nil
}

// firstEpoch returns the epoch in which the job begins.
func (j *job) firstEpoch() uint64 {
	if j.from == nil {
		return 0
	}
	return j.from.Epoch
}

// beginning returns the token of a rank that has trained nothing.
func (j *job) beginning() *dataset.Token {
	if j.from != nil {
		return j.from
	}
	return &dataset.Token{Job: j.editions[0].digest}
}

// end returns the number of epochs of all editions.
func (j *job) end() (epochs uint64) {
	for _, g := range j.editions {
		epochs += uint64(len(g.epochs))
	}
	return epochs
}

// dropped reports whether a job has dropped the edition of an epoch. A job keeps its last two editions.
func (j *job) dropped(epoch uint64) bool { return j.epoch(epoch).edition.number+2 < j.appeared }

// rows returns a text that stands for the tensors of rows of a partition.
func (e *epoch) rows(partition int, first, rows int64) string {
	return fmt.Sprintf("%s[%d,%d)", e.edition.words[partition], first, first+rows)
}

// content returns a text that stands for the tensors of a fragment, as the plan has it.
func (e *epoch) content(fragment uint64) string {
	f, err := e.plan.Fragment(fragment)
	if err != nil {
		return "no fragment"
	}
	return e.rows(f.Partition, f.First, int64(f.Rows))
}

// batch returns a text that stands for the tensors of a mini-batch.
func (e *epoch) batch(number uint64) string {
	if number >= uint64(len(e.batches)) {
		return "no mini-batch"
	}
	return e.batches[number]
}

// trained holds the mini-batches that a model was trained with, by epoch.
type trained map[uint64][]bool

func (t trained) has(epoch, number uint64) bool {
	list := t[epoch]
	return number < uint64(len(list)) && list[number]
}

func (t trained) add(e *epoch, number uint64) {
	if t[e.number] == nil {
		t[e.number] = make([]bool, len(e.batches))
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

// consumer is one rank of a job over all its processes. It holds the model and the last checkpoint.
type consumer struct {
	job       *job
	rank      uint32
	model     trained // The model of this lineage was trained with these mini-batches.
	saved     trained // The model of the last checkpoint. A nil model means that no checkpoint exists.
	token     *dataset.Token
	process   *launcher                  // A nil process means that no process lives.
	answered  map[uint64][]dataset.Range // The acknowledgements of each epoch that leaders have confirmed.
	ended     bool                       // The process ended because the job had nothing left for the rank.
	completed bool                       // A process completed the rank. The schedule may count it as dead.
	zombies   int                        // The number of processes that lived on when the schedule replaced them.
}

func newConsumer(j *job, rank uint32) *consumer {
	return &consumer{job: j, rank: rank, model: trained{}, answered: map[uint64][]dataset.Range{}}
}

// train trains the model with a mini-batch. It checks the number, the rank and the content of the mini-batch.
func (c *consumer) train(e *epoch, number uint64, content string) {
	w, share := c.job.world, e.shares[c.rank]
	switch {
	case c.model.has(e.number, number):
		w.fail("%s trains mini-batch %d of epoch %d twice", c.name(), number, e.number)
	case !e.owned(c.rank, number):
		w.fail("%s trains mini-batch %d of epoch %d, which is another rank's: its own are %v", c.name(), number, e.number,
			share)
	case content != e.batch(number):
		w.fail("%s trains %s as mini-batch %d of epoch %d, which is %s", c.name(), content, number, e.number,
			e.batch(number))
	}
	c.model.add(e, number)
}

// lacks returns the first of the rank's mini-batches that has contains and the model was not trained with. A nil has
// contains every mini-batch.
func (c *consumer) lacks(e *epoch, has *dataset.Progress) (number uint64, found bool) {
	for n := e.shares[c.rank].From; n < e.shares[c.rank].To; n++ {
		if (has == nil || has.Acked(n)) && e.owes(n) && !c.model.has(e.number, n) {
			return n, true
		}
	}
	return 0, false
}

// checkWhole checks that the model was trained with every mini-batch of the rank.
func (c *consumer) checkWhole() {
	for epoch := c.job.firstEpoch(); epoch < c.job.end(); epoch++ {
		if n, found := c.lacks(c.job.epoch(epoch), nil); found {
			c.job.world.fail("%s learns that the job is done, and mini-batch %d of epoch %d was never trained", c.name(), n,
				epoch)
			return
		}
	}
}

// checkConfirmed checks that a leader knows the acknowledgements that leaders have confirmed, of the jobs whose
// trainers resume without tokens.
func (t *term) checkConfirmed() {
	w := t.member.world
	if t.fence != w.store.fence {
		return // Another member leads.
	}
	for _, j := range w.jobs {
		if l := t.jobs[j.id]; j.tokens || l == nil || !l.Phase().Begun() || l.Phase().Ended() {
			continue
		}
		for _, c := range j.consumers {
			token, err := t.machine.Ledger.RankToken(j.id, c.rank)
			if err != nil {
				continue // The leader has not begun the epoch of the rank.
			}
			c.checkKnown(t.member.name, token)
		}
	}
}

// checkKnown checks that a token of the rank has the acknowledgements that leaders have confirmed.
func (c *consumer) checkKnown(member string, token dataset.Token) {
	for _, epoch := range slices.Sorted(maps.Keys(c.answered)) {
		answered := c.answered[epoch]
		if epoch > token.Epoch ||
			epoch == token.Epoch && !slices.Equal(dataset.IntersectRanges(answered, token.Acknowledged()), answered) {
			c.job.world.fail("%s was answered that %v of epoch %d are acknowledged, and %s has %v of epoch %d", c.name(),
				answered, epoch, member, token.Acknowledged(), token.Epoch)
			return
		}
	}
}

func (c *consumer) name() string { return fmt.Sprintf("%s rank %d", c.job.id, c.rank) }

// describe describes the progress of a job.
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

// review ends a job whose ranks have all ended.
func (j *job) review() {
	for _, c := range j.consumers {
		if !c.ended {
			return
		}
	}
	j.over = true
	j.world.note("%s is over", j.id)
}
