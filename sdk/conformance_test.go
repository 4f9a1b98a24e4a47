package sdk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target/targettest"
)

// TestConformance holds a drive to the contract of a target, with both command sets, both sizes of blocks, memory that
// is mapped and memory that is not, and with a partition that lies elsewhere.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name      string
		options   FilesOptions
		elsewhere bool
	}{
		{name: "vendor", options: FilesOptions{Commands: Vendor}},
		{name: "standard", options: FilesOptions{Commands: Standard}},
		{name: "blocks of 4096", options: FilesOptions{LBA: 4096}},
		{name: "the partition lies elsewhere", elsewhere: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			targettest.Run(t, func(t *testing.T, data []byte) targettest.Opened {
				path := filepath.Join(t.TempDir(), "rows.bin")
				require.NoError(t, os.WriteFile(path, data, 0o600))
				dev, extents, err := OpenFiles(t.Context(), []string{path}, c.options)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, dev.Close()) })
				slm, err := dev.Compute().Reserve(t.Context(), 1<<20)
				require.NoError(t, err)
				o := targettest.Opened{Target: newDrive(dev, dev.Compute(), slm)}
				if !c.elsewhere {
					o.Options.Extents = []partition.Extent{extents[0]}
				}
				return o
			})
		})
	}
}
