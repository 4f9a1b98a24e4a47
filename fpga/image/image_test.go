package image

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample is an image with every section.
func sample() *Spec {
	return &Spec{
		Platform:    "test-board",
		Interface:   uuid.MustParse("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d"),
		Time:        1700000000,
		Units:       []Unit{{Number: 2, Name: "clamp", Version: 1, Lanes: 8}, {Number: 3, Name: "log", Version: 1, Lanes: 4}},
		Compute:     []ComputeUnit{{Name: "log_0", Unit: 3, Base: 0x1000, Size: 0x1000, Control: "chain", IRQ: -1}},
		Memories:    []Memory{{Name: "slm", Type: "ddr4", Size: 4 << 30}},
		Connections: []Connection{{Compute: "log_0", Arg: 0, Memory: "slm"}},
		Clocks:      []Clock{{Name: "kernel", Requested: 250000, Granted: 223000, Screened: 223000}},
		Partition:   Partition{Slots: 1, LUTs: 1000},
		Kernels:     []Kernel{{Unit: 3, Name: "log", In: []string{"float32"}, Out: "float32", II: 1, Latency: 20}},
		Resources:   Resources{Tool: "yosys", Version: "0.23", Units: []ResourceLine{{Unit: 3, LUTs: 900}}},
		SelfTest: []Vector{{Name: "log", Units: []int{3}, Program: []byte{1}, Input: []byte{2}, Args: []byte{3},
			Output: []byte{4}}},
		Build: BuildInfo{Tool: "test", Reproducible: true},
		User:  []byte("<free & easy>"),
	}
}

func built(t testing.TB, s *Spec) []byte {
	b, err := Build(s)
	require.NoError(t, err)
	return b
}

func TestBuildThenParseGivesTheSpecBack(t *testing.T) {
	for name, s := range map[string]*Spec{
		"every section": sample(),
		"the least":     {Platform: "p", Units: []Unit{{Number: 1, Name: "x", Version: 1, Lanes: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := built(t, s)
			m, err := Parse(b)
			require.NoError(t, err)
			assert.Equal(t, *s, m.Spec)
			assert.Equal(t, b, built(t, &m.Spec), "what was parsed builds the same bytes")
			assert.Equal(t, uuid.Version(8), m.ID.UUID().Version())
			assert.Equal(t, uuid.RFC4122, m.ID.UUID().Variant())
		})
	}
}

func TestIdentityIsWhatTheImageDoes(t *testing.T) {
	id := func(change func(*Spec)) ID {
		s := sample()
		change(s)
		m, err := Parse(built(t, s))
		require.NoError(t, err)
		return m.ID
	}
	same := id(func(*Spec) {})
	for name, change := range map[string]func(*Spec){
		"build": func(s *Spec) { s.Build.Revision = "abc" },
		"user":  func(s *Spec) { s.User = []byte("other") },
		"time":  func(s *Spec) { s.Time++ },
	} {
		assert.Equal(t, same, id(change), name)
	}
	for name, change := range map[string]func(*Spec){
		"unit version": func(s *Spec) { s.Units[0].Version = 2 },
		"interface":    func(s *Spec) { s.Interface[0]++ },
		"platform":     func(s *Spec) { s.Platform += "2" },
		"vector":       func(s *Spec) { s.SelfTest[0].Output[0]++ },
		"clock":        func(s *Spec) { s.Clocks[0].Granted-- },
		"partition":    func(s *Spec) { s.Partition.Slots++ },
	} {
		assert.NotEqual(t, same, id(change), name)
	}
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	s := sample()
	s.SelfTest, s.Build = nil, BuildInfo{}
	whole := built(t, s)
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			_, err := Parse(b)
			var e *Error
			require.ErrorAs(t, err, &e, "byte %d bit %d", i, bit)
		}
	}
}

func TestEveryTruncationIsRefused(t *testing.T) {
	whole := built(t, sample())
	for n := range whole {
		_, err := Parse(whole[:n])
		require.Error(t, err, "%d of %d bytes", n, len(whole))
	}
	_, err := Parse(append(bytes.Clone(whole), 0))
	require.ErrorIs(t, err, ErrLayout)
}

