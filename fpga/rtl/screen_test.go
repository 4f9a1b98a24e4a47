package rtl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// madeNetlist is the text of a netlist with the module m: input i, output o, and cells, each a line of kind and
// connections as "LUT2 I0=2 I1=3 O=4". Ports whose names are O, Q, P, CO or begin with DO are outputs.
func madeNetlist(t *testing.T, input, output []int, cells ...string) *netlist {
	t.Helper()
	made := map[string]any{}
	for n, line := range cells {
		words := strings.Fields(line)
		connections, directions := map[string][]any{}, map[string]string{}
		for _, word := range words[1:] {
			port, bits, _ := strings.Cut(word, "=")
			directions[port] = "input"
			if strings.HasPrefix(port, "DO") || strings.Contains(" O Q P CO DPO ", " "+port+" ") {
				directions[port] = "output"
			}
			for one := range strings.SplitSeq(bits, ",") {
				var number int
				if _, err := fmt.Sscan(one, &number); err == nil && number > 1 {
					connections[port] = append(connections[port], number)
				} else {
					connections[port] = append(connections[port], one)
				}
			}
		}
		parameters := map[string]any{"AREG": "00", "BREG": "0", "MREG": 0, "PREG": "0"}
		if words[0] == "DSP48E2p" {
			words[0], parameters["PREG"] = "DSP48E2", "01"
		}
		made[fmt.Sprintf("c%d", n)] = map[string]any{"type": words[0], "port_directions": directions,
			"connections": connections, "parameters": parameters}
	}
	names := map[string]any{}
	for b := 2; b < 100; b++ {
		names[fmt.Sprintf("n%d", b)] = map[string]any{"bits": []int{b}}
		names[fmt.Sprintf("$auto$%d", b)] = map[string]any{"bits": []int{b}}
	}
	text, err := json.Marshal(map[string]any{"modules": map[string]any{"m": map[string]any{"cells": made,
		"netnames": names, "ports": map[string]any{"i": map[string]any{"direction": "input", "bits": input},
			"o": map[string]any{"direction": "output", "bits": output}}}}})
	require.NoError(t, err)
	n, err := readNetlist(text, "m")
	require.NoError(t, err)
	return n
}

