package extents

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/partition"
)

func TestTranslate(t *testing.T) {
	disk := Disk{Block: 512}
	part := Disk{Block: 4096, Partition: 1 << 20}
	for name, c := range map[string]struct {
		raw  []rawExtent
		size int64
		disk Disk
		want []partition.Extent
	}{
		"empty file": {nil, 0, disk, nil},
		"one extent": {[]rawExtent{{0, 8192, 4096, flagLast}}, 4000, disk,
			[]partition.Extent{{Offset: 0, Device: 8192, Len: 4096}}},
		"a partition's": {[]rawExtent{{0, 8192, 4096, flagLast}}, 4000, part,
			[]partition.Extent{{Offset: 0, Device: 1<<20 + 8192, Len: 4096}}},
		"two, apart": {[]rawExtent{{0, 8192, 1024, 0}, {1024, 512, 512, flagLast}}, 1100, disk,
			[]partition.Extent{{Offset: 0, Device: 8192, Len: 1024}, {Offset: 1024, Device: 512, Len: 512}}},
		"two that follow": {[]rawExtent{{0, 8192, 1024, flagMerged}, {1024, 9216, 512, 0}}, 1536, disk,
			[]partition.Extent{{Offset: 0, Device: 8192, Len: 1536}}},
		"shared": {[]rawExtent{{0, 8192, 1024, flagShared | flagLast}}, 1024, disk,
			[]partition.Extent{{Offset: 0, Device: 8192, Len: 1024}}},
		"more behind the end": {[]rawExtent{{0, 8192, 1024, 0}, {1024, 99, 1 << 30, flagUnwritten | flagLast}}, 1024,
			disk, []partition.Extent{{Offset: 0, Device: 8192, Len: 1024}}},
	} {
		got, err := translate(c.raw, c.size, c.disk)
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
}

func TestTranslateRefuses(t *testing.T) {
	disk := Disk{Block: 512}
	for _, r := range refusals {
		_, err := translate([]rawExtent{{0, 8192, 512, 0}, {512, 16384, 512, r.flag | flagLast}}, 1024, disk)
		var e *ExtentError
		require.ErrorAs(t, err, &e, r.why)
		assert.Equal(t, ExtentError{512, r.why}, *e)
		require.ErrorIs(t, err, ErrExtent)
	}
	for name, c := range map[string]struct {
		raw  []rawExtent
		size int64
		disk Disk
		want error
	}{
		"a hole first":         {[]rawExtent{{512, 8192, 512, flagLast}}, 1024, disk, ErrHole},
		"a hole between":       {[]rawExtent{{0, 8192, 512, 0}, {1024, 16384, 512, flagLast}}, 1536, disk, ErrHole},
		"a hole last":          {[]rawExtent{{0, 8192, 512, flagLast}}, 1024, disk, ErrHole},
		"nothing but hole":     {nil, 1, disk, ErrHole},
		"overlap":              {[]rawExtent{{0, 8192, 1024, 0}, {512, 16384, 512, flagLast}}, 1100, disk, ErrExtent},
		"no length":            {[]rawExtent{{0, 8192, 0, 0}}, 10, disk, ErrExtent},
		"a new flag":           {[]rawExtent{{0, 8192, 512, 0x8000}}, 10, disk, ErrExtent},
		"place not aligned":    {[]rawExtent{{0, 8193, 512, 0}}, 10, disk, ErrExtent},
		"length not aligned":   {[]rawExtent{{0, 8192, 513, 0}}, 10, disk, ErrExtent},
		"1 KiB blocks on 4096": {[]rawExtent{{0, 1024, 4096, 0}}, 10, Disk{Block: 4096}, ErrExtent},
		"partition askew": {[]rawExtent{{0, 4096, 4096, 0}}, 10, Disk{Block: 4096, Partition: 512 * 63},
			ErrExtent},
		"far beyond": {[]rawExtent{{0, math.MaxUint64 - 511, 512, 0}}, 10, disk, ErrExtent},
		"too long":   {[]rawExtent{{0, 512, math.MaxUint64 &^ 511, 0}}, 10, disk, ErrExtent},
	} {
		_, err := translate(c.raw, c.size, c.disk)
		assert.ErrorIs(t, err, c.want, name)
	}
}

// FuzzTranslate holds what every user of a map relies on: extents cover the file in order, in whole blocks of the disk.
func FuzzTranslate(f *testing.F) {
	f.Add(uint64(0), uint64(8192), uint64(4096), uint32(1), uint64(4096), uint64(512), uint64(512), uint32(0),
		int64(4097), int64(1<<20))
	f.Add(uint64(0), uint64(1)<<63, uint64(512), uint32(0), uint64(512), uint64(0), uint64(1)<<62, uint32(0),
		int64(600), int64(0))
	f.Fuzz(func(t *testing.T, l0, p0, n0 uint64, f0 uint32, l1, p1, n1 uint64, f1 uint32, size, start int64) {
		if size < 0 || start < 0 || start > 1<<60 {
			return
		}
		got, err := translate([]rawExtent{{l0, p0, n0, f0}, {l1, p1, n1, f1}}, size, Disk{Block: 512, Partition: start})
		if err != nil {
			return
		}
		at := int64(0)
		for _, e := range got {
			if e.Offset != at || e.Len <= 0 || e.Device < start || e.Device%512 != 0 || e.Len%512 != 0 {
				t.Fatalf("%+v at %d", e, at)
			}
			at += e.Len
		}
		if at < size {
			t.Fatalf("%d of %d bytes", at, size)
		}
	})
}

// sysfs writes a tree with one link in dev/block, 259:1, to target.
func sysfs(t *testing.T, target string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content+"\n"), 0o644))
	}
	if target != "" {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "dev/block"), 0o755))
		require.NoError(t, os.Symlink("../../"+target, filepath.Join(dir, "dev/block/259:1")))
	}
	return dir
}

