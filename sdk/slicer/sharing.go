package slicer

import "github.com/millrace/millrace/sdk/target"

// sharing decides how the three areas share the memory.
type sharing struct {
	surveyor *surveyor
	arena    *arena
	output   *output

	windowGrowth float64 // room for a window over what it wants, for what comes behind it

	// mostResident is the most that was kept resident where the memory does not hold everything.
	mostResident footprint

	droppedWindows bool // at building this slice, to make one run of what is free
}

// divide gives the areas these sizes and what is left: to all of them if everything fits, else to the input.
func (s *sharing) divide(f footprint, everything bool) {
	s.arena.flush(s.surveyor.columns)
	rest := s.arena.free() - f.sum()
	s.windowGrowth = 1
	if everything {
		// Dictionaries and pages vary; windows take the rest.
		dict, room := roundDown(min(rest/4, f.dict/2)), roundDown(min(rest/4, f.room/2))
		rest -= dict + room
		f.dict, f.room = f.dict+dict, f.room+room
		if f.input > 0 {
			s.windowGrowth = 1 + float64(rest)/float64(f.input)*0.75
		}
	}
	if s.surveyor.direct {
		rest = 0
	}
	s.arena.divide(f.input+roundDown(rest), f.dict, f.room)
}

// share divides the memory for as many portions as it holds, or for the next one alone.
func (s *sharing) share() {
	b, free := s.surveyor.batch, s.arena.free()
	if b.oneByOne {
		if f := s.surveyor.groupFootprint(s.surveyor.groupAt(b.firstPending)); f.fits(free) {
			s.divide(f, false)
			return
		}
	}
	f, n := s.surveyor.total(free)
	if n < len(b.portions) {
		if resident, ok := s.surveyor.resident(free); ok {
			f = resident
		}
	}
	s.divide(f, n == len(b.portions))
}

// shareIfCramped divides the memory again if one of the areas is too small for what the memory could hold: of all
// portions, or at least their dictionaries and unpacked pages. It reports whether it did.
func (s *sharing) shareIfCramped() bool {
	b := s.surveyor.batch
	if b.oneByOne {
		return false
	}
	free := s.arena.free()
	f, n := s.surveyor.total(free)
	if n < len(b.portions) {
		var ok bool
		if f, ok = s.surveyor.resident(free); !ok {
			if s.stopGuessing() {
				s.share()
				return true
			}
			return false
		}
		// What lies in divided memory is lost, so only for more than ever before.
		most := &s.mostResident
		if f.dict <= most.dict && f.room <= most.room {
			return false
		}
		most.dict, most.room = max(f.dict, most.dict), max(f.room, most.room)
		f.input = min(f.input, s.arena.input.size)
	}
	if f.input <= s.arena.input.size && f.dict <= s.arena.dict.size && f.room <= s.arena.room.size {
		return false
	}
	s.share()
	return true
}

// stopGuessing ends the guesses at what unpacked pages take, which keep memory from those that are known. It reports
// whether there was a guess.
func (s *sharing) stopGuessing() (changed bool) {
	b := s.surveyor.batch
	for i := range b.portions {
		c := b.portions[i].chunk
		k := s.surveyor.columns.pages(c)
		changed = changed || !k.askRoom && c.wantedRoom(k) > 0
		k.askRoom = true
	}
	return changed
}

// makeRoom is called when the next portion found no room though everything else had made way. It divides the memory
// around that portion, makes do with a single output slot, asks for no more than the engine did, or cuts the portion.
// If none of that shrinks what is wanted, the error is a *MemoryError.
func (s *sharing) makeRoom() error {
	b, free := s.surveyor.batch, s.arena.free()
	group := s.surveyor.groupAt(b.firstPending)
	if _, n := s.surveyor.total(free); n < len(b.portions) {
		if _, ok := s.surveyor.resident(free); !ok && s.stopGuessing() {
			s.share()
			return nil
		}
	}
	f := s.surveyor.groupFootprint(group)
	if f.fits(free) {
		return s.defragment(f)
	}
	switch {
	case lean(group, noGuess):
		return nil
	case !s.output.singleSlot:
		return s.output.shrinkToOneSlot()
	case lean(group, noReadingAhead):
		return nil
	case !s.surveyor.direct && s.surveyor.groupDictWindow(group)+f.dict+f.room > free:
		// Fewer rows make no smaller dictionary.
	case group[0].take > 1 && s.mayCut():
		s.cutRows(group, f, free)
		return nil
	}
	return s.output.tooSmall(mostDemanding(group), f.sum())
}

// defragment makes room for the next portion, whose footprint the memory holds: it lies in pieces, or in the wrong
// area.
func (s *sharing) defragment(f footprint) error {
	a := s.arena
	if enough := a.input.size >= f.input && a.dict.size >= f.dict && a.room.size >= f.room; enough {
		if a.held() == 0 {
			return &target.EngineError{
				Partition: s.surveyor.columns.partition.Name, Message: "the planner found no room where there is enough",
			}
		}
		if s.surveyor.batch.oneByOne && !s.droppedWindows {
			s.droppedWindows = true
			// To divide the memory loses the dictionaries too, so that the leaves of a map, which are placed together,
			// would begin again for ever.
			a.dropWindows(s.surveyor.columns)
			return nil
		}
	}
	s.share()
	return nil
}

// cutRows makes portions take fewer rows in their next task: as many as the memory holds beside dictionary and unpacked
// page. That takes it that bytes go with rows. A page may be too large however few its rows, so where portions are
// placed one by one the rows are halved.
func (s *sharing) cutRows(group []portion, f footprint, free uint64) {
	rows := uint64(group[0].take)
	have := free - min(free, f.dict+f.room)
	cut := rows / 2
	if f.input > 0 && have < f.input && !s.surveyor.batch.oneByOne {
		cut = uint64(float64(rows) * float64(have) / float64(f.input))
	}
	most := uint32(min(max(cut, 1), rows-1))
	for i := range group {
		group[i].mostRows, group[i].take = most, most
		group[i].chunk.fitRows, group[i].chunk.input = most, 0
	}
}

// mayCut reports whether a portion may be done in several tasks. Text has all keys in one task, so that a cut would put
// the values of one key in several places.
func (s *sharing) mayCut() bool {
	return !s.surveyor.columns.isText() || s.surveyor.columns.program.Output.Fixed
}
