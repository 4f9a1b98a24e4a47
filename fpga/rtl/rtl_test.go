package rtl

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/bucketize"
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
		goldenfile.Text(t, filepath.FromSlash(generated), unit.registerPackage())
		for _, source := range unit.Sources {
			used[source] = true
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
		Registers: []Register{{Name: "a", Address: 1, Bits: 64}}}
	require.NoError(t, good.check("u"))
	for name, spoil := range map[string]func(*Unit){
		"another name":       func(u *Unit) { u.Name = "v" },
		"top without source": func(u *Unit) { u.Sources = nil },
		"no latency":         func(u *Unit) { u.Latency = 0 },
		"no interval":        func(u *Unit) { u.InitiationInterval = 0 },
		"65 bits":            func(u *Unit) { u.Registers = []Register{{Name: "a", Bits: 65}} },
		"0 bits":             func(u *Unit) { u.Registers = []Register{{Name: "a"}} },
		"address taken":      func(u *Unit) { u.Tables = []Table{{Name: "t", Entries: 2, Bits: 1}} },
	} {
		unit := good
		spoil(&unit)
		require.Error(t, unit.check("u"), name)
	}
	_, err := Named("none")
	require.ErrorContains(t, err, `unit "none"`)
}

func TestWhatTheUnitsDoNotHave(t *testing.T) {
	borders := func(n int) []float32 { return make([]float32, n) }
	for name, try := range map[string]func() error{
		"sigrid_hash of 2^32": func() error { _, err := SigridHash(sigridhash.Params{Max: 1 << 32}); return err },
		"sigrid_hash of 0":    func() error { _, err := SigridHash(sigridhash.Params{}); return err },
		"modulus of 2^32":     func() error { _, err := PositiveModulus(1 << 32); return err },
		"modulus of 0":        func() error { _, err := PositiveModulus(0); return err },
		"4097 borders":        func() error { _, err := Bucketize(bucketize.Params{Borders: borders(4097)}); return err },
		"no border":           func() error { _, err := Bucketize(bucketize.Params{}); return err },
		"side right": func() error {
			_, err := Bucketize(bucketize.Params{Borders: borders(1), Side: bucketize.SideRight})
			return err
		},
	} {
		var lacks *NotInRTLError
		require.True(t, errors.As(try(), &lacks), name)
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
		func() error { _, err := Bucketize(bucketize.Params{Borders: borders(4096)}); return err },
	} {
		require.NoError(t, try())
	}
}
