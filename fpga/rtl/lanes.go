package rtl

import (
	"fmt"
	"slices"
	"strings"
)

// laneRows is the number of rows of a section with nulls that unit lane takes at most.
const laneRows = 1 << 18

// The addresses of unit lane.
const (
	laneEncoded  = 0xa000
	laneNullable = 0xa001
	laneRowCount = 0xa002
	laneStages   = 0xa003
	lanePresence = 0xc000
)

// laneAddresses says where a unit's registers and tables begin in unit lane.
var laneAddresses = map[string]uint16{"dictionary_gather": 0, "bucketize": 0x8000, "plain_decoder": 0xa010,
	"hybrid_decoder": 0xa020, "fill_null": 0xa030, "clamp": 0xa040, "log": 0xa050, "sigrid_hash": 0xa060,
	"positive_modulus": 0xa070}

// laneOrder is the order of the stages of unit lane.
var laneOrder = []string{"fill_null", "clamp", "int_to_float", "log", "bucketize", "sigrid_hash", "positive_modulus"}

// LaneSection is what unit lane does with one section.
type LaneSection struct {
	Values     Setup  // Values sets plain_decoder up, or hybrid_decoder for indices of a dictionary.
	Dictionary *Setup // Dictionary sets dictionary_gather up, for indices.
	Rows       uint32 // Rows take the section's values in their order.
	Present    []bool // Present says of each row that it is not null; nil: no row is null.
	Chain      []Setup
}

// Lane returns the setup of unit lane for a section.
func Lane(s LaneSection) (Setup, error) {
	lacks := func(format string, args ...any) (Setup, error) {
		return Setup{}, &NotInRTLError{Unit: "lane", What: fmt.Sprintf(format, args...)}
	}
	setup := Setup{Unit: "lane", Writes: []Write{{Address: laneEncoded}, {Address: laneNullable},
		{Address: laneRowCount, Data: uint64(s.Rows)}, {Address: laneStages}}}
	setup.take(s.Values)
	if s.Dictionary != nil {
		setup.Writes[0].Data = 1
		setup.take(*s.Dictionary)
	}
	if s.Present != nil {
		if len(s.Present) > laneRows {
			return lacks("takes up to %d rows of which some are null, and not %d", laneRows, len(s.Present))
		}
		setup.Writes[1].Data = 1
		setup.Writes = append(setup.Writes, presenceWrites(s.Present)...)
	}
	next := 0
	for _, one := range s.Chain {
		stage := slices.Index(laneOrder[next:], one.Unit)
		if stage < 0 {
			return lacks("has %s, in this order, and not %s", strings.Join(laneOrder, ", "), chainName(s.Chain))
		}
		next += stage + 1
		setup.Writes[3].Data |= 1 << (next - 1)
		setup.take(one)
	}
	return setup, nil
}

// take adds the writes of a unit in the lane.
func (s *Setup) take(unit Setup) {
	for _, w := range unit.Writes {
		s.Writes = append(s.Writes, Write{Address: laneAddresses[unit.Unit] + w.Address, Data: w.Data})
	}
}

// presenceWrites returns the writes of the table that says which rows are not null.
func presenceWrites(present []bool) []Write {
	var writes []Write
	for rows := range slices.Chunk(present, 64) {
		w := Write{Address: lanePresence + uint16(len(writes))}
		for i, there := range rows {
			if there {
				w.Data |= 1 << i
			}
		}
		writes = append(writes, w)
	}
	return writes
}

// chainName names the units of a chain.
func chainName(chain []Setup) string {
	var names []string
	for _, one := range chain {
		names = append(names, one.Unit)
	}
	return strings.Join(names, ", ")
}

// LaneValue reads the words of a result of unit lane: the value of a row or, if last, only whether the section is
// damaged.
func LaneValue(result []uint64) (value uint64, last, damaged bool) {
	return result[0], result[1]&1 == 1, result[1]&2 == 2
}
