package sizing

import (
	"cmp"
	"math"
	"slices"
)

// Outcome is a plan's answer in short.
type Outcome struct {
	Cheapest  string  `json:"cheapest"`       // "" if nothing fits
	USD       float64 `json:"cheapest_usd"`   // USD is the price of the cheapest placement.
	InStorage float64 `json:"in_storage_usd"` // 0: no counts
	Margin    float64 `json:"margin_usd"`     // The cheapest other costs this more than in storage.
}

// String returns the cheapest placement.
func (o Outcome) String() string { return cmp.Or(o.Cheapest, "none fits") }

// Move is how the answer moves when one figure alone goes to the ends of its range. Without a count in storage, the
// swing is that of the cheapest placement.
type Move struct {
	Figure string  `json:"figure" table:"figure that moves the answer"`
	Unit   string  `json:"unit"`
	Low    float64 `json:"low" table:"low|%.4g"`
	High   float64 `json:"high" table:"high|%.4g"`
	Swing  float64 `json:"swing_usd" table:"swing, $|%.0f"`
	AtLow  Outcome `json:"at_low" table:"cheapest at low"`
	AtHigh Outcome `json:"at_high" table:"cheapest at high"`
	Turns  bool    `json:"decisive"` // another placement becomes the cheapest at an end
}

// outcome sizes every placement by another table.
func outcome(t *Table, j *Job) (Outcome, error) {
	list, err := newSizer(t, j).placeAll()
	if err != nil {
		return Outcome{}, err
	}
	return summarize(list), nil
}

// summarize returns the answer of sized placements.
func summarize(list []Placement) (o Outcome) {
	best, other := cheapest(list)
	if best != nil {
		o.Cheapest, o.USD = best.Name, best.Total
	}
	if in := find(list, InStorage); in != nil {
		o.InStorage = in.Total
		if other != nil {
			o.Margin = other.Total - in.Total
		}
	}
	return o
}

// tornado moves each figure that was used and has a range, the one with the largest swing first.
func tornado(s *sizer, j *Job) ([]Move, error) {
	base, err := outcome(s.table, j)
	if err != nil {
		return nil, err
	}
	moves := []Move{}
	for _, name := range s.table.order {
		f := s.table.figures[name]
		if !s.used[name] || !f.varies() || f.Value == 0 {
			continue
		}
		m := Move{Figure: name, Unit: f.Unit, Low: f.Low, High: f.High}
		if m.AtLow, err = outcome(s.table.with(name, f.Low), j); err != nil {
			return nil, err
		}
		if m.AtHigh, err = outcome(s.table.with(name, f.High), j); err != nil {
			return nil, err
		}
		m.Swing = math.Abs(m.AtHigh.Margin - m.AtLow.Margin)
		if base.InStorage == 0 {
			m.Swing = math.Abs(m.AtHigh.USD - m.AtLow.USD)
		}
		m.Turns = m.AtLow.Cheapest != base.Cheapest || m.AtHigh.Cheapest != base.Cheapest
		if m.Swing > 0 || m.Turns {
			moves = append(moves, m)
		}
	}
	slices.SortStableFunc(moves, func(a, b Move) int {
		switch {
		case a.Swing > b.Swing:
			return -1
		case a.Swing < b.Swing:
			return 1
		}
		return 0
	})
	return moves, nil
}

// BreakEven is the price of one device at which two placements cost the same.
type BreakEven struct {
	Placement string  `json:"placement"`
	Beside    string  `json:"alternative"`
	Device    string  `json:"device"`
	USD       float64 `json:"usd"`          // below it the placement is the cheaper one
	Never     bool    `json:"unattainable"` // the price would be below 0
	PriceNow  float64 `json:"price_now_usd"`
}

// breakEven returns the price of a drive that computes beside each other placement, and that of a card in the storage
// nodes beside the cheapest other one.
func breakEven(s *sizer, list []Placement) []BreakEven {
	lines := []BreakEven{}
	price := func(p, other *Placement, device, figure string, devices int64) {
		if p == nil || other == nil || devices == 0 {
			return
		}
		now := s.value(figure)
		usd := now + (other.Total-p.Total)/float64(devices)
		lines = append(lines, BreakEven{Placement: p.Name, Beside: other.Name, Device: device, USD: max(usd, 0),
			Never: usd < 0, PriceNow: now})
	}
	if in := find(list, InStorage); in != nil {
		for i := range list {
			if other := &list[i]; other.counted() && other.Name != InStorage {
				price(in, other, "drive that computes", string(CSD)+ofUSD, in.Drives+in.Spares)
			}
		}
	}
	if card := find(list, "node-card"); card != nil {
		var rest []Placement
		for i := range list {
			if list[i].Name != card.Name {
				rest = append(rest, list[i])
			}
		}
		best, _ := cheapest(rest)
		price(card, best, "card", figureCardUSD, card.Cards)
	}
	return lines
}
