package pdu

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp/tracetest"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

func TestDigestIsCRC32C(t *testing.T) {
	// RFC 3720, appendix B.4.
	ones := make([]byte, 32)
	for i := range ones {
		ones[i] = 0xff
	}
	assert.Equal(t, uint32(0x8a9136aa), Digest(make([]byte, 32)))
	assert.Equal(t, uint32(0x62a8ab43), Digest(ones))
	assert.Equal(t, uint32(0x62a8ab43), UpdateDigest(UpdateDigest(0, ones[:7]), ones[7:]))
	var b [4]byte
	PutDigest(b[:], 0x8a9136aa)
	assert.Equal(t, []byte{0xaa, 0x36, 0x91, 0x8a}, b[:])
	assert.Equal(t, uint32(0x8a9136aa), DigestOf(b[:]))
}

// The bytes are those of a Linux 6.1 host with both digests.
func TestGoldenConnectionRequest(t *testing.T) {
	var b [ICSize]byte
	q := ICReq{HeaderDigest: true, DataDigest: true}
	assert.Equal(t, unhex(t, "00008000 80000000 0000 00 03 00000000"+strings.Repeat("00", 112)), q.Put(&b))
	var r Rules
	f, err := r.Parse((*[8]byte)(b[:8]))
	require.NoError(t, err)
	assert.Equal(t, ICSize, f.Prefix())
	got, err := ParseICReq(&b)
	require.NoError(t, err)
	assert.Equal(t, q, got)
}

func TestGoldenConnectionResponse(t *testing.T) {
	var b [ICSize]byte
	p := ICResp{DataDigest: true, MaxH2CData: 0x100000}
	assert.Equal(t, unhex(t, "01008000 80000000 0000 00 02 00001000"+strings.Repeat("00", 112)), p.Put(&b))
	got, err := ParseICResp(&b, ICReq{DataDigest: true})
	require.NoError(t, err)
	assert.Equal(t, p, got)
}

func TestConnectionParametersRefused(t *testing.T) {
	for name, c := range map[string]struct {
		at     int
		v      byte
		status Fatal
		field  uint32
	}{
		"format":    {8, 1, FatalUnsupported, 8},
		"alignment": {10, 32, FatalHeader, 10},
		"digest":    {11, 4, FatalUnsupported, 11},
	} {
		var b [ICSize]byte
		(&ICReq{}).Put(&b)
		b[c.at] = c.v
		_, err := ParseICReq(&b)
		var e *Error
		require.ErrorAs(t, err, &e, name)
		assert.Equal(t, c.status, e.Status, name)
		assert.Equal(t, c.field, e.Info, name)
	}
	for name, p := range map[string]ICResp{
		"format": {Format: 1, MaxH2CData: 4096}, "alignment": {Alignment: 32, MaxH2CData: 4096},
		"digest not asked for": {HeaderDigest: true,
			MaxH2CData: 4096}, "little data": {MaxH2CData: 4092}, "odd data": {MaxH2CData: 4098},
	} {
		var b [ICSize]byte
		p.Put(&b)
		_, err := ParseICResp(&b, ICReq{})
		assert.Error(t, err, name)
	}
}

