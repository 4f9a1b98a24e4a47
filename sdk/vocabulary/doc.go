// Package vocabulary builds vocabularies of ids, keeps them in files, and replaces ids by their places in them: Piper's
// GenVocab and ApplyVocab.
//
// # Overview
//
// A [Vocabulary] gives every key of some features an id. A key is what a feature's chain of operators yields before the
// operator `vocabulary`. [Rules] say in which order keys get ids and which keys get none. Every feature has a
// table of keys of its own, or all features share one (Rules.Joint).
//
// A [Builder] makes a vocabulary from a pass over a data set. It takes the ids of mini-batches in any order, from
// any goroutine, and keeps for each key its first position and its count (package occurrence). Where memory is short
// it writes sorted runs to disk and merges them at the end. Neither the order nor the runs change a byte of the
// result: positions are rows of the data set, first positions are folded by their minimum, and counts by their sum.
// [Builder.Finish] writes two files, each under its name only when it is whole:
//
//	F          the vocabulary: keys in the order of their ids
//	F.counts   the sidecar: first position and count of every key that was seen, kept or not
//
// [Extend] begins a Builder with both, so that keys keep their ids, new ones are appended, and a least count counts
// over all generations of the data.
//
// A [MemoryBuilder] makes the same vocabulary for this process only, without files. By the rules of Piper and MiniPipe
// it needs neither positions nor counts nor a sort. Where memory holds the keys of the pass, each column gets its ids
// at the end of it, and MemoryBuilder.KeepIDs keeps them: another pass over the same rows needs neither keys nor
// lookups.
//
// A [Lookup] is a vocabulary's table for one key of a pipeline, and an [Applier] replaces the ids of mini-batches by
// lookups.
//
// # The file
//
// All numbers are little-endian. A file has a header, the tables and a trailer.
//
//	header   0  8  magic "MRVOCAB\n"
//	         8  2  major version, 2 minor version
//	        12  4  bytes of the header
//	        16  1  order, 1 flags (1 joint, 2 null id, 4 rare id), 2 zero
//	        20  4  buckets for keys that the vocabulary lacks
//	        24  8  base, 8 null id, 8 rare id
//	        48  8  least count, 8 largest size (0: none)
//	        64  4  columns, 4 tables
//	        72     a column: 32 chain digest, 4 table, 2 bytes of its name, its name
//	tables         the keys of each table in the order of their ids, 8 bytes each
//	trailer        a table: 8 keys
//	            4  CRC32C of everything before it
//
// The SHA-256 of the file names the vocabulary. The sidecar's form is described at [Counts].
//
// # Concurrency
//
// A Vocabulary and a Lookup do not change. A Builder, a MemoryBuilder and an Applier may be used by several
// goroutines.
//
// # Errors
//
// Bytes that are no vocabulary give an error that wraps [ErrDamaged], and those of a later version [ErrVersion]. An id
// that a vocabulary lacks is a *[UnknownError], if the lookup is to fail for it.
//
// # Debugging
//
// `millrace vocabulary info` prints a file's header and sizes, `millrace vocabulary diff` compares two files.
package vocabulary
