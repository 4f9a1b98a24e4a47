package image

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
	"github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
	"github.com/millrace/millrace/internal/goldenfile"
)

// addModule is a module whose function adds two integers and a constant.
func addModule(constant int64, pages uint32) []byte {
	return wasmtest.Module{Pages: pages, Functions: []wasmtest.Function{{Name: "add",
		Params: []byte{wasmtest.I64, wasmtest.I64}, Results: []byte{wasmtest.I64},
		Code: wasmtest.Code(wasmtest.Get(0), wasmtest.Get(1), wasmtest.Op(0x7c), wasmtest.ConstI64(constant),
			wasmtest.Op(0x7c))}}}.Bytes()
}

// sized returns a module of n bytes, the rest of which is a custom section of random bytes.
func sized(n int, seed uint64) []byte {
	b := addModule(0, 0)
	rest := n - len(b) - 6 // the section's number, and its length in five bytes
	length := []byte{byte(rest) | 0x80, byte(rest>>7) | 0x80, byte(rest>>14) | 0x80, byte(rest>>21) | 0x80,
		byte(rest >> 28)}
	b = append(append(b, 0), length...)
	source := rand.New(rand.NewPCG(seed, 1))
	for range rest {
		b = append(b, byte(source.Uint32()))
	}
	return b
}

// withModules is an image with every section, and two modules.
func withModules() *Spec {
	s := sample()
	s.AddModule(Module{Name: "second", Bytes: addModule(2, 1)})
	s.AddModule(Module{Name: "first", Bytes: addModule(1, 0)})
	return s
}

// TestFormOfAnImageWithModules holds the bytes of an image with modules. It is of another minor version than an image
// without.
func TestFormOfAnImageWithModules(t *testing.T) {
	unsigned := built(t, withModules())
	goldenfile.Bytes(t, "testdata/modules.v1.1.hex", unsigned)
	m, err := Parse(goldenfile.Read(t, "testdata/modules.v1.1.hex"))
	require.NoError(t, err)
	assert.Equal(t, *withModules(), m.Spec)
	assert.Equal(t, unsigned, built(t, &m.Spec))
	assert.EqualValues(t, MinorModules, unsigned[offMinor])
	assert.EqualValues(t, Minor, built(t, sample())[offMinor])
	var names []string
	for _, s := range m.Sections {
		names = append(names, s.Name)
	}
	assert.Equal(t, "SELFTEST MODULES BUILD USER", strings.Join(names[len(names)-4:], " "))

	first := &m.Spec.Modules[0]
	assert.Equal(t, "first", first.Name)
	assert.Equal(t, []string{"add(int64, int64) -> int64"}, first.Functions())
	assert.Equal(t, first.Bytes, m.Spec.ModuleBytes()[first.Digest()])
	assert.Len(t, m.Spec.ModuleBytes(), 2)
	assert.Empty(t, (&Module{Bytes: []byte("none")}).Functions())

	plain, err := Parse(built(t, sample()))
	require.NoError(t, err)
	assert.Nil(t, plain.Spec.ModuleBytes())
	assert.NotEqual(t, plain.ID, m.ID)
	changed := withModules()
	changed.Modules[1].Bytes = addModule(3, 1)
	other, err := Parse(built(t, changed))
	require.NoError(t, err)
	assert.NotEqual(t, other.ID, m.ID, "a module is part of what an image does")
	assert.Equal(t, []Difference{{"MODULES", "second.sha256", m.Spec.Modules[1].Digest().String(),
		other.Spec.Modules[1].Digest().String()}}, Diff(m, other)[1:])
}

// TestASignatureCoversModules signs an image with modules, and changes a byte of one.
func TestASignatureCoversModules(t *testing.T) {
	m, err := Parse(built(t, withModules()))
	require.NoError(t, err)
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	b, err := m.Sign(key)
	require.NoError(t, err)
	signed, err := Parse(b)
	require.NoError(t, err)
	trusted := []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
	require.NoError(t, signed.Verify(trusted))
	section := signed.findSection(KindModules)
	at := section.Offset + section.Size - 3 // the last instructions of the last module
	require.EqualValues(t, 2, b[at], "the constant that it adds")
	b[at] = 3
	forged, err := Parse(reseal(b))
	require.NoError(t, err)
	require.ErrorIs(t, forged.Verify(trusted), ErrCorrupt)
}

