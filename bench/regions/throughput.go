package regions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// regionCounts are the numbers of regions of the table; a mix has one of as many regions as workloads, too.
var regionCounts = [...]int{1, 2, 4, 7}

// measureThroughput measures each workload alone, the first in more and more regions, and all of them mixed.
func (r *Result) measureThroughput(ctx context.Context, s *stage) error {
	alone := map[string]float64{}
	for _, w := range s.works {
		rates, err := s.ratesTogether(ctx, w)
		if err != nil {
			return err
		}
		alone[w.model] = rates[0]
		r.Throughput = append(r.Throughput, newThroughput([]string{w.model}, rates, alone))
	}
	for _, mix := range [][]*work{s.works[:1], s.works} {
		counts := slices.Concat(regionCounts[:], []int{len(mix)})
		slices.Sort(counts)
		for _, n := range slices.Compact(counts) {
			// A mix of one workload is measured already, and one workload in one region is it alone.
			if n == 1 || n > s.o.Regions || len(mix) > 1 && n < len(mix) {
				continue
			}
			works, models := make([]*work, n), make([]string, n)
			for i := range works {
				works[i] = mix[i%len(mix)]
				models[i] = works[i].model
			}
			rates, err := s.ratesTogether(ctx, works...)
			if err != nil {
				return err
			}
			r.Throughput = append(r.Throughput, newThroughput(models, rates, alone))
		}
		if len(s.works) == 1 {
			break
		}
	}
	return nil
}

// ratesTogether returns the rates of workloads, each in a region, that run at once.
func (s *stage) ratesTogether(ctx context.Context, works ...*work) (rates []float64, err error) {
	var names []string
	for _, w := range works {
		names = append(names, w.model)
	}
	s.o.Progress(fmt.Sprintf("%d regions: %s", len(works), strings.Join(names, ", ")))
	list, err := s.newJobs(ctx, works...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, list.closeAll()) }()
	return list.measureRates(ctx, s.o.Time)
}
