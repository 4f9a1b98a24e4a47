package csd

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/nvme/cs"
)

// setRegions makes the state one of as many regions, with such weights, as Options say.
func (d *Drive) setRegions() error {
	o := &d.opt
	if o.Plain {
		if o.Regions > 1 || o.RegionWeights != nil {
			return fmt.Errorf("%d regions: a drive that does not compute has none", max(o.Regions, len(o.RegionWeights)))
		}
		return nil
	}
	n := cmp.Or(o.Regions, len(o.RegionWeights), d.state.regionCount())
	if n > cs.MaxRegions {
		return fmt.Errorf("%d regions: want 1 to %d", n, cs.MaxRegions)
	}
	if n != d.state.regionCount() {
		d.changed = true
		d.state.setRegions(n)
	}
	if err := d.setWeights(); err != nil {
		return err
	}
	weights := d.state.regionWeights()
	for region, weight := range weights {
		if share := cs.RegionWindow(uint64(o.SLMBytes), weights, region).Len; share < MinSLM {
			return fmt.Errorf("local memory of %d bytes for %d regions: each needs %d, and region %d has %d", o.SLMBytes, n,
				MinSLM, region, share)
		}
		if threads := o.Threads * weight; threads > MaxThreads {
			return fmt.Errorf("%d engine threads in region %d, %d for each of its weight: want at most %d", threads, region,
				o.Threads, MaxThreads)
		}
	}
	if n > 1 && o.Timing != nil && o.Timing.Mode() != timing.ModeImage {
		return fmt.Errorf("PreSto's designs have one region, and this drive has %d: use timing image or native", n)
	}
	return nil
}

// setWeights makes the weights of the regions those of Options.
func (d *Drive) setWeights() error {
	weights := d.opt.RegionWeights
	if weights == nil {
		return nil
	}
	if err := checkWeights(weights, d.state.regionCount()); err != nil {
		return err
	}
	if !slices.ContainsFunc(weights, func(w int) bool { return w != 1 }) {
		weights = nil
	}
	d.changed = d.changed || !slices.Equal(weights, d.state.Weights)
	d.state.Weights = slices.Clone(weights)
	return nil
}

// checkWeights returns an error for weights that a number of regions cannot have.
func checkWeights(weights []int, regions int) error {
	if len(weights) != regions || regions == 1 {
		return fmt.Errorf("%d weights for %d regions: want one for each of two regions or more", len(weights), regions)
	}
	for region, w := range weights {
		if w < 1 || w > cs.MaxRegionWeight {
			return fmt.Errorf("region %d of weight %d: want 1 to %d", region, w, cs.MaxRegionWeight)
		}
	}
	return nil
}

// regionWeights returns the weight of each region.
func (s *state) regionWeights() []int {
	if s.Weights != nil {
		return s.Weights
	}
	return slices.Repeat([]int{1}, s.regionCount())
}
