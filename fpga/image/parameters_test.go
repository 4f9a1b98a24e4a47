package image

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// digestOfNothing is in the place of the SHA-256 of a unit's sources.
var digestOfNothing = strings.Repeat("0a", 32)

// withParameters is an image with parameters and modules, and without figures of format 1.0.
func withParameters() *Spec {
	s := withModules()
	s.Clocks = nil
	for i := range s.Units {
		s.Units[i].Lanes = 0
	}
	for i := range s.Kernels {
		s.Kernels[i].II, s.Kernels[i].Latency = 0, 0
	}
	figure := func(v uint32, from Source, reference string) Figure { return Figure{v, from, reference} }
	s.Parameters = &Parameters{
		Clock:   figure(223000, SourcePublished, "PreSto, Table II"),
		Buffers: figure(2, SourceRequested, ""),
		Chained: figure(1, SourceAssumed, "no source says it"),
		Units: []UnitParameters{
			{2, figure(8, SourceRequested, ""), figure(1, SourceRequested, ""), figure(1, SourceAssumed, "as log"),
				figure(0, SourceAssumed, "small")},
			{3, figure(4, SourceRequested, ""), figure(2, SourceRequested, ""),
				figure(1, SourceRTL, RTLReference("log", digestOfNothing)),
				figure(29, SourceRTL, RTLReference("log", digestOfNothing))},
		},
	}
	return s
}

// TestFormOfParameters holds the bytes of an image with parameters, which is the newest version of the form.
func TestFormOfParameters(t *testing.T) {
	b := built(t, withParameters())
	goldenfile.Bytes(t, "testdata/parameters.v1.2.hex", b)
	m, err := Parse(goldenfile.Read(t, "testdata/parameters.v1.2.hex"))
	require.NoError(t, err)
	assert.Equal(t, *withParameters(), m.Spec)
	assert.EqualValues(t, MinorParameters, b[offMinor])
	assert.Empty(t, m.Spec.Unsourced())

	b[offMinor] = MinorModules
	_, err = Parse(reseal(b))
	require.ErrorIs(t, err, ErrLayout)
	require.ErrorContains(t, err, "1.1, want 1.2")
}

func TestParametersAreSignedAndPartOfTheIdentity(t *testing.T) {
	m := parsed(t, built(t, withParameters()))
	s := withParameters()
	s.Parameters.Clock.Value--
	assert.NotEqual(t, m.ID, parsed(t, built(t, s)).ID)
	key, _ := keyPair(1)
	signed, err := m.Sign(key)
	require.NoError(t, err)
	m = parsed(t, signed)
	assert.Less(t, m.findSection(KindParameters).Offset, m.signed)
}

// TestLimitsOfFigures tries each figure at its limits and beside them.
func TestLimitsOfFigures(t *testing.T) {
	for name, f := range map[string]struct {
		figure      func(*Parameters) *Figure
		least, most uint32
	}{
		"clock_khz":           {func(p *Parameters) *Figure { return &p.Clock }, MinClockKHz, MaxClockKHz},
		"buffers":             {func(p *Parameters) *Figure { return &p.Buffers }, 1, 2},
		"chained":             {func(p *Parameters) *Figure { return &p.Chained }, 0, 1},
		"elements":            {func(p *Parameters) *Figure { return &p.Units[1].Elements }, 1, MaxElements},
		"lanes":               {func(p *Parameters) *Figure { return &p.Units[1].Lanes }, 1, MaxLanes},
		"initiation_interval": {func(p *Parameters) *Figure { return &p.Units[1].Interval }, 1, MaxInterval},
		"latency_cycles":      {func(p *Parameters) *Figure { return &p.Units[1].Latency }, 0, MaxLatency},
	} {
		build := func(value uint32) error {
			s := withParameters()
			f.figure(s.Parameters).Value = value
			_, err := Build(s)
			return err
		}
		require.NoError(t, build(f.least), name)
		require.NoError(t, build(f.most), name)
		require.ErrorContains(t, build(f.most+1), name)
		if f.least > 0 {
			require.ErrorIs(t, build(f.least-1), ErrContent)
			require.ErrorContains(t, build(f.least-1), name)
		}
	}
}