// Parse reads every PDU that Layout and Seal write, for every type, digests, alignments and sizes.
func TestLayoutParse(t *testing.T) {
	for typ, k := range kinds {
		for _, digests := range []Rules{{}, {HeaderDigest: true}, {DataDigest: true},
			{HeaderDigest: true, DataDigest: true}} {
			for _, align := range []int{0, 4, 8, 64, 128} {
				for _, n := range []uint32{0, 1, 100, 8192, 1 << 20} {
					if n > 0 && !k.data || n == 0 && (typ == TypeH2CData || typ == TypeC2HData) || !k.digests && n > MaxTermData {
						continue
					}
					r := digests
					r.Align, r.MaxData = align, 1<<20
					f := r.Layout(typ, k.flags, n)
					var b [MaxHeader + DigestSize + 128]byte
					p := f.Seal(b[:])
					require.Len(t, p, f.Prefix())
					got, err := r.Parse((*[8]byte)(p[:8]))
					require.NoError(t, err, "%s %+v %d", typ, r, n)
					require.Equal(t, f, got)
					if f.Flags&FlagHeaderDigest != 0 {
						require.NoError(t, CheckHeader(p[:int(f.Size)+DigestSize]))
					}
				}
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	plain, both := Rules{MaxData: 8192}, Rules{HeaderDigest: true, DataDigest: true, MaxData: 8192}
	for name, c := range map[string]struct {
		rules  Rules
		b      string
		status Fatal
		field  uint32
	}{
		"no type":                       {plain, "08 00 18 00 18000000", FatalHeader, 0},
		"type far off":                  {plain, "ff 00 18 00 18000000", FatalHeader, 0},
		"flag nobody negotiated":        {plain, "04 01 48 00 48000000", FatalHeader, 1},
		"flag of another type":          {plain, "04 04 48 00 48000000", FatalHeader, 1},
		"reserved flag":                 {plain, "04 80 48 00 48000000", FatalHeader, 1},
		"header digest missing":         {both, "04 02 48 00 48000000", FatalHeader, 1},
		"data digest missing":           {both, "04 01 48 4c 50000000", FatalHeader, 1},
		"header size":                   {plain, "04 00 40 00 48000000", FatalHeader, 2},
		"data inside the header":        {plain, "04 00 48 44 50000000", FatalHeader, 3},
		"data not aligned":              {plain, "04 00 48 4a 58000000", FatalHeader, 3},
		"data inside the header digest": {both, "04 03 48 48 58000000", FatalHeader, 3},
		"shorter than its header":       {plain, "04 00 48 00 40000000", FatalHeader, 4},
		"length 0":                      {plain, "04 00 48 00 00000000", FatalHeader, 4},
		"data offset past the end":      {plain, "04 00 48 fc 4c000000", FatalHeader, 4},
		"digest but no data":            {both, "04 03 48 4c 50000000", FatalHeader, 4},
		"response with data":            {plain, "05 00 18 18 1c000000", FatalHeader, 4},
		"data PDU without data":         {plain, "06 04 18 18 18000000", FatalHeader, 4},
		"length of all ones":            {plain, "06 04 18 18 ffffffff", FatalLimit, 0},
		"more data than is taken":       {plain, "04 00 48 48 49200000", FatalLimit, 0},
		"termination with much data":    {plain, "02 00 18 00 99000000", FatalHeader, 4},
		"short connection request":      {plain, "00 00 80 00 7f000000", FatalHeader, 4},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.rules.Parse((*[8]byte)(unhex(t, c.b)))
			var e *Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, c.status, e.Status, e.Error())
			assert.Equal(t, c.field, e.Info, e.Error())
		})
	}
}

func TestTypedHeaders(t *testing.T) {
	r := Rules{HeaderDigest: true, MaxData: 100}
	f := r.Layout(TypeH2CData, FlagLast, 100)
	b := make([]byte, f.Prefix())
	d := Data{CID: 0x1001, Tag: 7, Offset: 200, Length: 100}
	d.Put(b)
	f.Seal(b)
	assert.Equal(t, unhex(t, "06 05 18 1c 80000000 0110 0700 c8000000 64000000 00000000"), b[:24])
	got, err := ParseData(&f, b)
	require.NoError(t, err)
	assert.Equal(t, d, got)
	le.PutUint32(b[16:], 99)
	_, err = ParseData(&f, b)
	assert.Error(t, err, "DATAL that is not the data's length")
	assert.Error(t, CheckHeader(b[:28]), "the header changed under its digest")

	q := R2T{CID: 1, Tag: 2, Offset: 3, Length: 4}
	q.Put(b)
	assert.Equal(t, q, ParseR2T(b))

	cmd := nvme.Read(1, 5, 1, 512)
	c := make([]byte, CapsuleCmdSize)
	PutCommand(c, &cmd)
	assert.Equal(t, cmd, CommandOf(c))
	cpl := nvme.NewCompletion(9, nvme.InvalidField)
	PutCompletion(c, &cpl)
	assert.Equal(t, cpl, CompletionOf(c))
}

