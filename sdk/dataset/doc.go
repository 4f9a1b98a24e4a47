// Package dataset says which rows make which mini-batch. It is pure: no files, no clocks, no goroutines.
//
//   - [Manifest] lists the partitions of a data set in its order: name, bytes, rows, rows of each row group, SHA-256
//     over the footer and samples of the bytes. The order is the one in which files were given. The files of a folder
//     or a pattern are in the natural order of names, see [CompareNames].
//   - [Plan] is a function of the manifest and [Options]: mini-batch number i is rows [First, First+Rows) of one
//     partition, and belongs to one split.
//   - [JobDigest] names a job: equal digests deliver equal mini-batches.
//   - [Progress] counts acknowledged mini-batches of an epoch, [Token] is its wire form: the checkpoint that the
//     trainer keeps.
//
// # The plan
//
// A mini-batch is Batch consecutive rows of one partition, cut by row number from row 0, straight across row groups.
// Only a partition's last mini-batch may be short; [DropTail] leaves it out. A split is SplitBatches consecutive
// mini-batches of one partition, the unit of work, lease and redelivery; only a partition's last split may have fewer.
// A split has an ID, which is its position in dataset order (partitions as in the manifest, then by row), and a
// position in an epoch's plan. Mini-batches are numbered from 0 in the plan's order: split by split, and by row inside
// a split. Row groups, drives, threads, placement and crashes do not enter the plan.
//
// # Shuffling, exactly
//
// All arithmetic is on 64-bit unsigned integers and wraps. With G = 9e3779b97f4a7c15h,
//
//	mix(z)   z ^= z>>30; z *= bf58476d1ce4e5b9h; z ^= z>>27; z *= 94d049bb133111ebh; z ^= z>>31
//	key(a, b, c, ...)   k = 0; for each x: k = mix((k ^ x) + G)
//	next()   state += G; return mix(state)                             (splitmix64; state starts as the key)
//	below(n) hi:lo = next() * n as 128 bits; while lo < 2^64 mod n: hi:lo = next() * n; return hi      (Lemire)
//	permute(p[0..n))   p[i] = i; for i = n-1 down to 1: j = below(i+1); swap p[i], p[j]           (Fisher, Yates)
//
// [ShuffleNone] leaves splits in dataset order. [ShuffleSplits], the default, delivers the split of ID p[i] at position
// i, p = permute under key(seed, epoch, 1). [ShuffleRows] does that, and mixes rows: inside a split, Window
// consecutive mini-batches (fewer in the last window of a split) form a window; with p = permute over all rows of the
// window under key(seed, epoch, 2, split ID, window of the split), row i of the window delivered is row p[i] of the
// window as cut. The host mixes rows, with [Plan.RowPermutation] and tensor.Gather, and drives take no part in it.
//
// The effect on a model: with ShuffleSplits the rows of a mini-batch are neighbours in their file, in file order, and
// so are the mini-batches of a split; only the order of splits changes from epoch to epoch. Data that is sorted by
// time or by user stays sorted inside a mini-batch. ShuffleRows breaks that order up inside a window (Window x Batch
// rows), never beyond it: rows of different splits or partitions never meet in a mini-batch. If the files themselves
// are sorted by label or time, shuffle them once when they are written.
//
// # Concurrency
//
// A Manifest and a Plan are read-only after they are made and may be shared. A Progress has one owner at a time.
//
// # Errors
//
// The kinds of errors are [ErrManifest], [ErrOptions], [ErrNumber], [ErrToken] and [ErrOtherJob]. Manifests and tokens
// may be foreign bytes: parsing allocates no more memory than in proportion to their length.
//
// # Debugging
//
// A manifest's digest is the SHA-256 of its JSON, so `sha256sum` of a stored manifest shows it. Token.String and
// Plan.String describe a token and a plan in words.
package dataset
