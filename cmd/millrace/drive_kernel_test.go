package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/nvme/passthru"
)

func TestDriveListOfTheKernel(t *testing.T) {
	all := []passthru.Controller{
		{Name: "nvme0", Model: "CSD", Serial: "1", Transport: "tcp", State: "live", Paths: 1,
			Namespaces: []passthru.Namespace{
				{ID: 1, Generic: "ng0n1", Block: "nvme0n1", Size: 512}, {ID: 2, Generic: "ng0n2"}}},
		{Name: "nvme1", State: "connecting", Paths: 2},
	}
	for output, wants := range map[string][]string{
		"table": {"nvme:/dev/nvme0", "1 (nvme0n1, 512 bytes), 2 (ng0n2)", "connecting, one of 2 paths"},
		"json":  {`"uri": "nvme:/dev/nvme0"`, `"size_bytes": 512`, `"paths": 2`},
	} {
		var out bytes.Buffer
		c := driveCommands{&console{cli.Console{Streams: cli.Streams{Out: &out}, Output: output}}}
		require.NoError(t, c.printDrives(all))
		for _, want := range wants {
			assert.Contains(t, out.String(), want)
		}
	}
	// Whichever drives this machine has.
	var got []map[string]any
	require.NoError(t, json.Unmarshal([]byte(must(t, "drive", "list", "--output", "json")), &got))
	must(t, "drive", "list")
}

func TestDriveSmart(t *testing.T) {
	flash := "file:" + filepath.Join(t.TempDir(), "d0.flash")
	must(t, "drive", "create", flash+"?size=4MiB&slm=8MiB")
	out := must(t, "drive", "smart", flash)
	assert.Contains(t, out, "critical warnings  none")
	assert.Regexp(t, `read +not available in 0 commands`, out)
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(must(t, "drive", "smart", flash, "--output", "json")), &r))
	assert.Contains(t, r, "temperature_celsius")
	assert.Nil(t, r["written_bytes"])
	code, _, errs := millrace(t, "drive", "smart", "nvme:/dev/nvme99999")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "/dev/nvme99999")
}

func TestDriveValidate(t *testing.T) {
	dir := t.TempDir()
	flash := "file:" + filepath.Join(dir, "d0.flash")
	must(t, "drive", "create", flash+"?size=4MiB")
	out := must(t, "drive", "validate", flash+"?slm=8MiB")
	for _, step := range []string{"link", "identify", "contents", "flash", "memory", "move", "self-test"} {
		assert.Regexp(t, step+` +passed`, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "d0.flash"))
	require.NoError(t, err)
	assert.Equal(t, make([]byte, 4<<20), b, "nothing stays behind")

	var v validation
	code, out, errs := millrace(t, "drive", "validate", "file:"+dir+"/none", "--output", "json")
	assert.Equal(t, exitFailed, code)
	require.NoError(t, json.Unmarshal([]byte(out), &v))
	assert.Len(t, v.Checks, 7)
	assert.Contains(t, errs, "1 of 7 steps failed")

	for _, args := range [][]string{
		{"drive", "validate"}, {"drive", "validate", "what:"}, {"drive", "validate", flash, "--scratch", "x"},
		{"drive", "validate", flash, "--step-timeout", "0s"},
		{"drive", "reset", flash}, {"drive", "reset", "nvme"}, {"drive", "reset"}, {"drive", "list", "x"},
		{"drive", "smart"}, {"drive", "smart", flash, "--cross-check"},
	} {
		code, _, errs := millrace(t, args...)
		assert.Equal(t, exitUsage, code, "%v: %s", args, errs)
	}
	code, out, _ = millrace(t, "drive", "validate", "nvme:/dev/nvme99999")
	assert.Equal(t, exitFailed, code)
	assert.Regexp(t, "self-test +skipped", out, "with or without tracepoints")

	code, _, errs = millrace(t, "drive", "reset", "nvme:/dev/nvme99999")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "reset /dev/nvme99999")
}
