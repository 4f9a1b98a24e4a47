package sdk

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseURI(t *testing.T) {
	for _, c := range []struct {
		in   string
		want URI
	}{
		{"mem:", URI{Scheme: "mem"}},
		{"mem:a", URI{Scheme: "mem", Name: "a"}},
		{"mem:a?size=1GiB", URI{Scheme: "mem", Name: "a", Size: 1 << 30}},
		{"file:rel/x.flash", URI{Scheme: "file", Name: "rel/x.flash"}},
		{"file:/a b/c?lba=4096&slm=64MiB&threads=2&commands=standard",
			URI{Scheme: "file", Name: "/a b/c", LBA: 4096, SLM: 64 << 20, Threads: 2, Commands: Standard}},
		{"file:/100%25", URI{Scheme: "file", Name: "/100%"}},
		{"file:/a%3Fb", URI{Scheme: "file", Name: "/a?b"}},
		{"nvme:/dev/nvme0", URI{Scheme: "nvme", Name: "/dev/nvme0"}},
		{"tcp://10.0.0.1:4420/nqn.2014-08.org.nvmexpress:uuid:x",
			URI{Scheme: "tcp", Host: "10.0.0.1:4420", Name: "nqn.2014-08.org.nvmexpress:uuid:x"}},
		{"tcp://[::1]:4420/n?commands=vendor", URI{Scheme: "tcp", Host: "[::1]:4420", Name: "n", Commands: Vendor}},
		{"tcp://h:1/n?hostnqn=nqn.2024-01.io.x:h&digests=both&keyfile=/a%26b&ctrlkeyfile=c", URI{
			Scheme: "tcp", Host: "h:1", Name: "n", HostNQN: "nqn.2024-01.io.x:h", Digests: DigestsBoth,
			KeyFile: "/a&b", ControllerKeyFile: "c",
		}},
		{"mem:?size=1.5GB", URI{Scheme: "mem", Size: 15e8}},
		{"mem:?size=512B", URI{Scheme: "mem", Size: 512}},
		{"mem:?size=0", URI{Scheme: "mem", Diskless: true}},
		{"file:state?size=0&slm=64MiB", URI{Scheme: "file", Name: "state", Diskless: true, SLM: 64 << 20}},
		{"mem:?regions=7&region=6", URI{Scheme: "mem", Regions: 7, Region: 6}},
		{"file:x?regions=1&region=0", URI{Scheme: "file", Name: "x", Regions: 1}},
		{"nvme:/dev/nvme0?region=2", URI{Scheme: "nvme", Name: "/dev/nvme0", Region: 2}},
		{"mem:?size=7KiB", URI{Scheme: "mem", Size: 7 << 10}},
	} {
		u, err := ParseURI(c.in)
		require.NoError(t, err, c.in)
		assert.Equal(t, c.in, u.String())
		c.want.text = c.in
		assert.Equal(t, c.want, u, c.in)
	}
}

func TestParseURIRefuses(t *testing.T) {
	for _, in := range []string{
		"", "x", "/dev/nvme0", "ftp:x", "file:", "file:?size=1B", "nvme:", "mem:a#b", "mem:%zz", "mem:%00",
		"tcp://host/nqn", "tcp://host:1", "tcp://host:1/", "tcp:host:1/n", "tcp://u@host:1/n",
		"mem:?", "mem:?size", "mem:?size=", "mem:?size=512", "mem:?size=-1B", "mem:?size=1XB",
		"mem:?size=1.5B", "mem:?size=+1B", "mem:?size=1 2B",
		"mem:?hostnqn=nqn.2024-01.io.x:h", "mem:?digests=both", "tcp://h:1/n?hostnqn=x", "tcp://h:1/n?digests=some",
		"mem:?keyfile=x", "tcp://h:1/n?keyfile=", "tcp://h:1/n?ctrlkeyfile=%00",
		"mem:?size=9223372036854775807KiB", "mem:?size=1B&size=1B", "mem:?lba=1024", "mem:?lba=0512", "mem:?threads=0",
		"mem:?threads=257", "mem:?threads=x", "mem:?commands=both", "mem:?commands=", "mem:?color=red", "mem:?size=1GiB&",
		"mem:?&size=1GiB", "mem:?size=0&lba=512", "mem:?lba=4096&size=0", "mem:?size=00", "mem:?size=0&size=0",
		"mem:?regions=0", "mem:?regions=8", "mem:?regions=x", "mem:?region=7", "mem:?region=-1", "mem:?region=",
		"tcp://h:1/n?regions=2", "nvme:/dev/nvme0?regions=2",
		"tcp://h:1/n?size=0", "nvme:/dev/nvme0?size=0",
	} {
		_, err := ParseURI(in)
		require.ErrorIs(t, err, ErrURI, "%q", in)
	}
}

func TestSizesWantAUnit(t *testing.T) {
	u, err := ParseURI("mem:?size=9223372036854775807B&slm=8388607TiB")
	require.NoError(t, err)
	assert.Equal(t, int64(math.MaxInt64), u.Size)
	assert.Equal(t, int64(8388607)<<40, u.SLM)
	_, err = ParseURI("mem:?size=500")
	require.ErrorIs(t, err, ErrURI)
	assert.ErrorContains(t, err, `size=500: `)
	assert.ErrorContains(t, err, `"500" lacks a unit: write 500GiB or 500GB, or 500B if it is bytes`)
	_, err = ParseURI("mem:?size=9223372036854775808B")
	require.Error(t, err)
	_, err = ParseURI("mem:?slm=8388608TiB")
	require.Error(t, err)
}

func FuzzParseURI(f *testing.F) {
	for _, s := range []string{
		"mem:a?size=1GiB&lba=512&slm=1GiB&threads=1&commands=vendor", "file:/x", "tcp://h:1/n", "nvme:/dev/nvme0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseURI(s)
		if err != nil {
			require.ErrorIs(t, err, ErrURI)
			return
		}
		require.GreaterOrEqual(t, u.Size, int64(0))
		require.GreaterOrEqual(t, u.SLM, int64(0))
		require.Contains(t, []string{"mem", "file", "tcp", "nvme"}, u.Scheme)
	})
}
