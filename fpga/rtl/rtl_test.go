package rtl

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/internal/goldenfile"
)

// TestUnitsAndSources checks that every source belongs to a unit, and that every register package is what the unit's
// description makes.
func TestUnitsAndSources(t *testing.T) {
	units, err := Units()
	require.NoError(t, err)
	require.NotEmpty(t, units)
	used := make(map[string]bool)
	for _, unit := range units {
		generated := "generated/" + unit.Name + "_registers.sv"
		require.Contains(t, unit.Sources, generated)
		goldenfile.Text(t, filepath.FromSlash(generated), registerPackage(unit))
		for _, source := range unit.Sources {
			used[source] = true
		}
		top, err := Sources.ReadFile(unit.Top)
		require.NoError(t, err)
		for port, fields := range map[string][]Field{"in_data_i": unit.Input, "out_data_o": unit.Output} {
			require.Regexp(t, fmt.Sprintf(`logic \[%d:0\] %s\b`, TransferBits(fields)-1, port), string(top),
				"%s: the fields of port %s", unit.Name, port)
		}
	}
	if goldenfile.Updating() {
		return // the embedded sources are those of before
	}
	for _, unit := range units {
		digest, err := unit.Digest()
		require.NoError(t, err)
		require.Len(t, digest, 64)
	}
	require.NoError(t, fs.WalkDir(Sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".sv") {
			require.True(t, used[path], "%s belongs to no unit", path)
		}
		return err
	}))
}

func TestDescriptionsThatContradictThemselves(t *testing.T) {
	good := Unit{Name: "u", Top: "u.sv", Sources: []string{"u.sv"}, InitiationInterval: 1, Latency: 1,
		Input: []Field{{Name: "v", Bits: 1}}, Output: []Field{{Name: "v", Bits: 65}},
		Registers: []Register{{Name: "a", Address: 1, Bits: 64}}}
	require.NoError(t, good.check("u"))
	for name, spoil := range map[string]func(*Unit){
		"another name":       func(u *Unit) { u.Name = "v" },
		"top without source": func(u *Unit) { u.Sources = nil },
		"no latency":         func(u *Unit) { u.Latency = 0 },
		"no interval":        func(u *Unit) { u.InitiationInterval = 0 },
		"65 bits":            func(u *Unit) { u.Registers = []Register{{Name: "a", Bits: 65}} },
		"0 bits":             func(u *Unit) { u.Registers = []Register{{Name: "a"}} },
		"no input":           func(u *Unit) { u.Input = nil },
		"no output":          func(u *Unit) { u.Output = nil },
		"field of 0 bits":    func(u *Unit) { u.Input = []Field{{Name: "v", Bits: 1}, {Name: "w"}} },
		"last of 2 bits":     func(u *Unit) { u.Output = []Field{{Name: LastField, Bits: 2}} },
		"last in, none out":  func(u *Unit) { u.Input = []Field{{Name: LastField, Bits: 1}} },
		"address taken":      func(u *Unit) { u.Tables = []Table{{Name: "t", Entries: 2, Bits: 1}} },
	} {
		unit := good
		spoil(&unit)
		require.Error(t, unit.check("u"), name)
	}
	_, err := Named("none")
	require.ErrorContains(t, err, `unit "none"`)
}

