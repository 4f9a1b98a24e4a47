package endtoend

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

// TestTwoLaunchersOnOneSmallDrive: a drive has memory for one job. The first launcher dies between submit and attach,
// and the second one gets the memory. It leaves in the middle, and the first launcher's job, to which a rank attaches
// now, is prepared again; then the second job is gone on with in the same way. Both jobs get what one machine makes.
func TestTwoLaunchersOnOneSmallDrive(t *testing.T) {
	data := files(t, 2500, 2401)
	o := controlOptions(t.TempDir())
	o.SessionTTL = time.Second
	s := startControl(t, o)
	conf := nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data))
	conf.Drives[0].Jobs = 1
	runNode(t, conf)
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	var ids []string
	for _, name := range names(data) {
		st, err := c.Submit(t.Context(), &apiv1.JobSpec{Name: strings.TrimSuffix(name, ".parquet"),
			Pipeline: []byte(document), Plan: plan(), Partitions: []string{name}})
		require.NoError(t, err)
		ids = append(ids, st.Id)
		if len(ids) == 1 {
			awaitJob(t.Context(), t, c, st.Id, "it runs", func(s *apiv1.JobStatus) bool { return s.State == "running" })
		}
	}
	awaitJob(t.Context(), t, c, ids[1], "it waits for room", func(s *apiv1.JobStatus) bool {
		return strings.HasPrefix(s.State, "preparing: for room held by "+ids[0]+": ")
	})
	results := []*result{newResult(), newResult()}
	take := func(job, most int) {
		launcher := dial(t, s.URL())
		j, err := launcher.Attach(t.Context(), ids[job], remote.AttachOptions{Resume: true})
		require.NoError(t, err)
		n := 0
		for mb, err := range j.MiniBatches(t.Context()) {
			require.NoError(t, err)
			if n++; n == most {
				break // it is not acknowledged, and comes again
			}
			results[job].add(t, mb)
		}
		require.NoError(t, j.Close())
	}
	take(1, 5)
	take(0, 0)
	take(1, 0)
	for job, name := range names(data) {
		check(t, onOneMachine(t, map[string][]byte{name: data[name]}, 1), results[job], false)
	}
}
