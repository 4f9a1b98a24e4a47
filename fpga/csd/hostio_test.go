package csd

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

func TestTheShareOfHostsAtItsLimits(t *testing.T) {
	for name, test := range map[string]struct {
		o    Options
		says string // empty: the drive opens
		want int
	}{
		"none":                {Options{}, "", controller.NoHostIOLimit},
		"no limit":            {Options{HostIOShare: 100}, "", controller.NoHostIOLimit},
		"least":               {Options{HostIOShare: 5}, "", 5},
		"too little":          {Options{HostIOShare: 4}, "want 5 to 100", 0},
		"most":                {Options{HostIOShare: 99}, "", 99},
		"too much":            {Options{HostIOShare: 101}, "want 5 to 100", 0},
		"below 0":             {Options{HostIOShare: -1}, "want 5 to 100", 0},
		"without computation": {Options{HostIOShare: 50, Plain: true}, "does not compute", 0},
		"plain, no limit":     {Options{HostIOShare: 100, Plain: true}, "", controller.NoHostIOLimit},
		"without flash":       {Options{HostIOShare: 50, Diskless: true}, "this drive has none", 0},
	} {
		t.Run(name, func(t *testing.T) {
			test.o.SLMBytes = testSLM
			if !test.o.Diskless {
				test.o.Size = 1 << 20
			}
			d, err := Open(test.o)
			if test.says != "" {
				require.ErrorContains(t, err, test.says)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, d.HostIOShare())
			require.NoError(t, d.Close())
		})
	}
}

// counted returns the drive's log page C0h.
func counted(t testing.TB, c nvme.Conn) cs.Log {
	t.Helper()
	page := make([]byte, 16<<10)
	cmd := nvme.GetLog(nvme.LogVendor, nvme.AllNamespaces, 0, uint32(len(page)))
	_, err := c.Admin(t.Context(), &cmd, page)
	require.NoError(t, err)
	var l cs.Log
	require.NoError(t, l.Unmarshal(page))
	return l
}

// TestTheShareOfHostsIsKept in a version that older builds refuse, and only while there is a limit.
func TestTheShareOfHostsIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	opened := func(o Options, version, share int) {
		t.Helper()
		o.Path = path
		session(t, o, func(d *Drive, c nvme.Conn) {
			assert.Equal(t, share, d.HostIOShare())
			assert.EqualValues(t, share%controller.NoHostIOLimit, counted(t, c).HostIOShare, "the log has 0 for no limit")
		})
		assert.Equal(t, version, keptVersion(t, path))
	}
	opened(Options{Create: true, Size: 1 << 20, HostIOShare: 30}, 4, 30)
	opened(Options{}, 4, 30)
	opened(Options{Regions: 3}, 4, 30)
	opened(Options{HostIOShare: 100}, 3, 100)
	opened(Options{}, 3, 100)
	opened(Options{HostIOShare: 40, Regions: 1}, 4, 40)
	opened(Options{HostIOShare: 100}, 2, 100)
}