// reseal makes header CRC, section digests and id fit bytes that a test has changed, as somebody hostile would.
func reseal(b []byte) []byte {
	le := binary.LittleEndian
	n := int(le.Uint32(b[offSections:]))
	if headerSize+n*entrySize <= len(b) {
		var h header
		copy(h.iface[:], b[offInterface:])
		copy(h.platform[:], b[offPlatform:])
		var all []section
		for i := range n {
			e := b[headerSize+i*entrySize:]
			off, size := le.Uint64(e[24:]), le.Uint64(e[32:])
			s := section{kind: Kind(le.Uint32(e)), flags: Flags(le.Uint16(e[4:])), codec: Codec(le.Uint16(e[6:]))}
			if off <= uint64(len(b)) && size <= uint64(len(b))-off {
				s.data = b[off : off+size]
				if s.kind != KindSignature {
					sum := sha256.Sum256(s.data)
					copy(e[48:], sum[:])
				}
			}
			all = append(all, s)
		}
		id := imageIdentity(&h, all)
		copy(b[offID:], id[:])
		le.PutUint32(b[offCRC:], headerCRC(b, n))
	}
	return b
}

func TestParseRefusesWhatBuildWouldNotWrite(t *testing.T) {
	le := binary.LittleEndian
	entry := func(b []byte, i int) []byte { return b[headerSize+i*entrySize:] }
	for _, tt := range []struct {
		name   string
		change func(b []byte) []byte
		want   error
	}{
		{"another major version", func(b []byte) []byte { le.PutUint16(b[offMajor:], 2); return b }, ErrVersion},
		{"header flags", func(b []byte) []byte { b[offFlags] = 1; return b }, ErrUnknown},
		{"reserved header bytes", func(b []byte) []byte { b[offReserved] = 1; return b }, ErrLayout},
		{"too many sections", func(b []byte) []byte { le.PutUint32(b[offSections:], 1<<31); return b }, ErrTooLarge},
		{"more sections than bytes", func(b []byte) []byte { le.PutUint32(b[offSections:], MaxSections); return b[:1000] },
			ErrLayout},
		{"platform text behind its end", func(b []byte) []byte { b[offPlatform+63] = 'x'; return b }, ErrLayout},
		{"section overlaps the table", func(b []byte) []byte { le.PutUint64(entry(b, 0)[24:], 64); return b }, ErrLayout},
		{"section overlaps another", func(b []byte) []byte { copy(entry(b, 1)[24:32], entry(b, 0)[24:32]); return b },
			ErrLayout},
		{"gap", func(b []byte) []byte { le.PutUint64(entry(b, 1)[24:], le.Uint64(entry(b, 1)[24:])+64); return b },
			ErrLayout},
		{"offset out of bounds", func(b []byte) []byte { le.PutUint64(entry(b, 0)[24:], 1<<63); return b }, ErrLayout},
		{"size out of bounds", func(b []byte) []byte { le.PutUint64(entry(b, 0)[32:], 1<<63); return b }, ErrLayout},
		{"padding", func(b []byte) []byte { b[le.Uint64(entry(b, 0)[24:])-1] = 1; return b }, ErrLayout},
		{"codec", func(b []byte) []byte { entry(b, 0)[6] = 1; return b }, ErrUnknown},
		{"flag", func(b []byte) []byte { entry(b, 0)[4] |= 2; return b }, ErrUnknown},
		{"required flag missing", func(b []byte) []byte { entry(b, 0)[4] = 0; return b }, ErrLayout},
		{"unknown required section", func(b []byte) []byte { e := entry(b, 10); e[0], e[4] = 200, 1; return b }, ErrUnknown},
		{"section twice", func(b []byte) []byte { e := entry(b, 1); copy(e[:24], entry(b, 0)[:24]); return b }, ErrLayout},
		{"another name", func(b []byte) []byte { entry(b, 0)[8] = 'V'; return b }, ErrLayout},
		{"JSON with a space", func(b []byte) []byte {
			s := b[le.Uint64(entry(b, 0)[24:]):]
			i := bytes.IndexByte(s, ',')
			copy(s[i+1:], bytes.ReplaceAll(s[i+1:i+14], []byte(`"name":"clamp`), []byte(`"name": "clam`)))
			return b
		}, ErrLayout},
		{"JSON that is none", func(b []byte) []byte { b[le.Uint64(entry(b, 0)[24:])] = '{'; return b }, ErrContent},
		{"id", func(b []byte) []byte { b[offID]++; le.PutUint32(b[offCRC:], headerCRC(b, 11)); return b }, ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := tt.change(built(t, sample()))
			if tt.name != "id" {
				b = reseal(b)
			}
			_, err := Parse(b)
			require.ErrorIs(t, err, tt.want)
		})
	}
}

