package simulation

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// start is when every day begins.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// World is one simulated day. It holds the schedule, the parts and the pending events.
type World struct {
	Seed uint64

	now      time.Time
	random   *rand.Rand
	events   eventQueue
	made     uint64 // The number of events that were scheduled.
	Executed int    // The number of events that were executed.
	hash     uint64
	trace    io.Writer // The trace gets a line for each event. A nil trace gets none.
	mutant   Mutant    // Empty means none.
	failure  *Failure

	reduction Reduction
	faults    faults
	faultsEnd time.Time // No fault occurs from this time on.
	store     *store
	members   []*member
	nodes     []*node
	jobs      []*job
	launched  int               // The number of launcher processes that were started.
	tickets   map[uint64]ticket // The key is the ID of the lease.
}

// Failure describes a property that a day violated.
type Failure struct {
	Seed      uint64
	Reduction Reduction
	Mutant    Mutant
	Events    int // The number of events that were executed before the failure.
	At        time.Duration
	Property  string // The text of the property, which days that violate it share.
	What      string // The text with the names and numbers of this day.
}

// Error names the violated property and the command that repeats the day.
func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d, event %d, %v: %s\n%s", f.Seed, f.Events, f.At, f.What, f.Command())
}

// Command returns the command that repeats the day up to the failure.
func (f *Failure) Command() string {
	mutant := ""
	if f.Mutant != "" {
		mutant = fmt.Sprintf(" --mutant %q", f.Mutant)
	}
	return fmt.Sprintf("go run ./control/simulation/simulate --seed %d --events %d%v%s --trace", f.Seed, f.Events,
		f.Reduction, mutant)
}

// event is a function that runs at a time.
type event struct {
	at     time.Time
	number uint64 // Events of one time run in the order of their numbers.
	what   string
	do     func()
}

type eventQueue []*event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].number < q[j].number
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(e any)   { *q = append(*q, e.(*event)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return e
}

// after schedules do to run after the duration d.
func (w *World) after(d time.Duration, what string, do func()) *event {
	w.made++
	e := &event{w.now.Add(max(d, 0)), w.made, what, do}
	heap.Push(&w.events, e)
	return e
}

// never cancels an event.
func (e *event) never() { e.do = nil }

// note writes a line to the trace.
func (w *World) note(format string, values ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%12v  %s\n", w.now.Sub(start), fmt.Sprintf(format, values...))
	}
}

// mix adds a text to the hash over all events.
func (w *World) mix(text string) {
	h := w.hash
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211 // FNV-1a
	}
	w.hash = (h ^ uint64(w.now.UnixNano())) * 1099511628211
}

// fail ends the day, because a property was violated.
func (w *World) fail(format string, values ...any) {
	if w.failure == nil {
		w.failure = &Failure{
			Seed: w.Seed, Reduction: w.reduction, Mutant: w.mutant, Events: w.Executed, At: w.now.Sub(start),
			Property: format, What: fmt.Sprintf(format, values...),
		}
	}
}

// Hash returns the hash over all events so far.
func (w *World) Hash() uint64 { return w.hash }

// Run executes events until every job has ended, a property is violated, or most events were executed. It reports
// whether every job has ended.
func (w *World) Run(most int) (over bool, err error) {
	for w.Executed < most && w.failure == nil {
		if w.over() {
			return true, nil
		}
		if len(w.events) == 0 {
			w.fail("nothing happens any more, and not every job has ended")
			break
		}
		e := heap.Pop(&w.events).(*event)
		if e.do == nil {
			continue
		}
		w.now = e.at
		w.Executed++
		w.mix(e.what)
		w.note("%s", e.what)
		w.execute(e)
	}
	if w.failure != nil {
		return false, w.failure
	}
	return w.over(), nil
}

// execute executes an event. A panic violates a property, so that its day is repeated and shrunk as other days are. The
// trace has the stack of the panic.
func (w *World) execute(e *event) {
	defer func() {
		if v := recover(); v != nil {
			w.note("%s", debug.Stack())
			w.fail("a machine panics: %v", v)
		}
	}()
	e.do()
}

// over reports whether every job has ended, and nodes have forgotten the jobs. A job that follows its data set waits
// for partitions when its launchers have ended.
func (w *World) over() bool {
	for _, j := range w.jobs {
		if !j.over || !j.follow && j.remembered() {
			return false
		}
	}
	return true
}

// chance returns true with the probability p.
func (w *World) chance(p float64) bool { return p > 0 && w.random.Float64() < p }

// between draws a duration from least to most.
func (w *World) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.random.Int64N(int64(most-least)+1))
}

// faulty reports whether faults still occur.
func (w *World) faulty() bool { return w.now.Before(w.faultsEnd) }

// New derives the schedule of a day from a seed.
func New(seed uint64, o Options) *World {
	h := fnv.New64a()
	w := &World{
		Seed: seed, now: start, random: rand.New(rand.NewPCG(seed, 0x6d696c6c72616365)), hash: h.Sum64(),
		trace: o.Trace, mutant: o.Mutant, reduction: o.Reduction,
		tickets: map[uint64]ticket{},
	}
	w.draw()
	return w
}

// Options holds the settings of a day that do not follow from the seed.
type Options struct {
	Trace     io.Writer // The trace gets a line for each event. A nil trace gets none.
	Mutant    Mutant
	Reduction Reduction
}

// Join adds the hash of a day to a hash over days.
func Join(days, day uint64) uint64 { return (days ^ day) * 1099511628211 }