func TestTransfers(t *testing.T) {
	fields := []Field{{Name: "a", Bits: 60}, {Name: LastField, Bits: 1}, {Name: "b", Bits: 3}}
	require.Equal(t, 64, TransferBits(fields))
	require.Equal(t, 1, TransferWords(fields))
	require.Equal(t, 2, TransferWords(append(fields, Field{Name: "c", Bits: 1})))
	bit, ok := LastBit(fields)
	require.True(t, ok)
	require.Equal(t, 60, bit)
	_, ok = LastBit(fields[:1])
	require.False(t, ok)

	require.Equal(t, []uint64{0x3534333231, 5 | 1<<4}, HexToken([]byte("12345"), true))
	require.Equal(t, []uint64{0x3837363534333231, 8}, HexToken([]byte("12345678"), false))
	require.Equal(t, []uint64{0x3837363534333231, 9 | 1<<4}, HexToken([]byte("1234567890"), true))

	section := make([]byte, 33)
	section[0], section[31], section[32] = 1, 2, 3
	require.Equal(t, []uint64{0, 0, 0, 0, 1 << 6}, SectionTransfers(nil))
	require.Equal(t, []uint64{1, 0, 0, 2 << 56, 32 | 1<<6}, SectionTransfers(section[:32]))
	require.Equal(t, []uint64{1, 0, 0, 2 << 56, 32, 3, 0, 0, 0, 1 | 1<<6}, SectionTransfers(section))
	values, last, damaged := HybridValues([]uint64{1 | 2<<32, 3, 0, 0, 3 | 1<<4})
	require.Equal(t, []uint32{1, 2, 3}, values)
	require.True(t, last)
	require.False(t, damaged)
	values, last, damaged = HybridValues([]uint64{0, 0, 0, 4 << 32, 8 | 1<<5})
	require.Equal(t, []uint32{0, 0, 0, 0, 0, 0, 0, 4}, values)
	require.False(t, last)
	require.True(t, damaged)

	values64, last, damaged := WideValues([]uint64{5, 6, 0, 0, 2 | 1<<3})
	require.Equal(t, []uint64{5, 6}, values64)
	require.True(t, last)
	require.False(t, damaged)
	values64, last, damaged = WideValues([]uint64{1, 2, 3, 4, 4 | 1<<4})
	require.Equal(t, []uint64{1, 2, 3, 4}, values64)
	require.False(t, last)
	require.True(t, damaged)

	require.Empty(t, ColumnTransfers(nil))
	require.Equal(t, []uint64{0x3f800000, 0xc0000000 | 1<<32}, ColumnTransfers([]float32{1, -2}))
	row, last, damaged := PackedRow([]uint64{0x3f800000 | 0xc0000000<<32, 0x40400000, 0, 0, 0, 0, 0, 0, 3 | 1<<5})
	require.Equal(t, []float32{1, -2, 3}, row)
	require.True(t, last)
	require.False(t, damaged)
	row, last, damaged = PackedRow([]uint64{0, 0, 0, 0, 0, 0, 0, 0x3f800000 << 32, 16})
	require.Len(t, row, 16)
	require.EqualValues(t, 1, row[15])
	require.False(t, last)
	require.False(t, damaged)
	_, _, damaged = PackedRow([]uint64{0, 0, 0, 0, 0, 0, 0, 0, 1<<5 | 1<<6})
	require.True(t, damaged)

	value, last, damaged := LaneValue([]uint64{5, 0})
	require.Equal(t, []any{uint64(5), false, false}, []any{value, last, damaged})
	value, last, damaged = LaneValue([]uint64{0, 3})
	require.Equal(t, []any{uint64(0), true, true}, []any{value, last, damaged})
	_, last, damaged = LaneValue([]uint64{0, 1})
	require.Equal(t, []any{true, false}, []any{last, damaged})

	require.Equal(t, []uint64{1 << 35}, TextTransfers(nil))
	require.Equal(t, []uint64{0x34333231 | 4<<32 | 1<<35}, TextTransfers([]byte("1234")))
	require.Equal(t, []uint64{0x34333231 | 4<<32, 0x35 | 1<<32 | 1<<35}, TextTransfers([]byte("12345")))
	require.Equal(t, []Write{{0, 1}, {1, 0}}, TextDecoder(true, false).Writes)
	require.Equal(t, []Write{{0, 0}, {1, 1}}, TextDecoder(false, true).Writes)
	require.Equal(t, TextResult{Last: true, Cells: [4]TextCell{0: {Kept: true, Value: 7, Present: true, Field: 39,
		End: TextLineMalformedCell}, 3: {Kept: true, Malformed: true, Field: 40, End: TextLineEmpty}}},
		TextCells([]uint64{7, 0, 0b1001 | 1<<4 | 1<<11 | 39<<12 | 40<<30 | 2<<36 | 5<<45 | 1<<49}))
	require.Equal(t, TextResult{Skipped: true, Cells: [4]TextCell{1: {Value: 5}, 2: {Value: 6}}},
		TextCells([]uint64{5 << 32, 6, 1 << 48}))

	full := func() int { return 8 }
	require.Equal(t, []uint64{0, 0, 0, 0, 1 << 4}, IndexTransfers(nil, full))
	require.Equal(t, []uint64{7 | 1<<63, 9, 0, 0, 3 | 1<<4}, IndexTransfers([]uint32{7, 1 << 31, 9}, full))
	require.Equal(t, []uint64{1, 0, 0, 0, 1, 2, 0, 0, 0, 1 | 1<<4},
		IndexTransfers([]uint32{1, 2}, func() int { return 1 }))
	require.Equal(t, []uint64{1, 1, 1, 1 | 1<<32, 8, 2, 0, 0, 0, 1 | 1<<4},
		IndexTransfers([]uint32{1, 0, 1, 0, 1, 0, 1, 1, 2}, full))
	require.Equal(t, []uint64{1 << 60}, LevelTransfers(nil, nil, full))
	require.Equal(t, []uint64{0b10 | 3<<8 | 62<<14 | 2<<56 | 1<<60},
		LevelTransfers([]uint8{0, 1}, []uint8{3, 62}, full))
	require.Equal(t, []uint64{0xff | 0x41041041041<<8 | 8<<56, 1<<8 | 1<<56 | 1<<60},
		LevelTransfers([]uint8{1, 1, 1, 1, 1, 1, 1, 1, 0}, []uint8{1, 1, 1, 1, 1, 1, 1, 1, 1}, full))
	require.Equal(t, ListResult{Lengths: []uint32{70000, 3}, RowPresent: []bool{false, true},
		Present: []bool{true, false, true}, Last: true, Tidy: true},
		ListRows([]uint64{70000 | 3<<32 | 0b10<<60, 2<<4 | 0b101<<8 | 3<<16 | 1<<20}))
	require.Equal(t, ListResult{Damaged: true, Tidy: true}, ListRows([]uint64{0, 1 << 21}))
	for name, untidy := range map[string][]uint64{
		"a length of no row": {1, 0}, "a length behind the rows": {1 << 32, 1 << 4}, "presence of no row": {1 << 60, 0},
		"presence of no element": {0, 1 << 8}, "nine rows": {0, 9 << 4}, "nine elements": {0, 9 << 16},
	} {
		require.False(t, ListRows(untidy).Tidy, name)
	}
}

