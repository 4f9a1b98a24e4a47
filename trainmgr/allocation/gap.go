package allocation

import "math"

// Gap is the throughput that the holders of the data cannot sustain, and the number of workers of any reach that
// make up for it.
type Gap struct {
	Workers       int     // Workers are those of any reach, beside the holders.
	RowsPerSecond float64 // throughput of the rows that the holders cannot make in time, at the trainer's speed
	Rows          int64   // rows in an epoch that the holders cannot make in time
}

// FillGap decides how many workers of any reach a job needs beside its holders. In the time that the trainer needs
// for all rows at T, each holder makes at most the rows that it holds and at most what its P allows; at most limit
// holders run at once unless limit is 0. Workers of any reach, each of throughput perWorker, make the rest. rows
// counts the rows of the data, including rows that no holder can make. If T is 0, workers are needed only for rows
// that no holder can make. If perWorker is 0, the throughput is not known yet, and one worker counts as enough for
// any rest.
func FillGap(rowsPerSecond float64, holders []Worker, limit int, rows int64, perWorker float64) Gap {
	made := heldRows(holders)
	seconds := 0.0
	if rowsPerSecond > 0 {
		seconds = float64(rows) / rowsPerSecond
		made = 0
		for _, h := range holders {
			if h.RowsPerSecond > 0 {
				made += min(float64(h.Rows), h.RowsPerSecond*seconds)
			}
		}
		if limit > 0 && len(holders) > limit {
			made = min(made, slowestSum(holders, limit)*seconds)
		}
	}
	rest := float64(rows) - made
	if rest <= float64(rows)*roundingShare {
		return Gap{}
	}
	g := Gap{Workers: 1, Rows: int64(math.Ceil(rest))}
	if seconds > 0 {
		g.RowsPerSecond = rest / seconds
		g.Workers = max(1, WorkersFor(g.RowsPerSecond, perWorker))
	}
	return g
}

// heldRows counts the rows that holders with a known P hold.
func heldRows(holders []Worker) float64 {
	sum := 0.0
	for _, h := range holders {
		if h.RowsPerSecond > 0 {
			sum += float64(h.Rows)
		}
	}
	return sum
}

// slowestSum adds up the P of the slowest holders, because any holders may run at once.
func slowestSum(holders []Worker, count int) float64 {
	total, err := sumWorkers(holders)
	if err != nil {
		return 0
	}
	sum := 0.0
	for _, rate := range total.ascendingRates[:min(count, len(total.ascendingRates))] {
		sum += rate
	}
	return sum
}
