package fabrics

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp/tracetest"
)

func TestConnectRoundTrip(t *testing.T) {
	c := Connect{Format: 1, Queue: 2, Size: 127, Attributes: DisableFlowControl, KeepAlive: 5000}
	e := c.Command()
	assert.Equal(t, c, ParseConnect(&e))
	assert.Equal(t, byte(Opcode), e[0])
	assert.Equal(t, uint8(TypeConnect), Type(&e))
	assert.Equal(t, uint32(1024), e.DataLength())
	assert.Equal(t, uint8(1), e.PSDT())
	assert.Equal(t, []byte{1, 0, 2, 0, 127, 0, 4, 0, 0x88, 0x13, 0, 0}, e[40:52])

	d := ConnectData{HostID: [16]byte{1, 2, 3}, ControllerID: AnyController, SubsystemNQN: "nqn.2024-01.org.example:s",
		HostNQN: "nqn.2024-01.org.example:h"}
	b := d.Marshal()
	require.Len(t, b, ConnectDataSize)
	assert.Equal(t, "nqn.2024-01.org.example:s\x00", string(b[256:282]))
	assert.Equal(t, "nqn.2024-01.org.example:h\x00", string(b[512:538]))
	var got ConnectData
	require.NoError(t, got.Unmarshal(b))
	assert.Equal(t, d, got)
	assert.Error(t, got.Unmarshal(b[:1023]))
	for i := 256; i < 512; i++ {
		b[i] = 'x'
	}
	require.NoError(t, got.Unmarshal(b))
	assert.Empty(t, got.SubsystemNQN, "a name without an end")
}

func TestProperties(t *testing.T) {
	e := PropertyGet(0x1c, 4)
	off, size, _ := ParseProperty(&e)
	assert.Equal(t, uint32(0x1c), off)
	assert.Equal(t, 4, size)
	assert.Equal(t, uint8(TypePropertyGet), Type(&e))
	e = PropertySet(0x14, 8, 0x460061)
	off, size, v := ParseProperty(&e)
	assert.Equal(t, []any{uint32(0x14), 8, uint64(0x460061)}, []any{off, size, v})
	e[40] = 2
	_, size, _ = ParseProperty(&e)
	assert.Zero(t, size, "a size that there is not")
}

func TestNQN(t *testing.T) {
	for _, s := range []string{DiscoveryNQN, "nqn.2014-08.org.nvmexpress:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
		"nqn.2024-01.io.millrace:drive-0"} {
		assert.NoError(t, CheckNQN(s), s)
	}
	for _, s := range []string{
		"", "iqn.2024-01.io.x:y", "nqn.2024-1.io.x:y", "nqn.2024-01io.x", "nqn.2024-01.",
		"nqn.2024-01.:y", "nqn.2024-01.io x", "nqn.2024-01.io.x\n", "nqn.2024-01.\xff\xfe",
		"nqn.2024-01.io." + strings.Repeat("x", 223),
	} {
		assert.Error(t, CheckNQN(s), "%q", s)
	}
}

func TestDescribe(t *testing.T) {
	for name, c := range map[string]struct {
		status nvme.Status
		dw0    uint32
		says   string
	}{
		"a host that is not allowed": {InvalidHost | nvme.StatusDNR, 0, "allow-list"},
		"a parameter in the data":    {InvalidParameters, ParameterSubsystemNQN, "subsystem NQN"},
		"a parameter in the command": {InvalidParameters, ParameterQueueSize, "byte 44 of its command"},
		"a status of NVMe":           {nvme.CommandSequenceError, 0, "sequence"},
	} {
		t.Run(name, func(t *testing.T) { assert.Contains(t, Describe(c.status, c.dw0), c.says) })
	}
}

func TestDiscoveryLog(t *testing.T) {
	l := DiscoveryLog{Generation: 7, Entries: []Entry{
		{CurrentDiscovery, 1, netip.MustParseAddrPort("10.0.2.2:8009"), DiscoveryNQN},
		{NVM, 2, netip.MustParseAddrPort("[::1]:4420"), "nqn.2024-01.io.millrace:d0"},
	}}
	b := l.Marshal()
	require.Len(t, b, 3*1024)
	e := b[1024:]
	assert.Equal(t, []byte{3, 1, 3, 4, 1, 0, 0xff, 0xff, 32, 0}, e[:10])
	assert.Equal(t, "8009"+strings.Repeat(" ", 28), string(e[32:64]))
	assert.Equal(t, "10.0.2.2 ", string(e[512:521]))
	assert.Equal(t, byte(2), b[2048+1], "IPv6")
	var got DiscoveryLog
	require.NoError(t, got.Unmarshal(b))
	assert.Equal(t, l, got)
	require.NoError(t, got.Unmarshal(b[:2048]))
	assert.Len(t, got.Entries, 1, "a page that was read in part")
	assert.Error(t, got.Unmarshal(b[:1023]))
	b[1024] = 1 // RDMA
	require.NoError(t, got.Unmarshal(b))
	assert.Equal(t, l.Entries[1:], got.Entries)
}

func FuzzUnmarshal(f *testing.F) {
	f.Add((&ConnectData{SubsystemNQN: DiscoveryNQN, HostNQN: "nqn.2024-01.io.x:y"}).Marshal())
	f.Add((&DiscoveryLog{Entries: []Entry{{NVM, 0, netip.MustParseAddrPort("127.0.0.1:4420"), DiscoveryNQN}}}).Marshal())
	traces, err := tracetest.Golden()
	require.NoError(f, err)
	for _, pdus := range traces {
		for _, p := range pdus {
			if strings.HasPrefix(p.What, "Connect") {
				f.Add(p.Bytes[p.Offset():][:ConnectDataSize])
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c ConnectData
		if c.Unmarshal(b) == nil && CheckNQN(c.SubsystemNQN) == nil && CheckNQN(c.HostNQN) == nil {
			var again ConnectData
			require.NoError(t, again.Unmarshal(c.Marshal()))
			require.Equal(t, c, again)
		}
		var l DiscoveryLog
		if l.Unmarshal(b) == nil {
			require.LessOrEqual(t, len(l.Entries), len(b)/1024)
		}
	})
}
