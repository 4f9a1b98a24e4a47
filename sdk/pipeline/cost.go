package pipeline

import "github.com/millrace/millrace/fpga/catalogue"

// costOfMapID returns the estimate of map_id.
func costOfMapID(a catalogue.Arguments) float64 {
	if table, ok := a.Given("table"); ok {
		if t, ok := table.(IDTable); ok && t.Keys == nil {
			return 4 // a list is looked up without a search
		}
	}
	return 23
}

// estimateCost returns the estimated nanoseconds of one core for a value, and whether there is an estimate.
func (o *Op) estimateCost() (nanoseconds float64, known bool) {
	entry := operators[o.Name]
	if entry == nil || entry.Cost == nil {
		return 0, false
	}
	return entry.Cost(o), true
}
