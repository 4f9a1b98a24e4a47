// Package accumulator makes the statistics of a summary from the values of mini-batches.
//
// # Overview
//
// A [Builder] takes the columns of mini-batches in the order of the data set: [Builder.Add] folds a block of one
// column in, and [Builder.EndPartition] ends a partition. Nothing but the values and their order decides the
// statistics: where a partition is cut into blocks changes no bit.
//
// Each column has the following parts, one set for the partition and one for the partitions before it:
//
//   - integer sums of the values and of their squares. A float32 is a whole number of 2^-149, its square a whole
//     number of 2^-298: significands are summed for each exponent, and the sums are joined as big integers at the end
//     of the partition;
//   - a table of counted values. When it has more than [summary.ExactValues] values, the count of the 1025th most
//     frequent is subtracted from all, and values without a count leave the table, as Misra and Gries have it (J.
//     Misra, D. Gries, Finding repeated elements, 1982; P. Agarwal et al., Mergeable summaries, 2012). What was
//     subtracted is the greatest error of a count;
//   - a HyperLogLog of 2^14 registers (github.com/axiomhq/hyperloglog), dense from its beginning: registers do not
//     depend on the order of values, and the library's sparse form does;
//   - a DDSketch (github.com/DataDog/sketches-go): counts of values by their logarithm, which do not depend on an
//     order.
//
// Partitions are joined in their order. Sums and sketches do not depend on it; the table of counted values does.
//
// # Memory
//
// A column takes about 0.3 MB, whatever the number of rows, and the counts of its quantiles: up to 1 MB if integers,
// and 5 MB if real numbers, spread over their whole range.
//
// # Concurrency
//
// Add may be called for different columns at once. All other calls need a Builder of their own.
package accumulator
