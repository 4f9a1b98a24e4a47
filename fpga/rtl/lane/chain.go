package lane

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// made is what a chain makes of a chunk: for every row its elements.
type made struct {
	chunkRows
	values []uint64 // the bits of each element; 0 where it is null
}

// The bits behind the id in a result of unit hex_to_int.
const (
	hexPresent = 1 << 32
	hexDamaged = 1 << 33
)

// runChain sends a chunk through the units of a chain: on chip if unit lane has them in this order, and else through
// one unit behind the other.
func (s *unitSet) runChain(chain []step, c *chunk, list bool) (*made, error) {
	v, err := s.runLane(chain, c)
	if errors.Is(err, rtl.ErrNotInRTL) {
		v, err = s.runUnits(chain, c, list)
	}
	if err == nil && list {
		v.dropListsWithNulls()
	}
	return v, err
}

// runLane sends the sections of a chunk through unit lane. The error wraps rtl.ErrNotInRTL if the unit does not have
// the chain.
func (s *unitSet) runLane(chain []step, c *chunk) (*made, error) {
	if s.simulation.apart || c.tokens != nil || len(c.sections) == 0 {
		return nil, rtl.ErrNotInRTL
	}
	fills := len(chain) > 0 && chain[0].fills
	var setups []rtl.Setup
	for _, one := range chain {
		setups = append(setups, one.setup)
	}
	v := &made{chunkRows: c.chunkRows, values: make([]uint64, len(c.present))}
	if fills {
		v.present = slices.Repeat([]bool{true}, len(c.present))
	}
	at := 0
	for _, one := range c.sections {
		present := c.present[at : at+one.elements]
		todo := rtl.LaneSection{Values: one.setup, Rows: uint32(one.count), Chain: setups}
		if one.encoded {
			todo.Dictionary = c.dictionary
		}
		if fills && one.count < one.elements {
			todo.Rows, todo.Present = uint32(one.elements), present
		}
		values, err := s.streamLane(todo, one)
		if err != nil {
			return nil, c.fail(one.page, one.pageOffset, err)
		}
		if fills {
			at += copy(v.values[at:], values)
		} else {
			at += s.place(v.values[at:], values, present)
		}
	}
	return v, nil
}

// streamLane streams a section through unit lane, and returns the values of its rows.
func (s *unitSet) streamLane(todo rtl.LaneSection, one section) ([]uint64, error) {
	setup, err := rtl.Lane(todo)
	if err != nil {
		return nil, err
	}
	results, err := s.run(setup, rtl.SectionTransfers(one.bytes))
	if err != nil {
		return nil, err
	}
	values := make([]uint64, 0, todo.Rows)
	for result := range slices.Chunk(results, laneWords) {
		value, last, damaged := rtl.LaneValue(result)
		switch {
		case damaged:
			return nil, format.Corrupt("lane: a section of %d bytes has not the %d values of its rows", len(one.bytes),
				one.count)
		case !last:
			values = append(values, value)
		}
	}
	if len(values) != int(todo.Rows) {
		return nil, fmt.Errorf("unit lane made %d results of %d rows", len(values), todo.Rows)
	}
	return values, nil
}

// runUnits sends a chunk through the units of a chain, one behind the other.
func (s *unitSet) runUnits(chain []step, c *chunk, list bool) (*made, error) {
	if err := s.decodeValues(c); err != nil {
		return nil, err
	}
	v := &made{chunkRows: c.chunkRows, values: c.values}
	s.note(firmwareChaining)
	for _, one := range chain {
		var err error
		switch {
		case one.kind == program.Bytes:
			err = s.parseTokens(one, c.tokens, v)
		case one.fills:
			err = s.fillNulls(one, v)
		default:
			if list {
				v.dropListsWithNulls()
			}
			v.values, err = s.compute(one.setup, v.values, len(v.values))
		}
		if err != nil {
			return nil, fmt.Errorf("unit %s: %w", one.setup.Unit, err)
		}
	}
	return v, nil
}

// parseTokens has unit hex_to_int make ids of tokens. An empty token becomes a null.
func (s *unitSet) parseTokens(one step, tokens [][]byte, v *made) error {
	var words []uint64
	for i, token := range tokens {
		words = append(words, rtl.HexToken(token, v.present[i])...)
	}
	results, err := s.compute(one.setup, words, len(tokens))
	if err != nil {
		return err
	}
	v.values, v.present = make([]uint64, len(tokens)), slices.Clone(v.present)
	for i, result := range results {
		if result&hexDamaged != 0 {
			return fmt.Errorf("%w: token %q", ErrData, tokens[i])
		}
		v.values[i], v.present[i] = result&math.MaxUint32, result&hexPresent != 0
	}
	return nil
}

// fillNulls has unit fill_null replace the elements that are null.
func (s *unitSet) fillNulls(one step, v *made) error {
	words := make([]uint64, 0, 2*len(v.values))
	for i, value := range v.values {
		present := uint64(0)
		if v.present[i] {
			present = 1
		}
		words = append(words, value, present)
	}
	results, err := s.compute(one.setup, words, len(v.values))
	if err != nil {
		return err
	}
	v.values, v.present = results, slices.Repeat([]bool{true}, len(results))
	return nil
}

// dropListsWithNulls makes a null of every list that holds a null: an operator that meets such a list makes nothing of
// it.
func (v *made) dropListsWithNulls() {
	if !slices.Contains(v.present, false) {
		return
	}
	var kept made
	at := 0
	for row, length := range v.lengths {
		end := at + int(length)
		present := v.rowPresent[row] && !slices.Contains(v.present[at:end], false)
		if !present {
			length = 0
		} else {
			kept.values, kept.present = append(kept.values, v.values[at:end]...), append(kept.present, v.present[at:end]...)
		}
		kept.lengths, kept.rowPresent = append(kept.lengths, length), append(kept.rowPresent, present)
		at = end
	}
	*v = kept
}
