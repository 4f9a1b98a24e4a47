// Package papers reproduces five papers figure by figure: what each prints, what this project makes of it, and why the
// two differ.
//
// # Overview
//
// A paper is two files. NAME.yaml lists the paper's figures and tables ([Exhibit]) with the values that its prose and
// tables print ([Row]), each with its place; the papers' texts have no heights of bars, and nothing is read off a
// picture. NAME.json in capacity/results/papers is a run ([Result]): values by key, each with its [Kind], and where,
// when and by which command they were made. [Run] makes it. [WritePage] writes docs/reproduction.md of both, with a
// picture for each paper. The page ends with the baselines: the runs of bench/peers that capacity/results keeps.
//
// A row's own value is a text with places for values of the run: {key} or {key|format}, where the format is that of
// package fmt, or si (a number with k, M or G), or pct (a share as percent).
//
// # What holds a page together
//
// [WritePage] fails if a row has a value of the paper beside its own and no cause of the difference, if a row has
// neither a value of its own nor a reason for having none, if a key is unknown, and if a value of the run is on no row.
// Modelled values are computed again by a test and compared with the kept run; relations between values are checked by
// tests within bounds that follow from the run.
//
// # Errors
//
// [ErrOptions] says that an option is out of range. Errors of a run name the paper and the experiment.
//
// # Debugging
//
// `millrace bench papers --paper presto --quick --output json` prints the values of a run with their keys.
package papers
