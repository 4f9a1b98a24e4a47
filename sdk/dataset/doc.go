// Package dataset says which rows make which mini-batch. It is pure: no files, no clocks, no goroutines.
//
//   - [Manifest] lists the partitions of a data set: name, bytes, rows, rows of each row group, SHA-256 of the footer.
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
// Splits have an ID, their place in dataset order (partitions sorted by name as bytes, then by row), and a place, where
// an epoch's plan puts them. Mini-batches are numbered from 0 in the plan's order: split by split, inside a split by
// row. Row groups, drives, threads, placement and crashes do not enter.
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
// [ShuffleNone] leaves splits in dataset order. [ShuffleSplits], the default, delivers the split of ID p[i] at place
// i, p = permute under key(seed, epoch, 1). [ShuffleRows] does that, and mixes rows: inside a split, Window
// consecutive mini-batches (fewer in the last window of a split) form a window; with p = permute over all rows of the
// window under key(seed, epoch, 2, split ID, window of the split), row i of the window delivered is row p[i] of the
// window as cut. The host mixes rows, with [Plan.RowPermutation] and tensor.Gather; drives do not know.
//
// What this means for a model: with ShuffleSplits the rows of a mini-batch are neighbours in their file, in file
// order, and so are the mini-batches of a split; only the order of splits changes from epoch to epoch. Data sorted by time or by
// user stays so inside a mini-batch. ShuffleRows breaks that up inside a window (Window x Batch rows), never beyond it: rows
// of different splits or partitions never meet in a mini-batch. If the files themselves are sorted by label or time,
// shuffle them once when they are written.
//
// # Concurrency
//
// A Manifest and a Plan are read-only after they are made and may be shared. A Progress has one owner, who locks if it shares.
//
// # Errors
//
// [ErrManifest], [ErrOptions], [ErrNumber], [ErrToken] and [ErrOtherJob] tell the kinds apart. Manifests and tokens may be foreign
// bytes: parsing allocates no more than their length bounds.
//
// # Debugging
//
// A manifest's digest is the SHA-256 of its JSON, so `sha256sum` of a stored manifest shows it. Token.String and
// Plan.String say in words what they hold.
package dataset