// TestLongestPath looks for the longest path of small netlists.
func TestLongestPath(t *testing.T) {
	d := screenDelays
	const (
		carry = " CYINIT=0 CI=0 O=10,11,12,13 CO=14,15,16,17" // outputs of a chain's first cell
		none  = " S=0,0,0,0 DI=0,0,0,0"
	)
	for name, c := range map[string]struct {
		input, output []int
		cells         []string
		want          Path
	}{
		"a register behind a register": {nil, nil, []string{"FDRE C=2 D=3 Q=4", "FDRE C=2 D=4 Q=5"},
			Path{Picoseconds: d.LUT, Begin: "n4[0]", BeginKind: "FDRE", End: "n4[0]", EndKind: "FDRE"}},
		"the longer of two": {nil, nil, []string{"FDRE C=2 D=9 Q=3", "LUT1 I0=3 O=4", "INV I=4 O=5", "LUT2 I0=3 I1=5 O=6",
			"FDSE C=2 D=6 Q=7", "MUXF7 I0=3 I1=3 S=4 O=9"},
			Path{Picoseconds: 4 * d.LUT, LUTs: 3, Begin: "n3[0]", BeginKind: "FDRE", End: "n6[0]", EndKind: "FDSE"}},
		"from the input to the output": {[]int{2}, []int{4}, []string{"LUT1 I0=2 O=3", "MUXF7 I0=3 I1=0 S=0 O=4"},
			Path{Picoseconds: 2*d.LUT + d.Mux, LUTs: 2, Begin: "i", BeginKind: "input", End: "n4[0]", EndKind: "output"}},
		"a carry chain of three": {nil, nil, []string{"FDRE C=2 D=99 Q=3",
			"CARRY4 S=3,0,0,0 DI=0,0,0,0" + carry,
			"CARRY4" + none + " CYINIT=0 CI=17 O=20,21,22,23 CO=24,25,26,27",
			"CARRY4" + none + " CYINIT=0 CI=27 O=30,31,32,33 CO=34,35,36,37", "FDRE C=2 D=33 Q=40"},
			Path{Picoseconds: 2*d.LUT + d.CarryEnter + 2*d.CarryPass, Carries: 3, Begin: "n3[0]", BeginKind: "FDRE",
				End: "n33[0]", EndKind: "FDRE"}},
		"a carry that does not reach": {nil, nil, []string{"FDRE C=2 D=99 Q=3",
			"CARRY4 S=0,0,0,3 DI=0,0,0,0" + carry,
			"FDRE C=2 D=12 Q=40", "FDRE C=2 D=16 Q=41"}, Path{}},
		"a value below its carry": {nil, nil, []string{"FDRE C=2 D=99 Q=3",
			"CARRY4 S=0,0,0,0 DI=0,3,0,0" + carry,
			"FDRE C=2 D=11 Q=40"}, Path{}},
		"a carry from no chain": {nil, nil, []string{"FDRE C=2 D=99 Q=3", "LUT1 I0=3 O=4",
			"CARRY4" + none + strings.Replace(carry, "CI=0", "CI=4", 1),
			"FDRE C=2 D=10 Q=40"},
			Path{Picoseconds: 3*d.LUT + d.CarryEnter, LUTs: 1, Carries: 1, Begin: "n3[0]", BeginKind: "FDRE", End: "n10[0]",
				EndKind: "FDRE"}},
		"a DSP slice without registers": {nil, nil, []string{"FDRE C=2 D=99 Q=3",
			"DSP48E2 A=3 B=0 C=0 D=0 P=4", "FDRE C=2 D=4 Q=5"},
			Path{Picoseconds: 2*d.LUT + d.DSP, DSPs: 1, Begin: "n3[0]", BeginKind: "FDRE", End: "n4[0]", EndKind: "FDRE"}},
		"from a block RAM to another": {nil, nil, []string{
			"RAMB36E2 CLKARDCLK=2 ADDRARDADDR=6 DOUTADOUT=3", "LUT1 I0=3 O=4",
			"URAM288 CLK=2 ADDR_A=4 DOUT_A=6"},
			Path{Picoseconds: d.RAM + 2*d.LUT + d.RAMInput, LUTs: 1, Begin: "n3[0]", BeginKind: "RAMB36E2", End: "n4[0]",
				EndKind: "URAM288"}},
		"a shift register": {nil, nil, []string{"SRL16E CLK=2 D=9 A0=0 A1=0 Q=3", "LUT1 I0=3 O=4", "FDRE C=2 CE=4 Q=5"},
			Path{Picoseconds: 2*d.LUT + d.LUTMemory, LUTs: 1, Begin: "n3[0]", BeginKind: "SRL16E", End: "n4[0]",
				EndKind: "FDRE"}},
		"the address of a memory of LUTs": {nil, nil, []string{"FDRE C=2 D=99 Q=3", "LUT1 I0=3 O=4", "LUT1 I0=4 O=5",
			"RAM32M16 WCLK=2 ADDRA=5,0 ADDRB=3 DIA=9 DOA=6,7 DOB=8", "FDRE C=2 D=6 Q=10"},
			Path{Picoseconds: 4 * d.LUT, LUTs: 3, Begin: "n3[0]", BeginKind: "FDRE", End: "n6[0]", EndKind: "FDRE"}},
		"the clock of a memory of LUTs": {nil, []int{6}, []string{"RAM64X1D WCLK=2 A0=0 DPRA0=0 D=9 DPO=6"}, Path{}},
	} {
		got, err := longestPath(madeNetlist(t, c.input, c.output, c.cells...), d)
		require.NoError(t, err, name)
		if (c.want == Path{}) {
			require.LessOrEqual(t, got.Picoseconds, 2*d.LUT, name)
			continue
		}
		require.Equal(t, c.want, got, name)
	}
	for says, cells := range map[string][]string{
		"n3[0]: a path goes round":   {"LUT1 I0=3 O=4", "LUT1 I0=4 O=3", "FDRE C=2 D=3 Q=5"},
		"cells of kind $mul":         {"$mul A=9 O=3", "FDRE C=2 D=3 Q=5"},
		"the DSP slice may use PREG": {"DSP48E2p A=9 P=3", "FDRE C=2 D=3 Q=5"},
	} {
		_, err := longestPath(madeNetlist(t, []int{9}, nil, cells...), d)
		require.ErrorContains(t, err, says)
	}
	_, err := readNetlist([]byte(`{"modules": {}}`), "m")
	require.ErrorContains(t, err, "no module m")
	_, err = readNetlist([]byte(`{"modules": {"m": {"ports": {"a": {"bits": [{}]}}}}}`), "m")
	require.Error(t, err)
}

func TestLimitOfAPath(t *testing.T) {
	require.EqualValues(t, 223_000, Path{Picoseconds: 4484}.LimitKHz()/1000*1000)
	require.Less(t, Path{Picoseconds: 4485}.LimitKHz(), uint32(ScreenedClockKHz))
	require.GreaterOrEqual(t, Path{Picoseconds: 4484}.LimitKHz(), uint32(ScreenedClockKHz))
	require.EqualValues(t, 1_000_000, Path{Picoseconds: 1000}.LimitKHz())
	require.Zero(t, Path{}.LimitKHz())
}
