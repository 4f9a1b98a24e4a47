// Package steering decides what the control plane does for a running job: how many drives and workers may make its
// splits at once, which share of a rank's splits the rank's own CPUs make, and which worker's P is measured next. The
// package is pure: it has no clock (times are arguments), no lock, no goroutines and no network.
//
// # Overview
//
// A [Job] remembers what the launchers of a job reported and what was decided. Its owner, the leader of the control
// plane, tells it of events, and describes the job by a [View] about once a second:
//
//	Attached, Called, Delivered     a rank attached, its launcher called, mini-batches were acknowledged
//	Step, ReviewShares              a View comes in, and a Decision goes out, which the owner carries out
//	Measured, NotMeasured           the end of the measurement that Decision.Measure asked for
//	Allocate                        with how many drives and workers a job begins
//
// The files, in the order in which to read them:
//
//	view.go         View, Supply, Worker   what the owner sees at one moment
//	job.go          Job                    what is remembered, and the events
//	step.go         Decision               one review, in the order of its parts
//	allocate.go     Allocate               how many drives sustain T, and what remains for workers of any reach
//	share.go        Share                  FastFlow's ratio of each rank, and its tuner
//	throughput.go                          the rates of a rank's own CPUs and of all other workers
//	measure.go                             which worker's P is measured next
//	profilekeys.go  ProfileKeys            under which keys a launcher keeps its profile
//	report.go       CheckReport            a launcher's report, and what the status of a rank says of it
//
// # A review
//
// Step reviews in this order: whether the job needs workers of any reach; T, once all ranks have measured theirs; the
// number of drives and workers (package autoscale); the shares of the ranks; the next measurement. A job that waits is
// reviewed for the first only: a worker without data may make the splits for which it waits. The parts see each other's
// results: a T that was learned counts for the autoscaler of the same Step, and the workers that are allowed now count
// for the shares. The autoscaler passes over the reports of ranks that have detached.
//
// # What holds
//
// A share is from 0 to 1, or -1 for a rank without CPUs of its own among the workers. A rank that is detached keeps its
// share: the next session of its run goes on with it. One worker is measured at a time, and only if its P is not known;
// no CPU of a rank is measured while the rank's launcher measures its trainer. Equal views lead to no further share. At
// most Spec.MaxDrives drives and workers work at once.
//
// # Concurrency
//
// A Job has one owner. An owner that shares the Job among goroutines guards it by a lock. Views point to the statuses
// of nodes: they are valid while the owner holds its lock, and are not changed here.
//
// # Errors
//
// Allocate returns an error of package allocation if no drive and no worker can make the job's rows. Step returns no
// error: Decision.Err says why T, which was just learned, allocates no drives.
//
// # Debugging
//
// The scripts in testdata show a job's decisions view by view. Every decision says why in words.
package steering
