package cpu

import (
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLinksNoDrives holds which packages of the module a program links that preprocesses on its own CPU: the engine,
// its units and operators, and the way from a partition to a mini-batch. Nothing of NVMe, of drives or of images is
// among them.
func TestLinksNoDrives(t *testing.T) {
	const module = "github.com/millrace/millrace/"
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	var got []string
	for name := range strings.Lines(string(out)) {
		name, ours := strings.CutPrefix(strings.TrimSpace(name), module)
		if ours && !path.IsAbs(name) && !strings.HasPrefix(name, "fpga/unit/") &&
			!strings.HasPrefix(name, "fpga/operator/") {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	assert.Equal(t, []string{
		"fpga/block", "fpga/catalogue", "fpga/engine", "fpga/engine/chain", "fpga/engine/chunk", "fpga/engine/failure",
		"fpga/engine/profile", "fpga/engine/reference", "fpga/engine/tensors", "fpga/operator", "fpga/program",
		"fpga/program/parquetcolumn", "fpga/program/wire",
		"fpga/rowvalue", "internal/crc32c", "internal/filelock", "internal/hugepages", "internal/quantity",
		"internal/scratch", "internal/wholefile", "sdk/cpu", "sdk/dataset", "sdk/partition", "sdk/processor",
		"sdk/selection", "sdk/slicer", "sdk/target", "sdk/targetencoding", "sdk/tensor", "sdk/vocabulary",
		"sdk/vocabulary/occurrence",
	}, got)
}
