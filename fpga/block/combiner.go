package block

// Combiner is an operator of several inputs, made ready. It does not change: all threads share it.
type Combiner interface {
	// Combine makes the value of some rows. Inputs that are lists hold no null.
	Combine(to *GraphValue, inputs []*Values, rows int) error
}
