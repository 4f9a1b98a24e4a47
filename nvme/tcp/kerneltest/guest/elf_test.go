package guest

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestModulesComeAfterWhatTheyNeed(t *testing.T) {
	guests := Need(t)
	for _, kernel := range Kernels(t) {
		folder := filepath.Join(guests, "kernels", kernel, "modules")
		order, err := moduleOrder(folder, []string{"nvme_tcp", "null_blk nr_devices=0", "?no-such-module"})
		require.NoError(t, err)
		at := func(name string) int {
			return slices.IndexFunc(order, func(m module) bool { return filepath.Base(m.file) == name+".ko" })
		}
		assert.Less(t, at("nvme-core"), at("nvme-fabrics"))
		assert.Less(t, at("nvme-fabrics"), at("nvme-tcp"))
		assert.Equal(t, "nr_devices=0", order[at("null_blk")].parameters)
		_, err = moduleOrder(folder, []string{"no-such-module"})
		assert.ErrorIs(t, err, errNoSuch)
	}
}

func TestProgramsComeWithTheirLibraries(t *testing.T) {
	root := filepath.Join(Need(t), "root")
	p, err := findProgram(root, "nvme")
	require.NoError(t, err)
	for _, want := range []string{"lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu/libc.so.6",
		"lib/x86_64-linux-gnu/libnvme.so.1"} {
		assert.Contains(t, p.needs, want)
	}
	_, err = findProgram(root, "no-such-program")
	assert.ErrorIs(t, err, errNoSuch)
}
