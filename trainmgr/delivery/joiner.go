package delivery

import (
	"slices"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// joiner keeps the fragments of mini-batches until the last fragment of each has come. It is a pure machine: its owner
// joins what it returns.
type joiner struct {
	waiting map[uint64][]*tensor.MiniBatch // by the mini-batch's number, in the order of the fragments
}

// completes reports whether a fragment that is not added yet is the last one of its mini-batch that is missing.
func (j *joiner) completes(part *tensor.MiniBatch) bool {
	return len(j.waiting[part.Name.Number])+1 == part.Fragment.Of
}

// add keeps a fragment. If the fragment is the last one of its mini-batch that was missing, add returns all of them in
// their order, and keeps them no longer. No fragment is added twice.
func (j *joiner) add(part *tensor.MiniBatch) (whole []*tensor.MiniBatch) {
	number := part.Name.Number
	parts, last := j.waiting[number], j.completes(part)
	at, _ := slices.BinarySearchFunc(parts, part.Fragment.Index, func(p *tensor.MiniBatch, index int) int {
		return p.Fragment.Index - index
	})
	parts = slices.Insert(parts, at, part)
	if last {
		delete(j.waiting, number)
		return parts
	}
	j.waiting[number] = parts
	return nil
}

// drain releases the fragments that still wait.
func (j *joiner) drain() {
	for number, parts := range j.waiting {
		releaseAll(parts)
		delete(j.waiting, number)
	}
}

// releaseAll releases fragments.
func releaseAll(parts []*tensor.MiniBatch) {
	for _, p := range parts {
		p.Release()
	}
}

// placeOf returns the fragment of a number, and its place in the mini-batch as the fragment itself must say it. The
// zero place is that of a fragment which is the whole mini-batch. Behind the plan's last fragment both are zero.
func placeOf(plan *dataset.Plan, number uint64) (f dataset.Fragment, place tensor.Fragment) {
	f, err := plan.Fragment(number)
	if err == nil {
		place.Index, place.Of = plan.Place(f)
	}
	return f, place
}
