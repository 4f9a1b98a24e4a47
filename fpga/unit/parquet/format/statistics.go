package format

// readStatistics reads the structure Statistics, of which only the number of nulls is kept. Statistics of another form
// than the specification's are left out, as all of them were before.
func (r *compactReader) readStatistics(t byte, c *Chunk) {
	if t != thriftStruct {
		r.skipField(t)
		return
	}
	var last int32
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		if last == 3 && t == thriftInt64 {
			c.nulls = r.int64Field(t)
		} else {
			r.skipField(t)
		}
	}
}

// readSizeStatistics reads the structure SizeStatistics, of which only the numbers of definition levels are kept.
func (r *compactReader) readSizeStatistics(t byte, c *Chunk) {
	if t != thriftStruct {
		r.skipField(t)
		return
	}
	var last int32
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		if last == 3 && t == thriftList {
			c.levels = r.readLevelCounts(c.levels[:0])
		} else {
			r.skipField(t)
		}
	}
}

// readLevelCounts reads a list of numbers. It keeps one more of them than there are levels at most.
func (r *compactReader) readLevelCounts(counts []int64) []int64 {
	n, element := r.readListHeader()
	for ; n > 0 && r.err == nil; n-- {
		if element != thriftInt64 {
			r.skipElement(element, 0)
			continue
		}
		if count := r.readZigzag(); len(counts) <= maxLevel+1 {
			counts = append(counts, count)
		}
	}
	return counts
}

// countPresentRows sets how many of a chunk's rows have a value, as far as statistics say so. Statistics that
// contradict the chunk say nothing.
func (c *Chunk) countPresentRows(l *Leaf, rows int64) {
	defer func() { c.levels = nil }()
	c.PresentRows = -1
	counted := len(c.levels) == int(l.MaxDef)+1
	sum := int64(0)
	for _, n := range c.levels {
		if n < 0 || n > c.NumValues-sum {
			counted = false
			break
		}
		sum += n
	}
	counted = counted && sum == c.NumValues
	switch {
	case rows == 0, l.MaxRep == 0 && l.MaxDef == 0:
		c.PresentRows = rows
	case counted && l.MaxRep == 0:
		c.PresentRows = c.levels[l.MaxDef]
	case counted && l.MaxRep == 1: // a null or empty list has one level, and any other list none below an element's
		without := int64(0)
		for _, n := range c.levels[:min(int(l.RepDef), len(c.levels))] {
			without += n
		}
		if without <= rows {
			c.PresentRows = rows - without
		}
	case l.MaxRep == 0 && c.nulls >= 0 && c.nulls <= rows:
		c.PresentRows = rows - c.nulls
	}
}
