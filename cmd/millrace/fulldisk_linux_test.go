package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/shared"
)

// TestADriveOnAFullDiskFromTheCommandLine: a put that fails gives its room back, the drive is listed and read on a disk
// that is full, and on one that cannot be written.
func TestADriveOnAFullDiskFromTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		shared.Missing(t, "no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	used := func() uint64 {
		var st unix.Statfs_t
		require.NoError(t, unix.Statfs(dir, &st))
		return st.Blocks - st.Bfree
	}
	data := generate(t, "--rows", "500") + "/part-00000.parquet"
	flash := filepath.Join(dir, "d.flash")
	uri := "file:" + flash
	must(t, "drive", "create", uri+"?size=64MiB&slm=64MiB")
	must(t, "drive", "put", uri, data)
	large := file(t, "large", strings.Repeat("x", 8<<20))
	before := used()
	code, _, errs := millrace(t, "drive", "put", uri, large)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "the disk under the drive is full: make room there")
	assert.Equal(t, before, used(), "the failed put took nothing")

	fill, err := os.Create(filepath.Join(dir, "fill"))
	require.NoError(t, err)
	for b := make([]byte, 4096); err == nil; {
		_, err = fill.Write(b)
	}
	require.NoError(t, fill.Close())
	reads := func(warns string) {
		for _, args := range [][]string{
			{"drive", "ls", uri}, {"drive", "info", uri}, {"drive", "smart", uri},
			{
				"preprocess", "--pipeline", "rm1", "--drive", uri, "--in", "part-00000.parquet", "--out",
				filepath.Join(t.TempDir(), "out"),
			},
		} {
			code, _, errs := millrace(t, args...)
			assert.Equal(t, 0, code, "%v: %s", args, errs)
			if args[0] == "drive" {
				assert.Contains(t, errs, warns)
			}
		}
	}
	reads("counters cannot be kept")
	code, _, errs = millrace(t, "drive", "put", uri, file(t, "more", strings.Repeat("x", 1<<20)))
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "the disk under the drive is full")

	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	reads("for reading only")
	code, _, errs = millrace(t, "drive", "put", uri, large)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "nothing can be put: the drive is open for reading only")
}

// TestACutDriveFromTheCommandLine checks that every command that shows a drive names the missing bytes, and that
// validate fails.
func TestACutDriveFromTheCommandLine(t *testing.T) {
	data := generate(t, "--rows", "500", "--partitions", "2")
	flash := filepath.Join(t.TempDir(), "d.flash")
	uri := "file:" + flash
	must(t, "drive", "create", uri+"?size=8MiB&slm=64MiB")
	must(t, "drive", "put", uri, data+"/part-00000.parquet", data+"/part-00001.parquet")
	must(t, "drive", "validate", uri)
	require.NoError(t, os.Truncate(flash, 100_000))
	_, out, errs := millrace(t, "drive", "info", uri)
	assert.Contains(t, out, "are missing and read as zeros")
	assert.Contains(t, errs, "bytes of the flash file are missing")
	out = must(t, "drive", "smart", uri)
	assert.Contains(t, out, "reliability is degraded")
	assert.Contains(t, out, "bytes 99840 to 8388608 are missing")
	code, out, _ := millrace(t, "drive", "validate", uri)
	assert.Equal(t, exitFailed, code)
	assert.Regexp(t, `contents +failed`, out)
	assert.Contains(t, out, "part-00001.parquet lacks")
	assert.Contains(t, out, "how many is not known")
	must(t, "drive", "trim", uri)
	assert.Contains(t, must(t, "drive", "info", uri), "are missing",
		"a trim behind the archive hides no damage inside it")
}

// TestPartitionsOnAFullDisk: what does not fit leaves the partitions that were there, and nothing else.
func TestPartitionsOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		shared.Missing(t, "no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	must(t, "dataset", "generate", "--progress", "none", "--rows", "2000", "--partitions", "4", "--out", dir)
	before := content(t, dir)
	large := generate(t, "--rows", "40000")
	fits := file(t, "part-00001.parquet", "")
	must(t, "dataset", "generate", "--progress", "none", "--rows", "100", "--out", filepath.Join(filepath.Dir(fits), "d"))
	require.NoError(t, os.Rename(filepath.Join(filepath.Dir(fits), "d", "part-00000.parquet"), fits))
	tsv := file(t, "rows.tsv", strings.Repeat("1"+strings.Repeat("\t7", 13)+strings.Repeat("\t0000002a", 26)+"\n", 50_000))
	for name, args := range map[string][]string{
		"generate": {"dataset", "generate", "--rows", "40000", "--partitions", "3", "--overwrite"},
		"parquet":  {"dataset", "import", fits, large + "/part-00000.parquet", "--overwrite"},
		"text":     {"dataset", "import", tsv, "--partition-rows", "2000", "--overwrite"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := millrace(t, append(args, "--progress", "none", "--out", dir)...)
			assert.Equal(t, exitFailed, code)
			errorLine(t, errs, "no space left on device")
			assert.Equal(t, before, content(t, dir))
		})
	}
}
