package rtl

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// Synthesis is what a tool made of every unit for UltraScale+, before placement. A test holds it against the sources.
type Synthesis struct {
	Tool   string      `json:"tool"`
	Delays Delays      `json:"path_screen"`
	Units  []Resources `json:"units"` // in the order of [Units]
}

// Resources are the cells of one unit, without pads and clock buffers.
type Resources struct {
	Unit    string `json:"unit"`
	Sources string `json:"sources_sha256"`
	LUT     int    `json:"lut"`         // as logic
	SRL     int    `json:"lut_shift"`   // as shift registers
	LUTRAM  int    `json:"lut_memory"`  // as memories
	FF      int    `json:"flip_flops"`  // those that placement moves into DSP slices are counted
	CARRY8  int    `json:"carry8"`      // Yosys counts CARRY4, which are two to a CARRY8
	BRAM18  int    `json:"block_ram18"` // half a RAMB36 each
	URAM    int    `json:"ultra_ram"`
	DSP     int    `json:"dsp"`
	Path    Path   `json:"longest_path"`
}

//go:embed synthesis.json
var synthesisText []byte

// ReadSynthesis returns the kept results of the synthesis of this build's units.
func ReadSynthesis() (Synthesis, error) {
	var s Synthesis
	if err := json.Unmarshal(synthesisText, &s); err != nil {
		return s, fmt.Errorf("rtl: synthesis.json: %w", err)
	}
	return s, nil
}

// Named returns the resources of the unit with a name.
func (s Synthesis) Named(unit string) (Resources, error) {
	for _, r := range s.Units {
		if r.Unit == unit {
			return r, nil
		}
	}
	return Resources{}, fmt.Errorf("rtl: synthesis.json has no unit %q: run `make rtl` with MILLRACE_UPDATE=1", unit)
}
