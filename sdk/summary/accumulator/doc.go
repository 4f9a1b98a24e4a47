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
//   - integer sums of the values and of their squares. A float64 is a whole number of 2^-1074, its square a whole
//     number of 2^-2148: significands are summed for each exponent, and the sums are joined as big integers at the end
//     of the partition;
//   - a table of counted values. When it has more than [summary.ExactValues] values, the count of the 1025th most
//     frequent is subtracted from all, and values without a count leave the table, as Misra and Gries have it (J.
//     Misra, D. Gries, Finding repeated elements, 1982; P. Agarwal et al., Mergeable summaries, 2012). What was
//     subtracted is the greatest error of a count;
//   - a HyperLogLog of 2^14 registers (github.com/axiomhq/hyperloglog), dense from its beginning: registers do not
//     depend on the order of values, and the library's sparse form does;
//   - for numbers, from the first pruning of the table on, a sketch of ranks: values in levels, where a full level is
//     sorted and hands every second value to the next one. It includes the values that are pruned from the table. Its
//     error does not depend on the size of the values.
//
// Partitions are joined in their order. Sums and registers do not depend on it; the table of counted values and the
// sketch of ranks do.
//
// # The state of a partition
//
// [Builder.AppendOpen] writes what was seen of the partition that is being read, and [Builder.SetOpen] goes on from it,
// so that a pass survives the end of its process. The state holds for each column, as varints unless said otherwise:
//
//	rows, null rows, values, least and greatest number of values of a row, NaNs, infinities of both signs, finite values
//	integers    least, greatest; sum (16 bytes), sum of squares (24 bytes), little-endian
//	reals       least, greatest (8 bytes each); a number of exponents, and of each the exponent, and the sum and the sum
//	            of squares of the significands, as those of integers
//	all but lengths
//	            a byte that is 1 if the table of counted values was pruned; what was subtracted; the number of values,
//	            and of each the distance of its bits from the value before and its count
//	if the table was pruned
//	            2^14 registers of distinct values, a byte each; for numbers the number of levels, and for each level
//	            a byte that is 1 if the values at odd places go up next, the number of values, the first of them, and
//	            the distance of each other one from the one before; real numbers as integers in the same order
//
// A table that was not pruned has every value, and the registers follow from it.
//
// # Memory
//
// A column takes about 0.3 MB, 0.4 MB where it is of real numbers, and 32 KB for each level of its ranks, of which
// there is one more for each doubling of the rows beyond 4096.
//
// # Concurrency
//
// Add may be called for different columns at once. All other calls need a Builder of their own.
//
// # Errors
//
// [ErrBlock] says that a block does not fit its column, and [ErrState] that bytes are no state of a partition.
package accumulator