// TestLimitOfASection checks that a value never has bits above its width, whatever limit is asked for.
func TestLimitOfASection(t *testing.T) {
	for limit, want := range map[uint32]uint64{5: 5, 6: 6, 7: 7, 8: 7, math.MaxUint32: 7} {
		setup, err := HybridDecoder(3, limit, 1)
		require.NoError(t, err)
		require.Equal(t, Write{Address: 1, Data: want}, setup.Writes[1])
	}
	setup, err := HybridDecoder(32, math.MaxUint32, 1)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxUint32, setup.Writes[1].Data)
}

func TestWhatTheUnitsDoNotHave(t *testing.T) {
	borders := func(n int) []float32 { return make([]float32, n) }
	for name, try := range map[string]func() error{
		"sigrid_hash of 2^32": func() error { _, err := SigridHash(sigridhash.Params{Max: 1 << 32}); return err },
		"sigrid_hash of 0":    func() error { _, err := SigridHash(sigridhash.Params{}); return err },
		"modulus of 2^32":     func() error { _, err := PositiveModulus(1 << 32); return err },
		"modulus of 0":        func() error { _, err := PositiveModulus(0); return err },
		"values of 33 bits":   func() error { _, err := HybridDecoder(33, 0, 0); return err },
		"lists of lists":      func() error { _, err := ListLengths(format.ColumnType{MaxRep: 2}); return err },
		"booleans": func() error {
			_, err := PlainDecoder(format.ColumnType{Physical: format.Boolean}, 1)
			return err
		},
		"byte arrays": func() error {
			_, err := PlainDecoder(format.ColumnType{Physical: format.ByteArray}, 1)
			return err
		},
		"dictionary of 16385": func() error { _, err := DictionaryGather(make([]uint64, 16385)); return err },
		"no rows":             func() error { _, err := RowPacker(0); return err },
		"513 rows":            func() error { _, err := RowPacker(513); return err },
		"4097 borders":        func() error { _, err := Bucketize(bucketize.Params{Borders: borders(4097)}); return err },
		"no border":           func() error { _, err := Bucketize(bucketize.Params{}); return err },
		"no lane of hash before clamp": func() error {
			_, err := Lane(LaneSection{Chain: []Setup{{Unit: "sigrid_hash"}, {Unit: "clamp"}}})
			return err
		},
		"no lane of clamp twice": func() error {
			_, err := Lane(LaneSection{Chain: []Setup{{Unit: "clamp"}, {Unit: "clamp"}}})
			return err
		},
		"no lane of vocabulary": func() error {
			_, err := Lane(LaneSection{Chain: []Setup{{Unit: "vocabulary"}}})
			return err
		},
		"no lane of 262145 rows with nulls": func() error {
			_, err := Lane(LaneSection{Present: make([]bool, 1<<18+1)})
			return err
		},
		"side right": func() error {
			_, err := Bucketize(bucketize.Params{Borders: borders(1), Side: bucketize.SideRight})
			return err
		},
	} {
		var lacks *NotInRTLError
		require.True(t, errors.As(try(), &lacks), name)
		require.ErrorIs(t, lacks, ErrNotInRTL)
	}
	for name, wrong := range map[string][]float32{
		"decreasing": {2, 1}, "a NaN": {float32(math.NaN())},
	} {
		_, err := Bucketize(bucketize.Params{Borders: wrong})
		require.ErrorIs(t, err, bucketize.ErrBorders, name)
	}
	for _, try := range []func() error{
		func() error { _, err := SigridHash(sigridhash.Params{Max: math.MaxUint32}); return err },
		func() error { _, err := PositiveModulus(1); return err },
		func() error {
			_, err := Lane(LaneSection{Present: make([]bool, 1<<18), Chain: []Setup{{Unit: "clamp"}, {Unit: "sigrid_hash"}}})
			return err
		},
		func() error { _, err := RowPacker(1); return err },
		func() error { _, err := RowPacker(512); return err },
		func() error { _, err := DictionaryGather(make([]uint64, 16384)); return err },
		func() error { _, err := Bucketize(bucketize.Params{Borders: borders(4096)}); return err },
	} {
		require.NoError(t, try())
	}
}

