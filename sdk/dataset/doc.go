// Package dataset says which rows make which mini-batch. It is pure: no files, no clocks, no goroutines.
//
//   - [Manifest] lists the partitions of a data set in its order: name, bytes, rows, rows of each row group, SHA-256
//     over the footer and samples of the bytes. The order is the one in which files were given. The files of a folder
//     or a pattern are in the natural order of names, see [CompareNames].
//   - [Plan] is a function of the manifest and [Options]: which rows of which partitions mini-batch number i has, and
//     in which splits they are.
//   - [JobDigest] names a job: equal digests deliver equal mini-batches.
//   - [Progress] counts acknowledged mini-batches of an epoch, [Token] is its wire form: the checkpoint that the
//     trainer keeps.
//
// # The plan
//
// A split is consecutive rows of one partition: the unit of work, lease and redelivery. A split has an ID, which is its
// position in dataset order (partitions as in the manifest, then by row), and a position in an epoch's plan. The
// sequence of an epoch is the rows of its splits, by position. Mini-batches are consecutive rows of the sequence and
// are numbered from 0 in its order. A fragment is the rows of one mini-batch in one split; fragments are numbered from
// 0 in the order of the sequence, too. So a split has consecutive fragments, of consecutive mini-batches, and a
// mini-batch has consecutive fragments. [Boundary] says where mini-batches end early. Drives, threads, placement and
// crashes do not enter the plan.
//
// With [BoundaryPartition], the default, a mini-batch is Batch consecutive rows of one partition, cut by row number
// from row 0, straight across row groups. Only a partition's last mini-batch may be short; [DropTail] leaves it out. A
// split is SplitBatches consecutive mini-batches of one partition; only a partition's last split may have fewer. Every
// mini-batch has one fragment, of the mini-batch's number.
//
// With [BoundaryNone] a mini-batch is Batch consecutive rows of the sequence, across splits and partitions: with T rows
// in the sequence, mini-batch i is its rows [i x Batch, min((i+1) x Batch, T)). Only the epoch's last mini-batch may be
// short; DropTail takes its rows, the last T mod Batch of the sequence, out of the sequence, and out of the plan the
// splits that lose all their rows. Row groups say where splits end.
//
// # Splits of BoundaryNone, exactly
//
// Let S = SplitBatches x Batch, H = floor(S / 2) and L = max(S, min(2^22, (2^21 - 1) x Batch)). A row group is large if
// it has more than S + H rows. A partition's splits follow each other from row 0 to its last row. The split that begins
// at row a ends before row e:
//
//	a is a row of a large row group, whose rows end before g:   e = min(g, a + L)
//	otherwise:   e = the g, of all g in [a+S-H, a+S+H] before which a row group's rows end, that is nearest to a + S:
//	                 the lesser one of two, and min(a + S, rows of the partition) if there is none;
//	             then, if a large row group begins at a row b in (a, e): e = b
//
// Row groups without rows count for nothing. So no split is empty, a split has at most max(S + H, L) rows and
// [MaxSplitFragments] fragments, and a split of more than S + H rows has rows of one row group alone. A selected plan
// (NewSelectedPlan) does not know in which row groups the passing rows are: there e is min(a + S, passing rows).
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
// consecutive fragments (fewer in the last window of a split) form a window; with p = permute over all rows of the
// window under key(seed, epoch, 2, split ID, window of the split), row i of the window delivered is row p[i] of the
// window as cut. The fragments of the window take the delivered rows in turn, each as many as it had. The host mixes
// rows, with [Plan.RowPermutation] and tensor.Gather, and drives take no part in it.
//
// The effect on a model: with ShuffleSplits the rows of a mini-batch are neighbours in their file, in file order, and
// so are the mini-batches of a split; only the order of splits changes from epoch to epoch. Data that is sorted by time
// or by user stays sorted inside a mini-batch. ShuffleRows breaks that order up inside a window (Window x Batch rows),
// never beyond it. With BoundaryPartition rows of different splits or partitions never meet in a mini-batch; with
// BoundaryNone they meet in the mini-batches at the ends of splits, and other splits meet in every epoch. If the files
// themselves are sorted by label or time, shuffle them once when they are written.
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
