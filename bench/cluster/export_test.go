package cluster

import "context"

// Allocations returns how many objects the node's process has allocated in memory so far, by its metrics.
func (n *Node) Allocations(ctx context.Context) (int64, error) {
	return n.metric(ctx, "go_memstats_mallocs_total")
}