func TestTerminate(t *testing.T) {
	e := &Error{Status: FatalHeader, Info: 0x10003, Why: "x"}
	b := Terminate(TypeC2HTermReq, e, unhex(t, "04 00 48 44 50000000"))
	assert.Equal(t, unhex(t, "03 00 18 00 20000000 0100 03000100 00000000000000000000 0400484450000000"), b)
	var r Rules
	f, err := r.Parse((*[8]byte)(b[:8]))
	require.NoError(t, err)
	assert.Equal(t, uint32(8), f.Data)
	got := ParseTerminate(b)
	assert.Equal(t, e.Status, got.Status)
	assert.Equal(t, e.Info, got.Info)
	assert.Len(t, Terminate(TypeC2HTermReq, e, make([]byte, 500)), TermSize+MaxTermData)
}

// For any bytes, Parse returns a frame that a receiver may trust, or an Error.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"0000800080000000", "0400480048000000", "0403484c58000000", "0604181880000000",
		"0200180098000000", "06041818ffffffff"} {
		b, _ := hex.DecodeString(s)
		f.Add(b, true, true, uint8(0), uint32(8192))
		f.Add(b, false, false, uint8(31), uint32(1<<20))
	}
	for _, pdus := range goldenTraces(f) {
		for _, p := range pdus {
			f.Add(p.Bytes[:min(len(p.Bytes), CapsuleCmdSize)], p.Bytes[1]&FlagHeaderDigest != 0, p.Bytes[1]&FlagDataDigest != 0,
				uint8(0), uint32(1<<20))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, header, data bool, align uint8, most uint32) {
		if len(b) < CommonSize {
			return
		}
		r := Rules{HeaderDigest: header, DataDigest: data, Align: 4 * (int(align%32) + 1), MaxData: most}
		fr, err := r.Parse((*[8]byte)(b))
		if err != nil {
			var e *Error
			require.True(t, errors.As(err, &e))
			return
		}
		tail := uint32(0)
		if fr.Digest {
			tail = DigestSize
		}
		require.LessOrEqual(t, fr.Prefix(), 255+4)
		require.GreaterOrEqual(t, fr.Prefix(), int(fr.Size))
		require.Equal(t, fr.Length, uint32(fr.Prefix())+fr.Data+tail)
		require.LessOrEqual(t, fr.Data, max(most, MaxTermData))
	})
}

// Any 128 bytes are a connection request, or an Error.
func FuzzConnectionRequest(f *testing.F) {
	var b [ICSize]byte
	f.Add((&ICReq{HeaderDigest: true, MaxR2T: 3, Alignment: 2}).Put(&b))
	for _, pdus := range goldenTraces(f) {
		f.Add(pdus[0].Bytes)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < ICSize {
			return
		}
		q, err := ParseICReq((*[ICSize]byte)(in))
		if err != nil {
			return
		}
		var out [ICSize]byte
		q.Put(&out)
		require.Equal(t, in[8:16], out[8:16])
	})
}

// goldenTraces are what Linux really sends.
func goldenTraces(t testing.TB) map[string][]tracetest.PDU {
	t.Helper()
	all, err := tracetest.Golden()
	require.NoError(t, err)
	return all
}

// Everything that Linux sends is a PDU by the rules that its connection agreed to.
func TestGoldenPDUs(t *testing.T) {
	for name, pdus := range goldenTraces(t) {
		rules := map[int]Rules{}
		for _, p := range pdus {
			r, ok := rules[p.Conn]
			if !ok {
				q, err := ParseICReq((*[ICSize]byte)(p.Bytes))
				require.NoError(t, err, name)
				rules[p.Conn] = Rules{HeaderDigest: q.HeaderDigest, DataDigest: q.DataDigest, MaxData: 1 << 20}
				continue
			}
			f, err := r.Parse((*[CommonSize]byte)(p.Bytes))
			require.NoError(t, err, "%s: %s", name, p.What)
			if f.Flags&FlagHeaderDigest != 0 {
				n := int(f.Size)
				require.Equal(t, binary.LittleEndian.Uint32(p.Bytes[n:]), Digest(p.Bytes[:n]), "%s: %s", name, p.What)
			}
			if f.Digest {
				data := p.Bytes[f.Prefix() : len(p.Bytes)-DigestSize]
				require.Equal(t, binary.LittleEndian.Uint32(p.Bytes[len(p.Bytes)-DigestSize:]), Digest(data), "%s: %s", name,
					p.What)
			}
		}
	}
}
