package simulation

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Reduction makes the day of a seed smaller. The zero value is the day that the seed draws.
type Reduction struct {
	Jobs    []int    // The numbers of the jobs that take place. A nil list has all jobs.
	Without []string // The names of the kinds of faults that do not occur.

	// These are upper bounds. 0 means that the schedule is not bounded.
	Ranks, Epochs, Editions, Partitions, Nodes, Members int

	Draw uint64 // Each value draws other events of the same schedule.
}

// faultKind is a kind of fault, and how a day loses it.
type faultKind struct {
	name   string
	remove func(*World)
}

// faultKinds lists the kinds of faults.
var faultKinds = []faultKind{
	{"node-deaths", func(w *World) { w.faults.nodeEvery = 0 }},
	{"member-deaths", func(w *World) { w.faults.memberEvery = 0 }},
	{"launcher-deaths", func(w *World) { w.faults.crashEvery = 0 }},
	{"survivors", func(w *World) { w.faults.zombies = 0 }},
	{"pauses", func(w *World) { w.faults.pauseEvery = 0 }},
	{"cuts", func(w *World) { w.faults.cutEvery = 0 }},
	{"lost-messages", func(w *World) { w.faults.loss = 0 }},
	{"doubled-messages", func(w *World) { w.faults.doubled = 0 }},
	{"late-messages", func(w *World) { w.faults.slow = quickMessage }},
	{"lost-writes", func(w *World) { w.faults.lostAnswer = 0 }},
	{"full-store", func(w *World) { w.faults.fullEvery = 0 }},
	{"failed-fetches", func(w *World) { w.faults.fetchFails = 0 }},
	{"deaths-at-fragments", func(w *World) { w.faults.halves = 0 }},
	{"failed-preparations", func(w *World) { w.faults.prepareFails = 0 }},
	{"rollouts", func(w *World) { w.faults.rollOutAt = 0 }},
	{"resubmissions", func(w *World) { w.faults.resubmissions = false }},
	{"allocations", func(w *World) { w.faults.allocateEvery = 0 }},
	{"drift", func(w *World) {
		for _, m := range w.members {
			m.drift = 0
		}
	}},
}

// bounds lists the numbers of a schedule that a reduction bounds. Most is the greatest number that a seed draws.
var bounds = []struct {
	name string
	most int
	of   func(*Reduction) *int
}{
	{"ranks", mostRanks, func(r *Reduction) *int { return &r.Ranks }},
	{"epochs", mostEpochs, func(r *Reduction) *int { return &r.Epochs }},
	{"editions", mostEditions, func(r *Reduction) *int { return &r.Editions }},
	{"partitions", mostPartitions, func(r *Reduction) *int { return &r.Partitions }},
	{"nodes", mostNodes, func(r *Reduction) *int { return &r.Nodes }},
	{"members", mostMembers, func(r *Reduction) *int { return &r.Members }},
}

// String returns the flags of the reduction, each after a space.
func (r Reduction) String() string {
	var b strings.Builder
	if r.Jobs != nil {
		fmt.Fprintf(&b, " --jobs %s", strings.ReplaceAll(strings.Trim(fmt.Sprint(r.Jobs), "[]"), " ", ","))
	}
	for _, bound := range bounds {
		if n := *bound.of(&r); n > 0 {
			fmt.Fprintf(&b, " --%s %d", bound.name, n)
		}
	}
	if len(r.Without) > 0 {
		fmt.Fprintf(&b, " --without %s", strings.Join(r.Without, ","))
	}
	if r.Draw > 0 {
		fmt.Fprintf(&b, " --draw %d", r.Draw)
	}
	return b.String()
}

// Define defines the flags of the reduction.
func (r *Reduction) Define(set *flag.FlagSet) {
	set.Func("jobs", "the numbers of the jobs of a day, as 0,2", func(value string) error {
		for _, word := range strings.Split(value, ",") {
			n, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			r.Jobs = append(r.Jobs, n)
		}
		return nil
	})
	for _, bound := range bounds {
		set.IntVar(bound.of(r), bound.name, 0, "the most "+bound.name+" of a day; 0: as the seed draws them")
	}
	set.Func("without", "the kinds of faults that a day does not have, as cuts,pauses", func(value string) error {
		for _, word := range strings.Split(value, ",") {
			if !slices.ContainsFunc(faultKinds, func(k faultKind) bool { return k.name == word }) {
				return errors.New("unknown kind of fault " + word)
			}
			r.Without = append(r.Without, word)
		}
		return nil
	})
	set.Uint64Var(&r.Draw, "draw", 0, "other events of the same schedule")
}

// reduce removes from a day that was drawn what its reduction takes away: kinds of faults, members and nodes. The
// remaining nodes hold the partitions of the removed ones.
func (w *World) reduce() {
	r := w.reduction
	for _, kind := range faultKinds {
		if slices.Contains(r.Without, kind.name) {
			kind.remove(w)
		}
	}
	members, nodes := bounded(mostMembers, r.Members), bounded(len(w.nodes), r.Nodes)
	for _, m := range w.members[members:] {
		m.alive = false
	}
	for i, n := range w.nodes[nodes:] {
		maps.Copy(w.nodes[i%nodes].holds, n.holds)
	}
	w.members, w.nodes = w.members[:members], w.nodes[:nodes]
	if r.Draw > 0 {
		w.random = rand.New(rand.NewPCG(w.Seed, r.Draw))
	}
}

// has reports whether a job takes place.
func (r Reduction) has(job int) bool { return r.Jobs == nil || slices.Contains(r.Jobs, job) }

// bounded returns a number of the schedule that has an upper bound.
func bounded(n, bound int) int {
	if bound > 0 {
		return min(n, bound)
	}
	return n
}

// smaller returns the reductions that take one thing more from a day.
func (r Reduction) smaller() (list []Reduction) {
	jobs := slices.Clone(r.Jobs)
	for n := range mostJobs {
		if r.Jobs == nil {
			jobs = append(jobs, n)
		}
	}
	for i := range jobs {
		if len(jobs) > 1 {
			next := r
			next.Jobs = slices.Delete(slices.Clone(jobs), i, i+1)
			list = append(list, next)
		}
	}
	for _, bound := range bounds {
		most := bounded(bound.most, *bound.of(&r))
		for _, n := range slices.Compact([]int{1, most / 2, most - 1}) {
			if 0 < n && n < most {
				next := r
				*bound.of(&next) = n
				list = append(list, next)
			}
		}
	}
	for _, kind := range faultKinds {
		if !slices.Contains(r.Without, kind.name) {
			next := r
			next.Without = append(slices.Clone(r.Without), kind.name)
			list = append(list, next)
		}
	}
	return list
}
