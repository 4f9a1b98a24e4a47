package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/cmd/cli"
)

// TestANodeOffersTheRegionsOfADrive: a node whose configuration lists the regions of a drive in a file serves each as a
// drive. Two jobs run in them at once, and to placement they are one drive.
func TestANodeOffersTheRegionsOfADrive(t *testing.T) {
	data := generate(t, "--rows", "3000", "--partitions", "2")
	drive := "file:" + t.TempDir() + "/d0.flash"
	must(t, "drive", "create", drive+"?size=64MiB", "--regions", "3")
	must(t, "drive", "put", drive, data+"/part-00000.parquet", "--progress", "none")
	at := controlRun(t)
	document := fmt.Sprintf("name: n1\nlisten: ['127.0.0.1:0']\ncontrol: ['%s']\nmeasure: 1ms\ndrives:\n", at)
	for region := range 3 {
		document += fmt.Sprintf("  - {name: r%d, uri: '%s?slm=192MiB&region=%d'}\n", region, drive, region)
	}
	conf := file(t, "node.yaml", document)
	assert.Contains(t, must(t, "config", "check", conf), "1 engine threads, 64MiB of memory for 2 jobs")
	ctx, stop := context.WithCancel(t.Context())
	errs, ended := &bytes.Buffer{}, make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"node", "run", "--config", conf},
			cli.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: errs})
	}()
	defer func() {
		stop()
		assert.Zero(t, <-ended, errs)
	}()
	var shown nodeView
	await := func(is func(nodeView) bool) { awaitJSON(t, is, "nodes", "show", "n1", "--control", at) }
	await(func(v nodeView) bool {
		ready := 0
		for _, d := range v.Drives {
			if d.State == "ready" && len(d.Partitions) == 1 {
				ready++
			}
		}
		shown = v
		return ready == 3
	})
	for region, d := range shown.Drives {
		assert.EqualValues(t, region, d.Region)
		assert.EqualValues(t, 3, d.Regions)
		assert.Equal(t, shown.Drives[0].UUID, d.UUID)
	}
	assert.Contains(t, must(t, "nodes", "show", "n1", "--control", at), "1 of 3")
	assert.Contains(t, must(t, "drive", "info", "n1/r1", "--control", at), "region 1 of 3")
	code, _, says := millrace(t, "drive", "info", drive)
	assert.Equal(t, exitDone, code, "the node that has the drive open is asked: %s", says)

	must(t, "dataset", "place", data+"/part-00001.parquet", "--control", at, "--progress", "none")
	await(func(v nodeView) bool { // a placed file is in every region
		return len(v.Drives) == 3 && len(v.Drives[0].Partitions) == 2 && len(v.Drives[2].Partitions) == 2
	})
	verified := decode[verifyView](t, must(t, "dataset", "verify", "--control", at, "--output", "json"))
	assert.Equal(t, 1, verified.Fewest, "regions are one copy")

	var wg sync.WaitGroup
	for job := range 2 {
		wg.Go(func() {
			code, out, errs := millrace(t, "train", "--control", at, "--trainer-rows-per-second", "1e9", "--measure",
				"10ms", "--pipeline", "rm1", "--batch", fmt.Sprint(100+50*job), "--split-batches", "2", "--name",
				fmt.Sprint("job", job), "--output", "json", "--progress", "none")
			assert.Equal(t, exitDone, code, errs)
			var r struct {
				Rows int `json:"rows"`
			}
			assert.NoError(t, json.Unmarshal([]byte(out), &r))
			assert.Equal(t, 3000, r.Rows)
		})
	}
	wg.Wait()
}
