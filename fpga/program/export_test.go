package program

// ValidateReading checks how a column is read.
func (c *Column) ValidateReading(s Source) error { return c.validateReading(s) }

// CheckedTwice checks an operator twice for one program, and returns both errors. between runs between the checks.
func CheckedTwice(op Op, in Input, between func()) (first, second error) {
	in.checked = checkedLists{}
	first = op.Check(in)
	between()
	return first, op.Check(in)
}
