package partition

// AheadReader is a FarReader that learns beforehand which bytes will be read, so that they are there when they are
// asked for.
type AheadReader interface {
	FarReader
	// Prepare announces the runs that are read soon. It does not wait, and does nothing where there is no room.
	Prepare(runs []Run)
	// Expect says that a stream reads columns of the rows [first, first+rows) until forget is called. A column is the
	// path of a leaf; text ignores columns.
	Expect(columns []string, first, rows int64) (forget func())
}

// AheadReader returns the partition's reader if that reader reads ahead.
func (p *Partition) AheadReader() (r AheadReader, ok bool) {
	r, ok = p.reader.(AheadReader)
	return r, ok
}

// Expect announces to a reader that reads ahead that a stream reads columns of the rows [first, first+rows) until
// forget is called.
func (p *Partition) Expect(columns []string, first, rows int64) (forget func()) {
	if r, ok := p.AheadReader(); ok {
		return r.Expect(columns, first, rows)
	}
	return func() {}
}
