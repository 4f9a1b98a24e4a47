package slicer

import "github.com/millrace/millrace/sdk/target"

// memoryDivision decides how the three areas share the memory.
type memoryDivision struct {
	surveyor *surveyor
	arena    *arena
	output   *output

	mostRowGroups int     // most row groups of one mini-batch of the run
	windowGrowth  float64 // room for a window beyond its wants, for the bytes behind it

	// mostResident is the largest footprint that was kept resident where the memory does not hold everything.
	mostResident footprint

	// The measures taken to find room for the slice that is being built.
	droppedWindows bool // all windows were dropped, to make one run of what is free
	cutInShare     bool // rows were cut by the share of the input that there is room for
}

// divideMemory gives the areas these sizes, and the rest of the memory to all of them if everything fits, else to the
// input.
func (s *memoryDivision) divideMemory(f footprint, everything bool) {
	s.arena.dropAllChunks(s.surveyor.columns)
	if everything {
		f = s.withFurtherRowGroups(f)
	}
	rest := s.arena.freeBytes() - f.totalBytes()
	s.windowGrowth = 1
	if everything {
		// Dictionaries and pages vary; windows take the rest.
		dict, room := roundDownToGrain(min(rest/4, f.dict/2)), roundDownToGrain(min(rest/4, f.scratch/2))
		rest -= dict + room
		f.dict, f.scratch = f.dict+dict, f.scratch+room
		if f.input > 0 {
			s.windowGrowth = 1 + float64(rest)/float64(f.input)*0.75
		}
	}
	if s.surveyor.direct {
		rest = 0
	}
	s.arena.setAreaSizes(f.input+roundDownToGrain(rest), f.dict, f.scratch)
}

// withFurtherRowGroups adds to the footprint of the mini-batch in the making the dictionaries and unpacked pages of the
// further row groups that another mini-batch of the run has, if the memory holds these and their windows too. Row
// groups are taken for alike. A mini-batch then goes on into the next row group in the same areas: dividing the memory
// there would lose the bytes of the row group that ends.
func (s *memoryDivision) withFurtherRowGroups(f footprint) footprint {
	have := uint64(len(s.surveyor.batch.rowGroups))
	further := uint64(s.mostRowGroups) - have
	dict, room := roundUpToGrain(f.dict/have)*further, roundUpToGrain(f.scratch/have)*further
	whole := f.plus(footprint{roundUpToGrain(f.input/have) * further, dict, room})
	if !whole.fitsInto(s.arena.freeBytes()) {
		return f
	}
	return footprint{f.input, f.dict + dict, f.scratch + room}
}

// shareMemory divides the memory for as many portions as it holds, or for the next one alone.
func (s *memoryDivision) shareMemory() {
	b, free := s.surveyor.batch, s.arena.freeBytes()
	if b.oneByOne {
		if f := s.surveyor.groupFootprint(s.surveyor.groupFrom(b.firstPending)); f.fitsInto(free) {
			s.divideMemory(f, false)
			return
		}
	}
	f, n := s.surveyor.pendingFootprint(free)
	if n < len(b.portions) {
		if resident, ok := s.surveyor.residentFootprint(free); ok {
			f = resident
		}
	}
	s.divideMemory(f, n == len(b.portions))
}

// shareIfCramped divides the memory again if one of the areas is too small although the memory could hold all
// portions, or at least their dictionaries and unpacked pages. It reports whether it did.
func (s *memoryDivision) shareIfCramped() bool {
	b := s.surveyor.batch
	if b.oneByOne {
		return false
	}
	free := s.arena.freeBytes()
	f, n := s.surveyor.pendingFootprint(free)
	if n < len(b.portions) {
		var ok bool
		if f, ok = s.surveyor.residentFootprint(free); !ok {
			if s.stopGuessing() {
				s.shareMemory()
				return true
			}
			return false
		}
		// Dividing the memory loses its content, so it is divided only for a larger footprint than before.
		most := &s.mostResident
		if f.dict <= most.dict && f.scratch <= most.scratch {
			return false
		}
		most.dict, most.scratch = max(f.dict, most.dict), max(f.scratch, most.scratch)
		f.input = min(f.input, s.arena.input.size)
	}
	if f.input <= s.arena.input.size && f.dict <= s.arena.dict.size && f.scratch <= s.arena.scratch.size {
		return false
	}
	s.shareMemory()
	return true
}

