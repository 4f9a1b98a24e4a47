package block

// Step is an operator of one input, made ready for values of one kind. It does not change: all threads share it.
type Step interface {
	// Run replaces the values of v by those that the operator makes of them. Lists of numbers hold no null, unless the
	// step is a NullFiller.
	Run(b *Buffers, v *Values) error
}

// InPlace is a step that changes values where they lie, and therefore copies those that the chain does not own. The
// engine gives it the block itself if it can.
type InPlace interface {
	Step
	// ChangesInPlace marks the step.
	ChangesInPlace()
}

// NullFiller is a step that gives nulls a value. It takes lists with nulls as they are, and is not run for values
// without nulls.
type NullFiller interface {
	InPlace
	// FillsZeros reports whether the value that nulls get is 0, so that there is nothing to write where they hold 0.
	FillsZeros() bool
}

// Fuser is a step that can do the work of the step before it in the same pass over the values.
type Fuser interface {
	Step
	// Fuse returns a step that does the work of both, or nil if it does not do the work of before.
	Fuse(before Step) Step
}

// Float32Bounder is a step that may do nothing but bound float32 values.
type Float32Bounder interface {
	Step
	// Float32Bounds returns the bounds, low <= high; ok is false if the step does something else.
	Float32Bounds() (low, high float32, ok bool)
}

// ListGrower is a step that makes more elements of a list than the list has.
type ListGrower interface {
	Step
	// MostElements returns how many elements the step makes of a list of n elements at most, or n if it makes no more.
	MostElements(n int64) int64
}

// ClassNumberer is the step of a one-hot encoding, the last of its chain. It yields the number of each value's class,
// -1 for none; the engine writes the columns of dense.
type ClassNumberer interface {
	Step
	// Classes returns the number of classes, which is the number of columns.
	Classes() uint32
}

// RowLengthener is a step, the last of its chain, whose lists become neighbouring columns of dense.
type RowLengthener interface {
	Step
	// RowLength returns which lengths the lists may have.
	RowLength() RowLength
}

// RowLength is the number of columns that a list of floats becomes. Lists of another length are an error, except
// shorter ones if they are padded.
type RowLength struct {
	Length uint32
	Pads   bool
	Pad    float32
}
