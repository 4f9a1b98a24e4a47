package sizing

import "math"

// Cost is what one placement costs.
type Cost struct {
	Placement string  `json:"placement"`
	USD       float64 `json:"usd"`
	Fits      bool    `json:"feasible"`
}

// Point is the cost of every placement at one T.
type Point struct {
	T        float64 `json:"t_rows_per_second"`
	Cheapest string  `json:"cheapest"`
	Costs    []Cost  `json:"costs"`
}

// Crossover is a T from which on another placement is the cheaper one.
type Crossover struct {
	T    float64 `json:"t_rows_per_second"`
	From string  `json:"from"`
	To   string  `json:"to"`
}

// The sweep goes from T / 64 to T x 4096 in steps of the square root of two. A crossover is therefore known to that
// step.
const (
	sweepFrom  = -6
	sweepTo    = 12
	sweepSteps = 2 // for each doubling
)

// sweep sizes every placement as T grows.
func sweep(s *sizer, j *Job) (points []Point, err error) {
	base := s.value(figureT)
	for step := sweepFrom * sweepSteps; step <= sweepTo*sweepSteps; step++ {
		at := newSizer(s.table.with(figureT, base*math.Pow(2, float64(step)/sweepSteps)), j)
		list, err := at.placeAll()
		if err != nil {
			return nil, err
		}
		p := Point{T: at.t, Cheapest: summarize(list).Cheapest, Costs: []Cost{}}
		for i := range list {
			if l := &list[i]; l.NoFigure == "" {
				p.Costs = append(p.Costs, Cost{l.Name, l.Total, l.Fits})
			}
		}
		points = append(points, p)
	}
	return points, nil
}

// crossovers returns where the cheapest placement changes.
func crossovers(points []Point) []Crossover {
	list := []Crossover{}
	for i := 1; i < len(points); i++ {
		if before, after := points[i-1].Cheapest, points[i].Cheapest; before != after {
			list = append(list, Crossover{points[i].T, before, after})
		}
	}
	return list
}

// overtakings returns where in storage and another placement change places, one placement after the other.
func overtakings(points []Point) []Crossover {
	list := []Crossover{}
	if len(points) == 0 {
		return list
	}
	for _, c := range points[0].Costs {
		if c.Placement == InStorage {
			continue
		}
		before := ""
		for _, p := range points {
			cheaper := cheaperOf(p, InStorage, c.Placement)
			if before != "" && cheaper != "" && cheaper != before {
				list = append(list, Crossover{p.T, before, cheaper})
			}
			if cheaper != "" {
				before = cheaper
			}
		}
	}
	return list
}

// cheaperOf returns the cheaper one of two placements at a point; "" unless both fit and differ.
func cheaperOf(p Point, a, b string) string {
	usd := make(map[string]float64)
	for _, c := range p.Costs {
		if c.Fits {
			usd[c.Placement] = c.USD
		}
	}
	x, hasA := usd[a]
	y, hasB := usd[b]
	switch {
	case !hasA || !hasB || x == y:
		return ""
	case x < y:
		return a
	}
	return b
}
