package vocabulary

// Progress describes a step of a pass that makes a vocabulary: how far the pass is, once a mini-batch is folded in.
type Progress struct {
	Rows      int64 // Rows counts the rows of the mini-batch
	Splits    int   // Splits counts the splits of which every mini-batch is folded in
	AllSplits int   // AllSplits counts the splits of the data set
	Keys      int64 // see Builder.Keys
}

// Keys returns how many keys all tables have so far. It is exact as long as they fit into the builder's memory. A key
// that was written to disk and is seen again counts once more until the files are merged.
func (b *Builder) Keys() (keys int64) {
	for _, t := range b.tables {
		t.mu.Lock()
		keys += int64(t.seen.dense.used + t.seen.hashed.used)
		for i := range t.runs.files {
			keys += t.runs.files[i].entries
		}
		t.mu.Unlock()
	}
	return keys
}
