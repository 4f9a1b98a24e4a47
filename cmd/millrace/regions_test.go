package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRegionsOfADrive makes a drive of several regions, changes the image of one of them, and preprocesses in each: the
// tensors are the same.
func TestRegionsOfADrive(t *testing.T) {
	data := generate(t, "--rows", "300", "--partitions", "1")
	dir := t.TempDir()
	drive := "file:" + dir + "/d0.flash"
	assert.Contains(t, must(t, "drive", "create", drive+"?size=64MiB", "--regions", "3"), "region 0 of 3")
	must(t, "drive", "put", drive, data+"/part-00000.parquet")
	must(t, "image", "build", "--stock", "presto", "--out", dir+"/presto.mimg")
	assert.Contains(t, must(t, "image", "load", drive, dir+"/presto.mimg", "--activate", "--region", "2"),
		"slot 1, region 2")
	assert.Contains(t, must(t, "drive", "info", drive), "region 2         slot 1, image ")
	var regions []int
	for _, g := range reported(t, drive).Regions {
		regions = append(regions, g.Slot)
	}
	assert.Equal(t, []int{0, 0, 1}, regions)
	v := decode[driveInfo](t, must(t, "drive", "info", drive+"?region=1", "--output", "json"))
	assert.Equal(t, 1, v.Region)
	assert.EqualValues(t, v.Images.Regions[1].SLMBytes, v.SLM.Size)

	var want map[string]string
	for _, region := range []string{"0", "2"} {
		out := dir + "/out" + region
		must(t, "preprocess", "--pipeline", "rm1", "--drive", drive+"?region="+region, "--in", "part-00000.parquet", "--out",
			out)
		if want == nil {
			want = content(t, out)
		}
		require.Equal(t, want, content(t, out), "region %s", region)
	}
	assert.Contains(t, must(t, "image", "rollback", drive, "--region", "2"), "slot 0, region 2")
	assert.Contains(t, must(t, "image", "activate", drive+"?region=1", "1"), "slot 1, region 1")
}

func TestRegionFlagsAtTheirLimits(t *testing.T) {
	drive := "file:" + t.TempDir() + "/d0.flash"
	for _, args := range [][]string{
		{"drive", "create", drive, "--regions", "8"}, {"drive", "create", drive, "--regions", "0"},
		{"drive", "serve", "--flash", "x", "--regions", "8"}, {"drive", "serve", "--flash", "x", "--regions", "-1"},
		{"image", "activate", drive, "0", "--region", "7"}, {"image", "activate", drive, "0", "--region", "-1"},
		{"image", "rollback", drive, "--region", "7"}, {"image", "load", drive, "x", "--region", "7"},
	} {
		code, _, stderr := millrace(t, args...)
		assert.Equal(t, exitUsage, code, strings.Join(args, " "))
		errorLine(t, stderr, "--region")
	}
	must(t, "drive", "create", drive+"?size=1MiB", "--regions", "7")
	must(t, "image", "activate", drive, "0", "--region", "6")
	code, _, stderr := millrace(t, "image", "activate", "mem:?size=1MiB", "0", "--region", "1")
	assert.Equal(t, exitFailed, code)
	errorLine(t, stderr, "no such region")
}

func TestAServedDriveOfRegions(t *testing.T) {
	path := t.TempDir() + "/d0.flash"
	line, stop := startServe(t, "--flash", path, "--size", "1MiB", "--regions", "2", "--threads", "2")
	assert.Contains(t, line, "2 regions, each with 2 engine threads")
	uri := strings.TrimSuffix(strings.Fields(line)[1], ":")
	assert.Contains(t, must(t, "drive", "info", uri+"?region=1"), "region 1 of 2")
	code, _, _ := millrace(t, "drive", "info", uri+"?region=2")
	assert.Equal(t, exitFailed, code)
	stop()
	line, _ = startServe(t, "--flash", path)
	assert.Contains(t, line, "2 regions, each with 1 engine threads", "the drive keeps them")
}

// TestTheShareOfHosts is kept by the drive, changed where it is served, and reported.
func TestTheShareOfHosts(t *testing.T) {
	path := t.TempDir() + "/d0.flash"
	drive := "file:" + path
	assert.Contains(t, must(t, "drive", "create", drive+"?size=1MiB", "--host-io-share", "20"), "at most 20 % of the time")
	assert.Contains(t, must(t, "drive", "info", drive), "at most 20 % of the time")
	line, stop := startServe(t, "--flash", path)
	assert.Contains(t, line, "limited to 20 % of the time")
	uri := strings.TrimSuffix(strings.Fields(line)[1], ":")
	assert.Equal(t, 20, decode[driveInfo](t, must(t, "drive", "info", uri, "--output", "json")).HostIOShare)
	stop()
	line, stop = startServe(t, "--flash", path, "--host-io-share", "100")
	assert.NotContains(t, line, "limited")
	stop()
	assert.Equal(t, 100, decode[driveInfo](t, must(t, "drive", "info", drive, "--output", "json")).HostIOShare)
	assert.NotContains(t, must(t, "drive", "info", drive), "ordinary reads")

	for _, args := range [][]string{
		{"drive", "create", drive, "--host-io-share", "4"}, {"drive", "create", drive, "--host-io-share", "101"},
		{"drive", "create", drive, "--host-io-share", "0"}, {"drive", "serve", "--flash", path, "--host-io-share", "4"},
		{"drive", "serve", "--flash", path, "--host-io-share", "101"},
		{"drive", "serve", "--diskless", "--host-io-share", "20"},
	} {
		code, _, stderr := millrace(t, args...)
		assert.Equal(t, exitUsage, code, strings.Join(args, " "))
		errorLine(t, stderr, "--host-io-share")
	}
}

// TestWeightsOfRegions are kept by the drive, changed where it is served, and reported.
func TestWeightsOfRegions(t *testing.T) {
	path := t.TempDir() + "/d0.flash"
	drive := "file:" + path
	assert.Contains(t, must(t, "drive", "create", drive+"?size=1MiB", "--region-weights", "2,1,1"), "region 0 of 3")
	v := decode[driveInfo](t, must(t, "drive", "info", drive+"?slm=64MiB", "--output", "json"))
	assert.EqualValues(t, 32<<20, v.SLM.Size)
	assert.Equal(t, 2, v.Threads)
	v = decode[driveInfo](t, must(t, "drive", "info", drive+"?slm=64MiB&region=2", "--output", "json"))
	assert.EqualValues(t, 16<<20, v.SLM.Size)
	assert.Equal(t, 1, v.Threads)
	line, stop := startServe(t, "--flash", path)
	assert.Contains(t, line, "3 regions of weights 2, 1, 1, for each of its weight with 1 engine threads")
	stop()
	line, stop = startServe(t, "--flash", path, "--regions", "2", "--region-weights", "1,1")
	assert.Contains(t, line, "2 regions, each with 1 engine threads")
	stop()

	for _, args := range [][]string{
		{"--region-weights", "2"}, {"--region-weights", "1,0"}, {"--region-weights", "17,1"},
		{"--region-weights", "1,1,1,1,1,1,1,1"}, {"--region-weights", "2,1", "--regions", "3"},
	} {
		for _, command := range [][]string{{"drive", "create", drive}, {"drive", "serve", "--flash", path}} {
			code, _, stderr := millrace(t, append(command, args...)...)
			assert.Equal(t, exitUsage, code, strings.Join(args, " "))
			errorLine(t, stderr, "--region-weights")
		}
	}
}
