// Package source reads partitions that no drive of this machine holds: files, objects behind HTTP, and objects in S3.
//
// # Overview
//
// A [Source] is the bytes of one partition. A [Location] is where it lies: a URI or a path, which is
// read once, where its name comes in. An [Opener] opens locations and lists the objects that a pattern matches:
//
//	src, err := opener.Open(ctx, source.ParseLocation("https://data.example/day_0.parquet"), source.Identity{})
//
// The identity of a source is pinned when the source is opened: the ETag or the version of an object, or inode, size
// and time of a file. Every later read demands that identity, so that all bytes of one partition belong to one
// version of it. If the caller of Open gives an identity, already the first read demands it; workers get the
// identity from the job.
//
// [Stores] chooses the opener by the URI's scheme: [Files], [Web], and for S3 the opener that the caller gives.
//
// A partition reads a source through a [Reader], which asks for up to 1.25 MiB at once, joins columns that lie near
// each other, and asks ahead for the bytes that the open streams read next. All readers of a process share a
// [Cache], which bounds their memory and the requests that are under way, and retries requests that failed
// temporarily ([Retry]):
//
//	cache, err := source.NewCache(source.Options{})
//	reader := cache.NewReader(src)
//	part, err := partition.Open(ctx, name, reader, src.Size(), program.Parquet, partition.Options{})
//	reader.Describe(part)
//
// # Concurrency
//
// Sources, openers, caches and readers are safe for concurrent use. A reader's requests run in goroutines of its own,
// which end before its Close returns. The mutex of a cache guards the segments of all its readers.
//
// # Errors
//
// *[ChangedError], *[NotFoundError], *[ForbiddenError], *[ThrottledError], *[TruncatedError], *[CorruptError],
// *[AnswerError], *[UnreachableError] and *[UnsupportedError] each name the source and, if a user can do something,
// say what to do. [Temporary] reports whether a later attempt may succeed. Errors never hold credentials: a [Location]
// prints without user name, password and query.
//
// # Debugging
//
// Print a source's Identity on two machines and compare the two when one machine reads other bytes than the other. A
// reader's [Statistics] show requests, unneeded bytes, retries, and how long reads waited for bytes.
package source
