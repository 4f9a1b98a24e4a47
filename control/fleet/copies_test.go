package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

func TestCountCopies(t *testing.T) {
	f := New(Options{})
	p0, p1, p2 := part(t, "p0", 10), part(t, "p1", 10), part(t, "p2", 10)
	beat(t, f, after(0), agent(t, "a", p0, p1))
	beat(t, f, after(0), agent(t, "b", p0, part(t, "p2", 11)))
	w := workerAgent("w") // reads p2 from a store, and holds no copy
	w.Partitions, w.Schemas = []*apiv1.Partition{p2}, agent(t, "a", p2).Schemas
	w.Sources = []*apiv1.PartitionSource{{Partition: "p2", Url: "s3://bucket/p2", Identity: "etag 1"}}
	beat(t, f, after(0), w)
	wanted := func(p *apiv1.Partition, copies uint32) *apiv1.PartitionCopies {
		return &apiv1.PartitionCopies{Partition: p.Name, Copies: copies, Rows: p.Rows, Bytes: p.Bytes}
	}
	for name, c := range map[string]struct {
		wanted []*apiv1.PartitionCopies
		want   CopyCount
	}{
		"nothing is wanted":       {nil, CopyCount{}},
		"as many as wanted":       {[]*apiv1.PartitionCopies{wanted(p0, 2), wanted(p1, 1)}, CopyCount{}},
		"more than wanted":        {[]*apiv1.PartitionCopies{wanted(p0, 1)}, CopyCount{}},
		"one lacks":               {[]*apiv1.PartitionCopies{wanted(p0, 3), wanted(p1, 2)}, CopyCount{Short: 2}},
		"another file's copy":     {[]*apiv1.PartitionCopies{wanted(p2, 1)}, CopyCount{Short: 1, Lost: 1}},
		"of a name nobody holds":  {[]*apiv1.PartitionCopies{wanted(part(t, "p9", 1), 1)}, CopyCount{Short: 1, Lost: 1}},
		"some short, others lost": {[]*apiv1.PartitionCopies{wanted(p1, 2), wanted(p2, 2)}, CopyCount{Short: 2, Lost: 1}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, f.CountCopies(c.wanted)) })
	}
	f.Tick(after(5.5)) // all nodes are dead
	assert.Equal(t, CopyCount{Short: 1, Lost: 1}, f.CountCopies([]*apiv1.PartitionCopies{wanted(p0, 1)}))
}
