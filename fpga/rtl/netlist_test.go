package rtl

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bit is a net of one bit in a netlist of Yosys, which has a number; constants are below 0.
type bit int

// UnmarshalJSON reads a number, or a constant: "0", "1", "x" or "z".
func (b *bit) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		*b = -1
		return nil
	}
	return json.Unmarshal(text, (*int)(b))
}

// netlist is a module that Yosys mapped to cells and wrote as JSON.
type netlist struct {
	Ports map[string]struct {
		Direction string `json:"direction"`
		Bits      []bit  `json:"bits"`
	} `json:"ports"`
	Cells map[string]*cell `json:"cells"`
	Nets  map[string]struct {
		Bits []bit `json:"bits"`
	} `json:"netnames"`
}

// cell is a cell of a netlist.
type cell struct {
	Kind        string            `json:"type"`
	Parameters  map[string]any    `json:"parameters"`
	Directions  map[string]string `json:"port_directions"`
	Connections map[string][]bit  `json:"connections"`
}

// readNetlist returns a module of a file that Yosys wrote.
func readNetlist(text []byte, module string) (*netlist, error) {
	var file struct {
		Modules map[string]*netlist `json:"modules"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	n := file.Modules[module]
	if n == nil {
		return nil, fmt.Errorf("the netlist has no module %s", module)
	}
	return n, nil
}

// pin is a bit of a cell's port.
type pin struct {
	cell string
	port string
	at   int
}

// arrival is the longest way to a net, from the register where it begins.
type arrival struct {
	path  Path // up to the cell that drives the net, without the net behind a block
	block bool // the net lies behind a carry chain, a DSP slice or a memory, and is charged where it is taken
}

// screen finds the longest path of a netlist.
type screen struct {
	*netlist
	delays  Delays
	drivers map[bit]pin
	inputs  map[bit]string // nets of the module's inputs
	names   map[bit]string
	known   map[bit]*arrival
}

// kinds counts the cells of a netlist by their kinds.
func (n *netlist) kinds() map[string]int {
	counts := make(map[string]int)
	for _, c := range n.Cells {
		counts[c.Kind]++
	}
	return counts
}

// longestPath returns the longest path of a netlist between two registers.
func longestPath(n *netlist, delays Delays) (Path, error) {
	s := &screen{netlist: n, delays: delays, drivers: make(map[bit]pin), inputs: make(map[bit]string),
		names: make(map[bit]string), known: make(map[bit]*arrival)}
	for _, name := range slices.Sorted(maps.Keys(n.Nets)) {
		for i, b := range n.Nets[name].Bits {
			if old, ok := s.names[b]; !ok || strings.HasPrefix(old, "$") {
				s.names[b] = fmt.Sprintf("%s[%d]", name, i)
			}
		}
	}
	for name, c := range n.Cells {
		for port, bits := range c.Connections {
			for i, b := range bits {
				if c.Directions[port] == "output" && b >= 0 {
					s.drivers[b] = pin{name, port, i}
				}
			}
		}
	}
	for name, port := range n.Ports {
		for _, b := range port.Bits {
			if port.Direction == "input" {
				s.inputs[b] = name
			}
		}
	}
	return s.longest()
}

// clockPorts are the ports of registers where no path ends.
var clockPorts = []string{"C", "CLK", "WCLK", "CLKARDCLK", "CLKBWRCLK"}

// longest returns the longest of the paths that end at a register or at an output of the module.
func (s *screen) longest() (Path, error) {
	var longest Path
	end := func(b bit, kind string, delay int) error {
		a, err := s.taken(b)
		if err != nil || a == nil {
			return err
		}
		p := a.path
		p.Picoseconds, p.End, p.EndKind = p.Picoseconds+delay, s.names[b], kind
		if p.Picoseconds > longest.Picoseconds {
			longest = p
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Cells)) {
		c := s.Cells[name]
		begins, _ := s.begins(c)
		if !begins {
			continue
		}
		delay := 0
		if blockRAM(c.Kind) {
			delay = s.delays.RAMInput
		}
		for _, port := range slices.Sorted(maps.Keys(c.Connections)) {
			if c.Directions[port] != "input" || slices.Contains(clockPorts, port) {
				continue
			}
			for _, b := range c.Connections[port] {
				if err := end(b, c.Kind, delay); err != nil {
					return Path{}, err
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Ports)) {
		if port := s.Ports[name]; port.Direction == "output" {
			for _, b := range port.Bits {
				if err := end(b, "output", 0); err != nil {
					return Path{}, err
				}
			}
		}
	}
	return longest, nil
}

func blockRAM(kind string) bool { return strings.HasPrefix(kind, "RAMB") || kind == "URAM288" }

// begins reports whether paths begin at a cell's clock, and what its way from the clock to the output is charged.
func (s *screen) begins(c *cell) (bool, int) {
	switch {
	case strings.HasPrefix(c.Kind, "FD"):
		return true, s.delays.LUT
	case strings.HasPrefix(c.Kind, "SRL"), memoryLUTs[c.Kind] > 0:
		return true, s.delays.LUTMemory + s.delays.LUT
	case blockRAM(c.Kind):
		return true, s.delays.RAM
	}
	return false, 0
}

// taken returns the arrival at a cell that takes a net, with what the net is charged. It is nil for a constant.
func (s *screen) taken(b bit) (*arrival, error) {
	a, err := s.arrives(b)
	if err != nil || a == nil || !a.block {
		return a, err
	}
	through := *a
	through.path.Picoseconds += s.delays.LUT
	through.block = false
	return &through, nil
}

// errLoop says that a path goes round.
var errLoop = errors.New("a path goes round without a register")

// arrives returns the longest way to a net. It is nil for a constant.
func (s *screen) arrives(b bit) (*arrival, error) {
	if a, ok := s.known[b]; ok {
		if a != nil && a.path.Picoseconds < 0 {
			return nil, fmt.Errorf("%s: %w", s.names[b], errLoop)
		}
		return a, nil
	}
	s.known[b] = &arrival{path: Path{Picoseconds: -1}} // while it is looked for
	a, err := s.find(b)
	if err != nil {
		return nil, err
	}
	s.known[b] = a
	return a, nil
}

func (s *screen) find(b bit) (*arrival, error) {
	if port, ok := s.inputs[b]; ok {
		return &arrival{path: Path{Picoseconds: s.delays.LUT, Begin: port, BeginKind: "input"}}, nil
	}
	driver, ok := s.drivers[b]
	if !ok {
		return nil, nil // a constant
	}
	c := s.Cells[driver.cell]
	var longest *arrival
	keep := func(a *arrival, delay int) {
		if a == nil {
			return
		}
		next := *a
		next.path.Picoseconds += delay
		if longest == nil || next.path.Picoseconds > longest.path.Picoseconds {
			longest = &next
		}
	}
	begins, delay := s.begins(c)
	if begins {
		keep(&arrival{path: Path{Begin: s.names[b], BeginKind: c.Kind}}, delay)
	}
	ways, err := s.ways(c, driver)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", driver.cell, err)
	}
	for _, w := range ways {
		take := s.taken
		if w.chain {
			take = s.arrives
		}
		a, err := take(w.from)
		if err != nil {
			return nil, err
		}
		keep(a, w.delay)
	}
	if longest == nil {
		return nil, nil // a function of constants
	}
	longest.block = false
	switch {
	case c.Kind == "CARRY4":
		longest.path.Carries++
		longest.block = true
	case c.Kind == "DSP48E2":
		longest.path.DSPs++
		longest.block = true
	case blockRAM(c.Kind):
		longest.block = true
	case !begins:
		longest.path.LUTs++
	case longest.path.BeginKind != c.Kind || longest.path.Begin != s.names[b]:
		longest.path.LUTs++ // through the address of a LUT that is a memory
	}
	return longest, nil
}

// way is a way from an input of a cell to an output.
type way struct {
	from  bit
	delay int
	chain bool // from the carry of another CARRY4
}

// ways returns the ways to an output of a cell that do not begin at its clock.
func (s *screen) ways(c *cell, to pin) ([]way, error) {
	var ways []way
	from := func(delay int, bits ...bit) {
		for _, b := range bits {
			if b >= 0 {
				ways = append(ways, way{from: b, delay: delay})
			}
		}
	}
	letter := strings.TrimPrefix(to.port, "DO")
	switch kind := c.Kind; {
	case strings.HasPrefix(kind, "LUT"), kind == "INV":
		for _, port := range slices.Sorted(maps.Keys(c.Connections)) {
			if port[0] == 'I' {
				from(s.delays.LUT, c.Connections[port]...)
			}
		}
	case strings.HasPrefix(kind, "MUXF"):
		from(s.delays.Mux, slices.Concat(c.Connections["I0"], c.Connections["I1"], c.Connections["S"])...)
	case kind == "CARRY4":
		from(s.delays.CarryEnter, c.Connections["S"][:to.at+1]...)
		values := to.at // O takes the carry below it
		if to.port == "CO" {
			values++
		}
		from(s.delays.CarryEnter, c.Connections["DI"][:values]...)
		from(s.delays.CarryEnter, c.Connections["CYINIT"]...)
		for _, b := range c.Connections["CI"] {
			if d, ok := s.drivers[b]; ok && s.Cells[d.cell].Kind == kind {
				ways = append(ways, way{b, s.delays.CarryPass, true})
			} else {
				from(s.delays.CarryEnter, b)
			}
		}
	case kind == "DSP48E2":
		for _, register := range []string{"AREG", "BREG", "MREG", "PREG"} {
			if used, ok := c.Parameters[register]; !ok || strings.Trim(fmt.Sprint(used), "0") != "" {
				return nil, fmt.Errorf("the DSP slice may use %s, which the screen does not know", register)
			}
		}
		for _, port := range []string{"A", "B", "C", "D", "CARRYIN", "PCIN", "ACIN", "BCIN"} {
			from(s.delays.DSP, c.Connections[port]...)
		}
	case strings.HasPrefix(kind, "SRL"):
		from(s.delays.LUT, slices.Concat(c.Connections["A"], c.Connections["A0"], c.Connections["A1"],
			c.Connections["A2"], c.Connections["A3"])...)
	case strings.HasSuffix(kind, "X1D"):
		prefix := map[string]string{"DPO": "DPRA", "SPO": "A"}[to.port]
		for _, port := range slices.Sorted(maps.Keys(c.Connections)) {
			if c.Directions[port] == "input" && strings.HasPrefix(port, prefix) {
				from(s.delays.LUT, c.Connections[port]...)
			}
		}
	case memoryLUTs[kind] > 0:
		from(s.delays.LUT, c.Connections["ADDR"+letter]...)
	case strings.HasPrefix(kind, "FD"), blockRAM(kind):
	default:
		return nil, fmt.Errorf("the screen does not know cells of kind %s", kind)
	}
	return ways, nil
}
