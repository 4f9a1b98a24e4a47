package pipeline

// costOf returns the estimate of an operator that costs the same with all parameters.
func costOf(nanoseconds float64) func(*Op) float64 { return func(*Op) float64 { return nanoseconds } }

// costOfMapID returns the estimate of map_id.
func costOfMapID(o *Op) float64 {
	if table, ok := o.arg("table"); ok {
		if t, ok := table.Value.(IDTable); ok && t.Keys == nil {
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