// TestLimitsOfModules holds every limit from both sides.
func TestLimitsOfModules(t *testing.T) {
	many := func(n int) (list []Module) {
		for i := range n {
			list = append(list, Module{Name: fmt.Sprintf("m%02d", i), Bytes: addModule(int64(i), 0)})
		}
		return list
	}
	long := func(n, each int) (list []Module) {
		for i := range n {
			list = append(list, Module{Name: fmt.Sprintf("m%02d", i), Bytes: sized(each, uint64(i))})
		}
		return list
	}
	one := func(name string, b []byte) []Module { return []Module{{Name: name, Bytes: b}} }
	for name, c := range map[string]struct {
		modules []Module
		want    error
	}{
		"the most modules":     {many(MaxModules), nil},
		"a module more":        {many(MaxModules + 1), ErrTooLarge},
		"the longest module":   {one("m", sized(format.MaxModule, 1)), nil},
		"a byte more":          {one("m", sized(format.MaxModule+1, 1)), ErrContent},
		"the most bytes":       {long(4, MaxModulesBytes/4), nil},
		"bytes of five":        {append(long(4, MaxModulesBytes/4), Module{Name: "n", Bytes: addModule(0, 0)}), ErrTooLarge},
		"the most pages":       {one("m", addModule(0, format.MaxPages)), nil},
		"a page more":          {one("m", addModule(0, format.MaxPages+1)), ErrContent},
		"the longest name":     {one(strings.Repeat("n", MaxModuleName), addModule(0, 0)), nil},
		"a longer name":        {one(strings.Repeat("n", MaxModuleName+1), addModule(0, 0)), ErrContent},
		"no name":              {one("", addModule(0, 0)), ErrContent},
		"a NUL":                {one("a\x00b", addModule(0, 0)), ErrContent},
		"no text":              {one("\xff", addModule(0, 0)), ErrContent},
		"no module":            {one("m", nil), ErrContent},
		"a damaged module":     {one("m", addModule(0, 0)[:30]), ErrContent},
		"the name of another":  {append(many(1), many(1)...), ErrContent},
		"out of order":         {[]Module{many(2)[1], many(2)[0]}, ErrContent},
		"the bytes of another": {append(many(1), Module{Name: "n", Bytes: addModule(0, 0)}), ErrContent},
	} {
		s := withModules()
		s.Modules = c.modules
		b, err := Build(s)
		if c.want != nil {
			require.ErrorIs(t, err, c.want, name)
			assert.ErrorContains(t, err, "MODULES", name)
			continue
		}
		require.NoError(t, err, name)
		m, err := Parse(b)
		require.NoError(t, err, name)
		assert.Equal(t, *s, m.Spec, name)
	}
	s := sample()
	s.Modules = many(1)
	_, err := Build(s)
	require.ErrorContains(t, err, "no unit wasm")
}

// TestModulesSectionsThatAreRefused changes the section, and makes the digests fit.
func TestModulesSectionsThatAreRefused(t *testing.T) {
	le := binary.LittleEndian
	for name, c := range map[string]struct {
		change func(b, s []byte) // the image and its section
		want   error
		says   string
	}{
		"no module":     {func(_, s []byte) { le.PutUint64(s, 0) }, ErrLayout, "holds no module"},
		"many modules":  {func(_, s []byte) { le.PutUint64(s, 1<<63) }, ErrTooLarge, "at most 16"},
		"a module more": {func(_, s []byte) { le.PutUint64(s, 3) }, ErrLayout, ""},
		"a module less": {func(_, s []byte) { le.PutUint64(s, 1) }, ErrLayout, "behind the last module"},
		"a longer module": {func(_, s []byte) {
			s[modulesHeader+MaxModuleName]++
			s[modulesHeader+moduleEntry+MaxModuleName]--
		}, ErrContent, "first"},
		"a longer last one": {func(_, s []byte) { s[modulesHeader+moduleEntry+MaxModuleName]++ }, ErrLayout,
			"behind the end"},
		"a huge module":      {func(_, s []byte) { s[modulesHeader+MaxModuleName+7] = 0xff }, ErrLayout, "behind the end"},
		"text behind a name": {func(_, s []byte) { s[modulesHeader+MaxModuleName-1] = 'x' }, ErrLayout, "NUL"},
		"a damaged module":   {func(_, s []byte) { s[modulesHeader+2*moduleEntry] = 1 }, ErrContent, "WebAssembly"},
		"an older version":   {func(b, _ []byte) { b[offMinor] = 0 }, ErrLayout, "1.0, want 1.1"},
	} {
		b := built(t, withModules())
		m, err := Parse(b)
		require.NoError(t, err)
		s := m.findSection(KindModules)
		c.change(b, b[s.Offset:s.Offset+s.Size])
		_, err = Parse(reseal(b))
		require.ErrorIs(t, err, c.want, name)
		assert.ErrorContains(t, err, c.says, name)
	}
}

