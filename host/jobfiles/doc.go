// Package jobfiles keeps the files that jobs name by their digests: on the members of a control plane, where
// submitters put them, and on nodes and workers, which fetch them from the members.
//
// # Overview
//
// A [Store] is a folder of files, each under the SHA-256 of its bytes. [Store.Append] adds a file piece by piece, and
// repeats cost nothing: the answer says how many bytes the store has. A file gets its name when all its bytes are on
// the disk, their SHA-256 is the name, and they are what the caller says. [Store.Hold] keeps a file from being removed.
// Files that nothing holds make room for others, the least recently used first, and are removed after Options.Unused.
//
// A file has a [Kind]: [Vocabulary], [Selection] (the rows that pass the filter of a job) or [Module] (a WebAssembly
// module with operators of one's own). A module has no name of its own here, and nothing runs it: a file is a module if
// it parses as one.
//
// A [Cache] is a Store that fetches. [Cache.Acquire] returns a vocabulary that is ready for lookups: from memory, from
// the disk, or from the first [Source] that has it. Several callers of one digest share one fetch and one table.
// [Cache.AcquireSelection] and [Cache.AcquireModule] return the other kinds.
//
//	DIGEST            a file
//	DIGEST-N.partial  the bytes so far of a file that is being put or fetched; removed when a Store is opened
//
// # Concurrency
//
// All types are safe for concurrent use. One process at a time uses a folder. A fetch belongs to its Cache: it goes on
// after the caller has gone, and ends with Close.
//
// # Errors
//
// [ErrRoom] says that the disk, the store's bound or the cache's memory has no room now, [ErrMissing] that no source
// has a file, [ErrFetching] that a fetch goes on, [ErrDigest] that bytes are not those that their name promises.
// Errors name the digest.
//
// # Debugging
//
// `millrace vocabulary info FOLDER/DIGEST` shows a file. The metrics millrace_vocabularies_* count files, bytes and
// fetches.
package jobfiles
