// Package offload decides whether a job's preprocessing leaves the trainer's machine, at which cut, and for which
// share of the job's splits (FastFlow, PVLDB 16(5), 2023). It is pure: no clock, no goroutine, no I/O.
//
// # Overview
//
//	d, err := offload.Decide(offload.Extended, metrics)   // d.Offload, d.Cut, d.Ratio, d.Why
//	counters := offload.NewCounters(d.Ratio)
//	for every split {
//		side := counters.Next()                       // Local or Remote
//		... start the split there ...
//		counters.Count(side)
//	}
//	tuner := offload.NewTuner(d.Ratio)
//	for every second or so of the running job {
//		r := tuner.Decide(offload.Inputs{...})        // keep the JSON of r: Replay computes the decisions again
//		counters.SetRatio(r.Decision.Ratio)
//	}
//
// A decision changes which side makes a split, and never a byte of a mini-batch. In the order `deterministic` it
// does not change the sequence either; in the order `fastest` the sequence depends on which side is faster.
//
// # Metrics
//
// [Metrics] are the paper's five, in rows per second and CPU seconds per row: Gthp is the trainer alone on one
// cached mini-batch, Lthp the local pipeline with the trainer, Rthp the remote pipeline with the trainer, Pcycle and
// Ocycle the CPU time that the trainer's machine spends on a row that is preprocessed there, and on a row that
// arrives ready. [Extended] also uses the CPU time of the trainer, the CPUs of the trainer's machine, and the
// throughput of either pipeline without a trainer. The five measurements give these values too.
//
// # Cuts
//
// FastFlow offloads at one of three places in the pipeline. The cuts divide the work as follows:
//
//	None               the trainer's machine reads and preprocesses; drives are only read, if at all
//	Transforms         p'1: the trainer's machine reads and streams column chunks to a worker that has none: a drive
//	                   without flash takes windows by Store. A drive with flash gains nothing: its rows would travel
//	                   to the trainer and back
//	ReadAndTransforms  p'2: a drive reads its flash and transforms; the trainer's machine plans the slices, fetches
//	                   their tensors and gathers them into mini-batches: a drive over NVMe/TCP under a launcher
//	All                p'3: a storage node or a worker also gathers; whole frames arrive over HTTP
//
// # Policies
//
// [Paper] is Algorithm 1 as printed. [Extended] models the trainer's machine, and is the default; see [Decide].
// [FastFlowCode] is the ratio of the program that the paper's authors published, which is not Algorithm 1.
//
// # Errors
//
// [ErrMetrics] says that a metric is not a number, is negative, or contradicts another metric. [ErrReplay] says that
// a log's decisions do not follow from its inputs. [ErrTable] says that the bytes of a table of metrics are damaged
// or of another version.
//
// # Concurrency
//
// Functions may be called from any goroutine. [Counters], [Tuner] and [Table] have one owner each.
//
// # Debugging
//
// Decision.Why names the bound that decided. A tuner's records serve as a test of a changed law: Replay computes
// their decisions again.
package offload
