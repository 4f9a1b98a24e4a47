package autoscale

import "math"

// cluster simulates, event by event, drives that make mini-batches into a bounded input queue, and a trainer that takes
// them. It uses no clock and no random numbers: its jitter is a hash.
type cluster struct {
	options Options
	batch   float64 // rows of a mini-batch
	limit   int     // mini-batches of the input queue
	t       float64 // rows/s that the trainer takes
	p       []float64
	dead    []bool
	known   Inputs // T and P as measured before, and MaxDrives
	noBusy  bool   // utilisation is not known

	now      float64
	allowed  int
	making   []float64 // by drive: when its mini-batch is made; +Inf: it stands still
	worked   []float64 // by drive: seconds it worked since the last decision
	queue    int
	taking   float64 // when the trainer asks again; +Inf: it waits
	waiting  float64 // since when
	stalled  float64
	rows     float64
	draws    uint64
	paused   bool
	log      []Record
	history  []int // allowed, each second
	starved  []bool
	ctl      *Controller
	nextTick float64
}

func newCluster(t float64, p ...float64) *cluster {
	c := &cluster{batch: 100, limit: 32, t: t, p: p, dead: make([]bool, len(p))}
	c.known = Inputs{T: t, P: p[0]}
	return c
}

func (c *cluster) begin() {
	c.ctl = New(c.options)
	c.making, c.worked = make([]float64, len(c.p)), make([]float64, len(c.p))
	for i := range c.making {
		c.making[i] = math.Inf(1)
	}
	c.decide()
	c.nextTick = 1
}

// jitter is a factor around 1.
func (c *cluster) jitter() float64 {
	c.draws++
	z := c.draws * 0x9e3779b97f4a7c15
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	return 0.8 + 0.4*float64(z>>11)/(1<<53)
}

// running lists the drives that may work: the first allowed ones alive.
func (c *cluster) running() (n int, may []bool) {
	may = make([]bool, len(c.p))
	for i := range c.p {
		if !c.dead[i] && n < c.allowed {
			may[i] = true
			n++
		}
	}
	return n, may
}

func (c *cluster) inFlight() int {
	n := c.queue
	for i, at := range c.making {
		if !math.IsInf(at, 1) && !c.dead[i] {
			n++
		}
	}
	return n
}

// start lets idle drives begin a mini-batch where the queue has room.
func (c *cluster) start() {
	_, may := c.running()
	for i := range c.p {
		if may[i] && math.IsInf(c.making[i], 1) && c.inFlight() < c.limit {
			took := c.batch / c.p[i] * c.jitter()
			c.making[i] = c.now + took
			c.worked[i] += took
		}
	}
}

// run lets time pass until end; change is called at the second it is given for.
func (c *cluster) run(end float64, changes map[int]func()) {
	if c.ctl == nil {
		c.begin()
	}
	for c.now < end {
		c.start()
		next, what := c.nextTick, -1 // -1: a decision, -2: the trainer, else a drive
		if c.taking < next {
			next, what = c.taking, -2
		}
		for i, at := range c.making {
			if at < next {
				next, what = at, i
			}
		}
		c.now = next
		switch what {
		case -1:
			if f := changes[int(math.Round(c.now))]; f != nil {
				f()
			}
			c.decide()
			c.nextTick++
		case -2:
			c.take()
		default:
			c.making[what] = math.Inf(1)
			if !c.dead[what] {
				c.queue++
				if math.IsInf(c.taking, 1) && !c.paused {
					c.stalled += c.now - c.waiting
					c.take()
				}
			}
		}
	}
}

// take gives the trainer a mini-batch, or makes it wait.
func (c *cluster) take() {
	if c.queue == 0 || c.paused {
		c.taking, c.waiting = math.Inf(1), c.now
		return
	}
	c.queue--
	c.rows += c.batch
	c.taking = c.now + c.batch/c.t*c.jitter()
}

func (c *cluster) resume() {
	c.paused = false
	c.take()
}

func (c *cluster) decide() {
	holders := 0
	for _, d := range c.dead {
		if !d {
			holders++
		}
	}
	n, may := c.running()
	in := c.known
	in.Seconds, in.Holders, in.Running = c.now, holders, n
	in.QueueBatches, in.QueueLimit, in.Rows, in.StallSeconds = float64(c.queue), float64(c.limit), c.rows, c.stalled
	in.Blocked = c.inFlight() >= c.limit
	if math.IsInf(c.taking, 1) && !c.paused {
		in.StallSeconds += c.now - c.waiting
	}
	if c.making != nil && !c.noBusy && n > 0 {
		for i, w := range c.worked {
			if may[i] {
				in.Busy += math.Min(w, 1) / float64(n)
			}
		}
		clear(c.worked)
	}
	r := c.ctl.Decide(in)
	starved := len(c.log) > 0 && in.StallSeconds > c.log[len(c.log)-1].Inputs.StallSeconds+0.01
	c.log = append(c.log, r)
	c.allowed = r.Decision.Drives
	c.history = append(c.history, c.allowed)
	c.starved = append(c.starved, starved)
}

// changes counts how often the number of drives changed in [from, to) seconds.
func (c *cluster) changes(from, to int) int {
	n := 0
	for i := max(from, 1); i < min(to, len(c.history)); i++ {
		if c.history[i] != c.history[i-1] {
			n++
		}
	}
	return n
}

// starvation counts the seconds of [from, to) in which the trainer waited.
func (c *cluster) starvation(from, to int) int {
	n := 0
	for i := from; i < min(to, len(c.starved)); i++ {
		if c.starved[i] {
			n++
		}
	}
	return n
}
