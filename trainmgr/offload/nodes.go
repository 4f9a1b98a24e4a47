package offload

import (
	"fmt"
	"math"
)

// DecideNodes decides for several trainer nodes that step together, as data-parallel training does, and share
// workers that make supply rows a second in all. Each node's metrics are measured alone, with all workers. The
// slowest node sets the pace, so the workers' rows go to the nodes that need them for the highest common pace, and
// the remaining rows raise every node's headroom alike. The paper leaves several trainer nodes open.
func DecideNodes(nodes []Metrics, supply float64) ([]Decision, error) {
	decisions := make([]Decision, len(nodes))
	models := make([]model, len(nodes))
	pace := math.Inf(1) // of the slowest trainer
	for i := range nodes {
		d, err := Decide(Extended, nodes[i])
		if err != nil {
			return nil, fmt.Errorf("trainer node %d: %w", i, err)
		}
		c, ok := nodes[i].candidate(d.Cut)
		if !ok && len(nodes[i].Candidates) > 0 {
			c = nodes[i].Candidates[0] // a pace above the node's own decision may need it
		}
		decisions[i], models[i] = d, newModel(&nodes[i], c)
		pace = math.Min(pace, nodes[i].Gthp)
	}
	if len(nodes) == 0 || !(supply >= 0) {
		return decisions, nil
	}
	reached := highestPace(models, headroom*pace, supply)
	for i := range decisions {
		o := &models[i]
		share, _ := o.least(reached)
		d := &decisions[i]
		d.Ratio, d.Raw, d.Offload = share, share, share > 0
		d.Expected = math.Min(reached, pace)
		d.Lower, d.Upper = float64(share*d.Expected), math.Min(o.remoteSupply, supply)
		if c, ok := nodes[i].candidate(d.Cut); d.Offload && !ok && len(nodes[i].Candidates) > 0 {
			c = nodes[i].Candidates[0]
			d.Cut = c.Cut
		}
		if !d.Offload {
			d.Cut = None
		}
		d.Why = fmt.Sprintf("%d trainer nodes reach %.0f rows/s each together; this one offloads %.0f%%", len(nodes),
			d.Expected, 100*share)
	}
	return decisions, nil
}

// highestPace returns the highest rate, at most limit, that all nodes reach with the workers' supply shared among them.
func highestPace(models []model, limit, supply float64) float64 {
	feasible := func(rate float64) bool {
		sum := 0.0
		for i := range models {
			share, ok := models[i].least(rate)
			if !ok {
				return false
			}
			sum += float64(share * rate)
		}
		return sum <= supply
	}
	if feasible(limit) {
		return limit
	}
	low, high := 0.0, limit
	for range 50 {
		if middle := (low + high) / 2; feasible(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
