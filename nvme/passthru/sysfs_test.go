package passthru

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestControllersComeFromSysfs(t *testing.T) {
	all, err := Controllers(Options{Sysfs: tree(t, merge(computing, old))})
	require.NoError(t, err)
	require.Len(t, all, 3)
	assert.Equal(t, []string{"nvme2", "nvme3", "nvme10"}, []string{all[0].Name, all[1].Name, all[2].Name}, "by number")
	assert.Empty(t, all[0].Namespaces)
	assert.Equal(t, Controller{
		Name: "nvme3", Model: "Millrace CSD", Serial: "0123456789abcdef0123", Firmware: "1.0",
		NQN:       "nqn.2014-08.org.nvmexpress:uuid:1",
		Transport: "tcp", Address: "traddr=10.0.2.2,trsvcid=4420", State: "live", Paths: 1, dev: "237:3",
		Namespaces: []Namespace{
			{ID: 1, Generic: "ng3n5", Block: "nvme3n5", Size: 1 << 20, BlockSize: 512, Most: 1 << 20, dev: "236:0"},
			{ID: 2, Generic: "ng3n6", dev: "236:1"},
			{ID: 3, Generic: "ng3n7", dev: "236:2"},
		},
	}, all[1])
	assert.Equal(t, []Namespace{{ID: 1, Block: "nvme10n1", Most: 127 * 4096, dev: "259:0"}}, all[2].Namespaces,
		"no generic device")
}

func TestSharedNamespacesAreTheSubsystems(t *testing.T) {
	all, err := Controllers(Options{Sysfs: tree(t, shared)})
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, 2, all[0].Paths)
	first := Namespace{ID: 1, Generic: "ng0n1", Block: "nvme0n1", Size: 2 << 20, BlockSize: 4096, Multipath: true,
		dev: "236:0"}
	assert.Equal(t, []Namespace{first, {ID: 7, Generic: "ng0n2", Multipath: true, dev: "236:1"}}, all[0].Namespaces,
		"the third is another controller's")
	assert.Equal(t, []Namespace{first, {ID: 8, Generic: "ng0n3", Block: "nvme0n3", Multipath: true, dev: "236:2"}},
		all[1].Namespaces)
	assert.Equal(t, "connecting", all[1].State)
}

func TestNoControllers(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no driver":            {"class/block/vda/size": "1"},
		"a driver, no devices": {"class/nvme-subsystem/.keep": "", "class/nvme/.keep": ""},
	} {
		all, err := Controllers(Options{Sysfs: tree(t, files)})
		require.NoError(t, err, name)
		assert.Empty(t, all, name)
	}
}

func TestNumbersOfSysfsAreNotTrusted(t *testing.T) {
	files := merge(old)
	const disk = "class/nvme/nvme10/nvme10n1/"
	for name, value := range map[string]string{
		"queue/max_segments": "99999999999999999999999", "queue/max_hw_sectors_kb": "-5", "size": "x",
		"queue/logical_block_size": "",
	} {
		files[disk+name] = value
	}
	all, err := Controllers(Options{Sysfs: tree(t, files)})
	require.NoError(t, err)
	assert.Equal(t, []Namespace{{ID: 1, Block: "nvme10n1", dev: "259:0"}}, all[1].Namespaces)
}