// TestOlderReadersRefuseModules holds what a reader that does not know the section sees: a section that is required.
func TestOlderReadersRefuseModules(t *testing.T) {
	b := built(t, withModules())
	m, err := Parse(b)
	require.NoError(t, err)
	assert.Equal(t, Required, m.findSection(KindModules).Flags)
	for i := range m.Sections {
		if m.Sections[i].Kind == KindModules { // as a kind that this reader does not know either
			binary.LittleEndian.PutUint32(b[headerSize+i*entrySize:], 99)
		}
	}
	_, err = Parse(reseal(b))
	require.ErrorIs(t, err, ErrUnknown)
	assert.ErrorContains(t, err, `99 "MODULES"`)
}

// TestModulesKeepTheirPlace moves the section behind BUILD, where its number would put it.
func TestModulesKeepTheirPlace(t *testing.T) {
	s := withModules()
	h := &header{minor: MinorModules, iface: s.Interface}
	copy(h.platform[:], s.Platform)
	m, err := Parse(built(t, s))
	require.NoError(t, err)
	var sections []section
	var modules section
	for i := range m.Sections {
		x := newSection(m.Sections[i].Kind, m.bytes[m.Sections[i].Offset:][:m.Sections[i].Size])
		if x.kind == KindModules {
			modules = x
			continue
		}
		sections = append(sections, x)
	}
	_, err = Parse(encodeImage(h, append(sections, modules)))
	require.ErrorIs(t, err, ErrLayout)
}

// TestAddModuleAddsTheUnitOnce adds modules to an image without the unit of modules.
func TestAddModuleAddsTheUnitOnce(t *testing.T) {
	b := built(t, sample())
	m, err := Parse(b)
	require.NoError(t, err)
	s := m.Spec
	s.AddModule(Module{Name: "b", Bytes: addModule(0, 0)})
	s.AddModule(Module{Name: "a", Bytes: addModule(1, 0)})
	require.Len(t, s.Units, len(m.Spec.Units)+1)
	assert.Contains(t, s.Units, Unit{Number: uint16(wasm.Unit), Name: "wasm", Version: 1})
	assert.Equal(t, "a", s.Modules[0].Name)
	_, err = Parse(built(t, &s))
	require.NoError(t, err)
	assert.Equal(t, b, built(t, &m.Spec), "the image itself does not change")
}

// TestModulesInTheLogPage holds the most modules of a slot from both sides, and the form of their digests.
func TestModulesInTheLogPage(t *testing.T) {
	r := sampleLogPage()
	for n := range MaxModules + 1 {
		r.Slots[1].Modules = append(r.Slots[1].Modules, SlotModule{fmt.Sprint(n), program.ModuleDigest{byte(n + 1)}})
		b, err := r.Marshal(1)
		require.NoError(t, err)
		got, err := ParseLogPage(b)
		if n == MaxModules {
			require.ErrorIs(t, err, ErrLogPage)
			break
		}
		require.NoError(t, err)
		assert.Equal(t, r, got)
		assert.True(t, got.Slots[1].HasModule(program.ModuleDigest{byte(n + 1)}))
		assert.False(t, got.Slots[2].HasModule(program.ModuleDigest{byte(n + 1)}))
	}
	var d program.ModuleDigest
	digits := strings.Repeat("0f", len(d))
	require.NoError(t, d.UnmarshalText([]byte(digits)))
	assert.Equal(t, digits, d.String())
	for _, bad := range []string{"", digits[1:], digits + "0", strings.Repeat("g", len(digits))} {
		require.ErrorContains(t, d.UnmarshalText([]byte(bad)), "module digest", bad)
	}
	assert.Equal(t, digits, d.String(), "a digest that is refused changes nothing")
}