// TestLaneAddresses checks that the registers and tables of units lie in unit lane where its description says.
func TestLaneAddresses(t *testing.T) {
	lane, err := Named("lane")
	require.NoError(t, err)
	registers, tables := make(map[string]uint16), make(map[string]uint16)
	for _, r := range lane.Registers {
		registers[r.Unit+" "+r.Name] = r.Address
	}
	for _, table := range lane.Tables {
		tables[table.Name] = table.Address
	}
	require.Equal(t, map[string]uint16{"encoded": laneEncoded, "nullable": laneNullable, "rows": laneRowCount,
		"stages": laneStages, "presence": lanePresence}, map[string]uint16{"encoded": registers[" encoded"],
		"nullable": registers[" nullable"], "rows": registers[" rows"], "stages": registers[" stages"],
		"presence": tables["presence"]})
	found := 4
	for name, base := range laneAddresses {
		unit, err := Named(name)
		require.NoError(t, err)
		for _, r := range unit.Registers {
			require.Equal(t, base+r.Address, registers[name+" "+r.Name], "%s of %s", r.Name, name)
			found++
		}
		for _, table := range unit.Tables {
			require.Equal(t, base+table.Address, tables[table.Name], "%s of %s", table.Name, name)
		}
	}
	require.Len(t, lane.Registers, found)
	setup, err := Lane(LaneSection{Values: Setup{Unit: "plain_decoder", Writes: []Write{{Address: 2, Data: 70}}}, Rows: 70,
		Present: slices.Repeat([]bool{true, false}, 35), Chain: []Setup{FillNull(9), IntToFloat()}})
	require.NoError(t, err)
	require.Equal(t, []Write{{laneEncoded, 0}, {laneNullable, 1}, {laneRowCount, 70}, {laneStages, 0b101}, {0xa012, 70},
		{lanePresence, 0x5555555555555555}, {lanePresence + 1, 0b010101}, {0xa030, 9}}, setup.Writes)
}

// registerPackage returns the SystemVerilog package with the addresses of the unit's own registers.
func registerPackage(u Unit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// The registers of unit %s. Made of units/%s.json; do not edit.\n", u.Name, u.Name)
	fmt.Fprintf(&b, "package %s_registers;\n", u.Name)
	for _, r := range u.Registers {
		if r.Unit != "" {
			continue // the unit inside has a package of its own
		}
		fmt.Fprintf(&b, "  localparam logic [15:0] %s = 16'd%d;  // %s\n", camelCase(r.Name), r.Address, r.About)
	}
	b.WriteString("endpackage\n")
	return b.String()
}

// camelCase turns snake_case into the form that the lowRISC style guide wants of constants.
func camelCase(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
