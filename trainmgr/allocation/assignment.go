package allocation

// Assignment lists the workers of any reach from which each rank takes mini-batches. Without it every worker could
// serve every rank, and a hundred launchers would each hold connections to a hundred workers. DPP (section III-B)
// caps the connections by "partitioned round robin routing". Assign does the same: rank 0 has the first workers,
// rank 1 the following workers, and so on around the circle of workers.
//
// Each rank has Fan() workers. Two workers differ by at most one rank, no worker is without a rank, and there are
// ranks * Fan() connections in all.
type Assignment struct {
	ranks, workers, fan int
}

// Assign assigns workers to ranks: at least least workers to each rank if there are as many workers, and more if
// some worker would be without a rank otherwise.
func Assign(ranks, workers, least int) Assignment {
	ranks, workers = max(ranks, 1), max(workers, 0)
	every := workers / ranks
	if workers%ranks > 0 {
		every++ // so that no worker is without a rank
	}
	return Assignment{ranks: ranks, workers: workers, fan: min(workers, max(least, every, 1))}
}

// Fan returns how many workers each rank has.
func (a Assignment) Fan() int { return a.fan }

// Worker returns a rank's worker at place i, from 0 to Fan()-1.
func (a Assignment) Worker(rank, i int) int {
	return int((int64(rank)*int64(a.fan) + int64(i)) % int64(a.workers))
}