func TestFindDisk(t *testing.T) {
	for name, c := range map[string]struct {
		target string
		files  map[string]string
		loop   bool
		want   Disk
	}{
		"a whole disk": {"devices/vda",
			map[string]string{"devices/vda/queue/logical_block_size": "512", "devices/vda/slaves/../x": ""},
			false, Disk{Name: "vda", Block: 512}},
		"a partition": {"devices/sda/sda1",
			map[string]string{"devices/sda/queue/logical_block_size": "4096", "devices/sda/sda1/partition": "1",
				"devices/sda/sda1/start": "2048"}, false, Disk{Name: "sda", Block: 4096, Partition: 1 << 20}},
		"a namespace": {"devices/nvme/nvme3/nvme3n5",
			map[string]string{"devices/nvme/nvme3/nvme3n5/queue/logical_block_size": "512",
				"devices/nvme/nvme3/nvme3n5/nsid": "1"}, false, Disk{Name: "nvme3n5", Block: 512, NSID: 1,
				Control: "nvme3"}},
		"a shared namespace's partition": {"devices/nvme-subsys0/nvme0n1/nvme0n1p2", map[string]string{
			"devices/nvme-subsys0/nvme0n1/queue/logical_block_size": "512", "devices/nvme-subsys0/nvme0n1/nsid": "7",
			"devices/nvme-subsys0/nvme0n1/nvme0n1p2/partition": "2",
			"devices/nvme-subsys0/nvme0n1/nvme0n1p2/start":     "34",
			"class/nvme-subsystem/nvme-subsys0/nvme4/x":        ""}, false, Disk{Name: "nvme0n1", Block: 512,
			Partition: 34 * 512, NSID: 7, Control: "nvme4"}},
		"of two controllers": {"devices/nvme-subsys0/nvme0n1", map[string]string{
			"devices/nvme-subsys0/nvme0n1/queue/logical_block_size": "512", "devices/nvme-subsys0/nvme0n1/nsid": "7",
			"class/nvme-subsystem/nvme-subsys0/nvme4/x": "", "class/nvme-subsystem/nvme-subsys0/nvme5/x": ""},
			false, Disk{Name: "nvme0n1", Block: 512, NSID: 7}},
		"a loop device, asked for": {"devices/loop0/loop0p1",
			map[string]string{"devices/loop0/queue/logical_block_size": "512",
				"devices/loop0/loop/backing_file": "/images/a b", "devices/loop0/loop/offset": "512",
				"devices/loop0/loop0p1/partition": "1",
				"devices/loop0/loop0p1/start":     "1"}, true, Disk{Name: "/images/a b", Block: 512, Partition: 1024,
				Loop: true}},
	} {
		got, err := findDisk(Options{Sysfs: sysfs(t, c.target, c.files), Loop: c.loop}, 259, 1)
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
}

func TestFindDiskRefuses(t *testing.T) {
	block := map[string]string{"queue/logical_block_size": "512"}
	for name, c := range map[string]struct {
		dev   string
		files map[string]string
		want  string
	}{
		"device mapper":   {"dm-0", map[string]string{"dm/name": "vg-lv"}, "dm-0 is a device mapper's"},
		"RAID":            {"md127", map[string]string{"md/level": "raid1"}, "md127 is a RAID array"},
		"network":         {"nbd0", nil, "no drive of its own"},
		"something newer": {"new0", map[string]string{"slaves/sda/x": ""}, "new0 stands on sda"},
		"loop, not wanted": {"loop7", map[string]string{"loop/backing_file": "/images/a"},
			"loop7 is a loop device over /images/a"},
	} {
		files := map[string]string{}
		for _, m := range []map[string]string{block, c.files} {
			for k, v := range m {
				files["devices/"+c.dev+"/"+k] = v
			}
		}
		_, err := findDisk(Options{Sysfs: sysfs(t, "devices/"+c.dev, files)}, 259, 1)
		require.ErrorIs(t, err, ErrStacked, name)
		assert.ErrorContains(t, err, c.want, name)
	}
	_, err := findDisk(Options{Sysfs: t.TempDir()}, 0, 45)
	require.ErrorIs(t, err, ErrStacked, "no block device")
	_, err = findDisk(Options{Sysfs: t.TempDir()}, 259, 1)
	require.ErrorIs(t, err, ErrStacked, "not in sysfs")
	for name, files := range map[string]map[string]string{
		"no block size":   {"devices/a/x": ""},
		"block size 0":    {"devices/a/queue/logical_block_size": "0"},
		"block size 1000": {"devices/a/queue/logical_block_size": "1000"},
		"start missing":   {"devices/a/queue/logical_block_size": "512", "devices/a/partition": "1"},
		"start negative": {"devices/a/queue/logical_block_size": "512", "devices/a/partition": "1",
			"devices/a/start": "-1"},
		"loop without a file":  {"devices/a/queue/logical_block_size": "512", "devices/a/loop/x": ""},
		"loop without a place": {"devices/a/queue/logical_block_size": "512", "devices/a/loop/backing_file": "/a"},
	} {
		_, err := findDisk(Options{Sysfs: sysfs(t, "devices/a", files), Loop: true}, 259, 1)
		require.Error(t, err, name)
	}
}
