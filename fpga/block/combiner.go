package block

// Combiner is an operator of several inputs, made ready. It does not change: all threads share it.
type Combiner interface {
	// MostElements returns how many elements a row of the value can have, given the elements of the inputs.
	MostElements(inputs []int64) int64
	// Combine makes the value of some rows. Inputs that are lists hold no null.
	Combine(to *GraphValue, inputs []*Values, rows int) error
}