func TestUnknownOptionalSectionIsSkipped(t *testing.T) {
	b := built(t, sample())
	e := b[headerSize+10*entrySize:] // USER, the last
	binary.LittleEndian.PutUint32(e, 200)
	m, err := Parse(reseal(b))
	require.NoError(t, err)
	assert.Nil(t, m.Spec.User)
	assert.Equal(t, Kind(200), m.Sections[10].Kind)
}

func TestBuildRefusesABadSpec(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"no units":                func(s *Spec) { s.Units = nil },
		"units out of order":      func(s *Spec) { s.Units[0].Number = 9 },
		"unit twice":              func(s *Spec) { s.Units[1].Number = 2 },
		"unit without version":    func(s *Spec) { s.Units[0].Version = 0 },
		"source is not a digest":  func(s *Spec) { s.Units[0].Source = "ab" },
		"compute of unknown unit": func(s *Spec) { s.Compute[0].Unit = 7 },
		"compute name twice":      func(s *Spec) { s.Compute = append(s.Compute, s.Compute[0]) },
		"memory name twice":       func(s *Spec) { s.Memories = append(s.Memories, s.Memories[0]) },
		"connection to nothing":   func(s *Spec) { s.Connections[0].Memory = "hbm" },
		"clock above its screen":  func(s *Spec) { s.Clocks[0].Granted = 300000 },
		"kernel of unknown unit":  func(s *Spec) { s.Kernels[0].Unit = 7 },
		"vector of unknown unit":  func(s *Spec) { s.SelfTest[0].Units = []int{7} },
		"vector asks for much":    func(s *Spec) { s.SelfTest[0].Scratch = MaxVectorMemory + 1 },
		"no platform":             func(s *Spec) { s.Platform = "" },
		"long platform":           func(s *Spec) { s.Platform = string(make([]byte, 65)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := sample()
			change(s)
			_, err := Build(s)
			require.ErrorIs(t, err, ErrContent)
		})
	}
	s := sample()
	s.Units[0].Name = string(bytes.Repeat([]byte("x"), MaxJSON))
	_, err := Build(s)
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestSignature(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, 32))
	pub := func(k ed25519.PrivateKey) []ed25519.PublicKey {
		return []ed25519.PublicKey{k.Public().(ed25519.PublicKey)}
	}
	plain, err := Parse(built(t, sample()))
	require.NoError(t, err)
	require.ErrorIs(t, plain.Verify(pub(key)), ErrUnsigned)

	b, err := plain.Sign(key)
	require.NoError(t, err)
	signed, err := Parse(b)
	require.NoError(t, err)
	assert.Equal(t, plain.ID, signed.ID)
	require.NoError(t, signed.Verify(append(pub(other), pub(key)...)))
	require.ErrorIs(t, signed.Verify(pub(other)), ErrUnsigned)

	again, err := signed.Sign(other)
	require.NoError(t, err)
	resigned, err := Parse(again)
	require.NoError(t, err)
	require.NoError(t, resigned.Verify(pub(other)))

	// A changed USER section, its digests made to fit, no longer verifies.
	user := signed.Sections[10]
	b[user.Offset]++
	forged, err := Parse(reseal(b))
	require.NoError(t, err)
	require.ErrorIs(t, forged.Verify(pub(key)), ErrCorrupt)

	_, err = plain.Sign(nil)
	require.Error(t, err)
}

func FuzzParse(f *testing.F) {
	b := built(f, sample())
	f.Add(b)
	m, err := Parse(b)
	require.NoError(f, err)
	signed, err := m.Sign(ed25519.NewKeyFromSeed(make([]byte, 32)))
	require.NoError(f, err)
	f.Add(signed)
	f.Add(b[:headerSize])
	f.Add(built(f, withModules()))
	f.Add(built(f, withParameters()))
	f.Fuzz(func(t *testing.T, b []byte) {
		// A fuzzer cannot find digests, so the bytes are tried as they are and with digests that fit.
		for range 2 {
			m, err := Parse(b)
			if err == nil && m.Signature == nil && !hasUnknown(m) {
				again, err := Build(&m.Spec)
				require.NoError(t, err)
				if len(again) == len(b) && m.Bytes()[offMinor] == again[offMinor] && m.Bytes()[offMinor+1] == 0 {
					require.Equal(t, b, again)
				}
			}
			if len(b) < headerSize {
				return
			}
			b = reseal(bytes.Clone(b))
		}
	})
}

func hasUnknown(m *Image) bool {
	for _, s := range m.Sections {
		if s.Kind.tableName() == "" {
			return true
		}
	}
	return false
}
