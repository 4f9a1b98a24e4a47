// Package chain makes the operators between a column and a tensor ready, and runs them over blocks of values.
package chain

import (
	"fmt"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/profile"
	"github.com/millrace/millrace/fpga/operator/kernels"
	"github.com/millrace/millrace/fpga/program"
)

// Chain is operators of one input, made ready to run one after the other.
type Chain []link

// link is one operator of a chain.
type link struct {
	step block.Step // nil if there is nothing to do for the operator
	unit program.Unit
	// fillsNulls reports that values have no nulls behind the operator. Without a step, nulls hold the wanted value.
	fillsNulls bool
}

// Compile makes operators ready for values of kind in. nullsHoldZero reports that the nulls of these values hold
// 0, as decoded ones do.
func Compile(ops []program.Op, in program.Kind, nullsHoldZero bool, tables *block.Tables) (Chain, error) {
	c := make(Chain, len(ops))
	for i, op := range ops {
		step, err := kernels.CompileStep(op, in, tables)
		if err != nil {
			return nil, fmt.Errorf("operator %d: %w", i, err)
		}
		c[i] = link{step: step, unit: op.Unit()}
		if filler, ok := step.(block.NullFiller); ok {
			c[i].fillsNulls = true
			if i == 0 && nullsHoldZero && filler.FillsZeros() {
				c[i].step = nil
			}
		}
		if fuser, ok := step.(block.Fuser); ok && i > 0 {
			if both := fuser.Fuse(c[i-1].step); both != nil {
				c[i-1].step, c[i].step = nil, both
			}
		}
		in = op.Out(in)
	}
	return c, nil
}

// WorksInPlace reports whether the chain begins with an operator that changes values where they lie.
func (c Chain) WorksInPlace() bool {
	for i := range c {
		if c[i].step != nil {
			_, inPlace := c[i].step.(block.InPlace)
			return inPlace
		}
	}
	return false
}

// StepCount returns how many steps the chain runs.
func (c Chain) StepCount() (n int) {
	for i := range c {
		if c[i].step != nil {
			n++
		}
	}
	return n
}

// MostElements returns how many elements the chain makes of a list of n elements at most, if it makes more of them.
func (c Chain) MostElements(n int64) int64 {
	for i := range c {
		if grower, ok := c[i].step.(block.ListGrower); ok {
			n = grower.MostElements(n)
		}
	}
	return n
}

// LastStep returns the last step of the chain; nil if it has none.
func (c Chain) LastStep() block.Step {
	if len(c) == 0 {
		return nil
	}
	return c[len(c)-1].step
}

// Run passes v through the chain. Afterwards no list holds a null.
func (c Chain) Run(b *block.Buffers, clock *profile.Stopwatch, v *block.Values) error {
	if err := c.RunSteps(b, clock, v); err != nil {
		return err
	}
	if v.List && v.Valid != nil {
		b.EmptyNullLists(v)
	}
	return nil
}

// RunSteps passes v through the steps of the chain and times each step. The lists of v may hold nulls afterwards.
func (c Chain) RunSteps(b *block.Buffers, clock *profile.Stopwatch, v *block.Values) error {
	at := clock.ReadClock()
	for i := range c {
		l, n := &c[i], v.Count
		switch {
		case l.fillsNulls && (v.Valid == nil || l.step == nil):
			v.Valid = nil
			clock.Profile[l.unit].AddRun(0, uint64(n))
			continue
		case l.step == nil:
			clock.Profile[l.unit].AddRun(0, uint64(n))
			continue
		case v.List && v.Valid != nil && v.Kind != program.Bytes && !l.fillsNulls:
			b.EmptyNullLists(v)
		}
		var err error
		if i == len(c)-1 {
			err = b.RunLast(l.step, v)
		} else {
			err = l.step.Run(b, v)
		}
		if err != nil {
			return err
		}
		at = clock.RecordRun(l.unit, at, n)
	}
	return nil
}
