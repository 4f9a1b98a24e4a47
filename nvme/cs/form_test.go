package cs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfPreprocess holds the data of the vendor command Preprocess.
func TestFormOfPreprocess(t *testing.T) {
	p := Preprocess{
		Ranges: []Range{{Addr: 1 << 40, Len: 4096}, {Addr: 64, Len: 1}},
		Copies: []Copy{{1, 8, 1 << 33, 4096}},
		Args:   []byte("slice"),
	}
	b, err := p.AppendTo(nil)
	require.NoError(t, err)
	goldenfile.Bytes(t, "testdata/preprocess.v1.hex", b)
	var got Preprocess
	require.NoError(t, got.Unmarshal(goldenfile.Read(t, "testdata/preprocess.v1.hex")))
	assert.Equal(t, p, got)
}

// TestFormOfTheLog holds log page C0h: the counters of units and programs.
func TestFormOfTheLog(t *testing.T) {
	l := Log{
		Backend: "functional", Threads: 2, Uptime: 3, Rows: 4, Executions: 5, FlashToDRAM: Movement{6, 7, 8},
		DRAMToHost: Movement{9, 10, 11},
		HostToDRAM: Movement{12, 13, 14}, SLMBytes: 15, SLMReserved: 16,
		Units:    []UnitCounter{{Name: "sigridhash", Version: 17, Rows: 18, Timing: Timing{2, 21, 10, 11}}},
		Programs: []ProgramCounter{{ID: [32]byte{1, 31: 2}, Rows: 22, P: 1.5e6, Timing: Timing{3, 9, 2, 4}}},
	}
	goldenfile.Bytes(t, "testdata/log.v1.hex", l.Marshal())
	var got Log
	require.NoError(t, got.Unmarshal(goldenfile.Read(t, "testdata/log.v1.hex")))
	assert.Equal(t, l, got)

	l.FlashLent, l.HostIOShare = Movement{23, 24, 25}, 26
	goldenfile.Bytes(t, "testdata/log.share.v1.hex", l.Marshal())
	require.NoError(t, got.Unmarshal(goldenfile.Read(t, "testdata/log.share.v1.hex")))
	assert.Equal(t, l, got)
}
