package record

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

func TestPlacements(t *testing.T) {
	assert.Equal(t, []string{"auto", "held", "in-storage", "node-cpu", "node-card", "pool", "trainer"}, Placements())
	for _, p := range Placements() {
		s, _, err := Check(&apiv1.JobSpec{Name: "job", Pipeline: []byte(document), Placement: p}, testKey)
		require.NoError(t, err)
		assert.Equal(t, p, s.Job.Placement)
	}
	_, _, err := Check(&apiv1.JobSpec{Name: "job", Pipeline: []byte(document), Placement: "Pool"}, testKey)
	assert.ErrorContains(t, err, `placement "Pool": want auto, held, in-storage, node-cpu, node-card, pool, trainer`)
}