func TestParametersThatAreRefused(t *testing.T) {
	long := strings.Repeat("x", MaxReference)
	s := withParameters()
	s.Parameters.Clock.Reference = long
	built(t, s)
	for says, change := range map[string]func(*Spec){
		"no units":          func(s *Spec) { s.Parameters.Units = nil },
		"the image lacks":   func(s *Spec) { s.Parameters.Units[0].Unit = 77 },
		"must ascend":       func(s *Spec) { s.Parameters.Units[0].Unit = 3 },
		"source \"guess\"":  func(s *Spec) { s.Parameters.Clock.Source = "guess" },
		"source \"\"":       func(s *Spec) { s.Parameters.Buffers = Figure{Value: 1} },
		"say why, or where": func(s *Spec) { s.Parameters.Chained.Reference = " " },
		"at most 200 bytes": func(s *Spec) { s.Parameters.Clock.Reference = long + "x" },
		"on one line":       func(s *Spec) { s.Parameters.Clock.Reference = "a\nb" },
		"is not text":       func(s *Spec) { s.Parameters.Clock.Reference = "\xff" },
		"interval and latency only": func(s *Spec) {
			s.Parameters.Units[1].Lanes = Figure{1, SourceRTL, RTLReference("log", digestOfNothing)}
		},
		"name of a unit of fpga/rtl": func(s *Spec) { s.Parameters.Units[1].Latency.Reference = "log 0" },
		"want the name of a unit":    func(s *Spec) { s.Parameters.Units[1].Interval.Reference = " " + digestOfNothing },
		"the SHA-256 of its sources": func(s *Spec) {
			s.Parameters.Units[1].Interval.Reference = "log " + strings.ToUpper(digestOfNothing)
		},
		"clock kernel beside":     func(s *Spec) { s.Clocks = []Clock{{Name: "kernel"}} },
		"lanes of unit clamp":     func(s *Spec) { s.Units[0].Lanes = 1 },
		"interval of kernel log":  func(s *Spec) { s.Kernels[0].II = 1 },
		"latency_cycles of kerne": func(s *Spec) { s.Kernels[0].Latency = 1 },
	} {
		s := withParameters()
		change(s)
		_, err := Build(s)
		require.ErrorIs(t, err, ErrContent, says)
		require.ErrorContains(t, err, says)
	}
}

// TestAnOlderImageLoadsAndItsFiguresAreUnsourced reads a file that an earlier build wrote.
func TestAnOlderImageLoadsAndItsFiguresAreUnsourced(t *testing.T) {
	m, err := Parse(goldenfile.Read(t, "testdata/image.v1.hex"))
	require.NoError(t, err)
	assert.Nil(t, m.Spec.Parameters)
	assert.Equal(t, []string{"clock kernel", "lanes of unit clamp", "lanes of unit log",
		"initiation_interval of kernel log", "latency_cycles of kernel log"}, m.Spec.Unsourced())
}

func TestFiguresHaveNamesAndSources(t *testing.T) {
	s := withParameters()
	var lines []string
	for _, f := range s.Parameters.Figures(s.Units) {
		lines = append(lines, f.Name+" "+f.Figure.String())
	}
	assert.Equal(t, []string{
		"clock_khz 223000 (published: PreSto, Table II)", "buffers 2 (requested)", "chained 1 (assumed: no source says it)",
		"clamp.elements 8 (requested)", "clamp.lanes 1 (requested)", "clamp.initiation_interval 1 (assumed: as log)",
		"clamp.latency_cycles 0 (assumed: small)", "log.elements 4 (requested)", "log.lanes 2 (requested)",
		"log.initiation_interval 1 (rtl: log " + digestOfNothing + ")",
		"log.latency_cycles 29 (rtl: log " + digestOfNothing + ")",
	}, lines)
}

// TestNullIsNoParameters seals a section whose text is null: Build leaves the section out instead.
func TestNullIsNoParameters(t *testing.T) {
	m := parsed(t, built(t, withParameters()))
	var sections []section
	for i, s := range m.Sections {
		e, _, err := parseEntry(m.bytes, i)
		require.NoError(t, err)
		e.data = m.bytes[s.Offset : s.Offset+s.Size]
		sections = append(sections, *e)
	}
	h, _, err := parseHeader(m.bytes)
	require.NoError(t, err)
	require.True(t, bytes.Equal(m.bytes, encodeImage(h, sections)))
	for i := range sections {
		if sections[i].kind == KindParameters {
			sections[i].data = []byte("null")
		}
	}
	_, err = Parse(encodeImage(h, sections))
	require.ErrorIs(t, err, ErrLayout)
}
