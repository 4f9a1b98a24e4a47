package telemetry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// setup is nvme_setup_cmd of Linux 6.1.192.
const setup = `name: nvme_setup_cmd
ID: 1234
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char disk[32];	offset:8;	size:32;	signed:0;
	field:int ctrl_id;	offset:40;	size:4;	signed:1;
	field:int qid;	offset:44;	size:4;	signed:1;
	field:u8 opcode;	offset:48;	size:1;	signed:0;
	field:u8 flags;	offset:49;	size:1;	signed:0;
	field:u8 fctype;	offset:50;	size:1;	signed:0;
	field:u16 cid;	offset:52;	size:2;	signed:0;
	field:u32 nsid;	offset:56;	size:4;	signed:0;
	field:bool metadata;	offset:60;	size:1;	signed:0;
	field:u8 cdw10[24];	offset:61;	size:24;	signed:0;

print fmt: "nvme%d: %sqid=%d, cmdid=%u", REC->ctrl_id, REC->qid
`

func TestFormat(t *testing.T) {
	all, err := parseFormat(setup)
	require.NoError(t, err)
	assert.Len(t, all, 14)
	got, err := selectFields(all, "ctrl_id", "qid", "cid", "opcode")
	require.NoError(t, err)
	assert.Equal(t, []field{{40, 4}, {44, 4}, {52, 2}, {48, 1}}, got)
	for _, name := range []string{"disk", "cdw10", "missing"} {
		_, err := selectFields(all, name)
		assert.Error(t, err, name)
	}
	for _, line := range []string{
		"field:int a;\toffset:-1;\tsize:4;", "field:int a;\toffset:4095;\tsize:4;", "field:int a;\toffset:x;\tsize:4;",
		"field:int a;\toffset:4;",
		"field:;\toffset:4;\tsize:4;", "field:int a;\toffset:99999999999999999999;\tsize:4;",
	} {
		_, err := parseFormat(line)
		assert.Error(t, err, line)
	}
}

func FuzzFormat(f *testing.F) {
	f.Add(setup)
	f.Add("field:u16 cid;\toffset:52;\tsize:2;\tsigned:0;")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseFormat(text)
		if err != nil {
			return
		}
		for name, x := range all {
			if name == "" || x.offset < 0 || x.size < 1 || x.offset+x.size > maxRecord {
				t.Fatalf("%q %+v", name, x)
			}
		}
	})
}

func TestHistograms(t *testing.T) {
	cells := []cell{
		{1, 0x02 | 10<<16, 3, 4000}, {0, 0x02 | 10<<16, 98, 98 * 1500}, {0, 0x02 | 20<<16, 2, 2 << 20},
		{0, 0x06 | 1<<8 | 12<<16, 1, 5000},
	}
	all := assemble(cells)
	require.Len(t, all, 3)
	assert.Equal(t, []bool{true, false, false}, []bool{all[0].Admin, all[1].Admin, all[2].Admin}, "admin first")
	assert.Equal(t, uint8(6), all[0].Opcode)
	h := all[1]
	assert.Equal(t, uint64(100), h.Count)
	assert.Equal(t, time.Duration(98*1500+2<<20)/100, h.Mean())
	assert.Equal(t, 2048*time.Nanosecond, h.Quantile(0.5))
	assert.Equal(t, time.Duration(1<<21), h.Quantile(0.99))
	assert.Equal(t, time.Duration(1<<21), h.Quantile(1))
	assert.Equal(t, uint32(1), all[2].Controller)
	assert.Zero(t, (&Histogram{}).Mean())
	assert.Zero(t, (&Histogram{}).Quantile(0.5))
	assert.Empty(t, assemble(nil))
}

// TestWatchSaysWhyNot holds that a machine which cannot watch says so in a way that callers can go on from.
func TestWatchSaysWhyNot(t *testing.T) {
	w, err := Watch()
	if err != nil {
		require.ErrorIs(t, err, ErrUnavailable)
		t.Log(err)
		return
	}
	_, err = w.Read()
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
}