// stopGuessing ends the guesses at the sizes of unpacked pages, which take memory from pages of known sizes. It
// reports whether there was a guess.
func (s *memoryDivision) stopGuessing() (changed bool) {
	b := s.surveyor.batch
	for i := range b.portions {
		c := b.portions[i].chunk
		learned := s.surveyor.columns.learnedPages(c)
		changed = changed || !learned.askScratch && c.wantedScratch(learned) > 0
		learned.askScratch = true
	}
	return changed
}

// makeRoomForNext is called when the next portion found no room although everything else had made way. It divides
// the memory around that portion, makes do with a single output buffer, asks for no more than the engine did, or
// cuts the portion. If none of that shrinks what is wanted, the error is a *MemoryError.
func (s *memoryDivision) makeRoomForNext() error {
	b, free := s.surveyor.batch, s.arena.freeBytes()
	group := s.surveyor.groupFrom(b.firstPending)
	if _, n := s.surveyor.pendingFootprint(free); n < len(b.portions) {
		if _, ok := s.surveyor.residentFootprint(free); !ok && s.stopGuessing() {
			s.shareMemory()
			return nil
		}
	}
	f := s.surveyor.groupFootprint(group)
	if f.fitsInto(free) {
		return s.defragment(f)
	}
	switch {
	case reduceGuesses(group, guessWindow):
		return nil
	case !s.output.singleBuffer:
		return s.output.shrinkToOneBuffer()
	case reduceGuesses(group, guessNothing):
		return nil
	case !s.surveyor.direct && s.surveyor.groupDictionaryWindow(group)+f.dict+f.scratch > free:
		// Fewer rows make no smaller dictionary.
	case group[0].taskRows > 1 && s.mayCutRows():
		s.cutTaskRows(group, f, free)
		return nil
	}
	return s.output.memoryError(mostDemandingChunk(group), f.totalBytes())
}

// defragment makes room for the next portion, whose footprint fits into the memory: the free memory lies in pieces,
// or in the wrong area.
func (s *memoryDivision) defragment(f footprint) error {
	a := s.arena
	if enough := a.input.size >= f.input && a.dict.size >= f.dict && a.scratch.size >= f.scratch; enough {
		if a.heldBytes() == 0 {
			return &target.EngineError{
				Partition: s.surveyor.columns.partition.Name, Message: "the planner found no room where there is enough",
			}
		}
		if s.surveyor.batch.oneByOne && !s.droppedWindows {
			s.droppedWindows = true
			// Dividing the memory loses the dictionaries too, so that the leaves of a map, which are placed together, would
			// begin again forever.
			a.dropAllWindows(s.surveyor.columns)
			return nil
		}
	}
	s.shareMemory()
	return nil
}

// cutTaskRows makes portions take fewer rows in their next task. The first cut for a slice assumes that bytes go with
// rows: it leaves as many rows as there is room for beside dictionary and unpacked page. A page may be too large
// however few its rows are, so every further cut, and every cut where portions are placed one by one, halves the rows.
func (s *memoryDivision) cutTaskRows(group []portion, f footprint, free uint64) {
	rows := uint64(group[0].taskRows)
	have := free - min(free, f.dict+f.scratch)
	cut := rows / 2
	if f.input > 0 && have < f.input && !s.surveyor.batch.oneByOne && !s.cutInShare {
		s.cutInShare = true
		cut = uint64(float64(rows) * float64(have) / float64(f.input))
	}
	most := uint32(min(max(cut, 1), rows-1))
	for i := range group {
		group[i].maxTaskRows, group[i].taskRows = most, most
		group[i].chunk.cutRows, group[i].chunk.inputBytes = most, 0
	}
}

// mayCutRows reports whether a portion may be done in several tasks. Text has all keys in one task, so that a cut would
// put the values of one key in several places.
func (s *memoryDivision) mayCutRows() bool {
	return !s.surveyor.columns.isTextSource() || s.surveyor.columns.program.Output.Fixed
}
