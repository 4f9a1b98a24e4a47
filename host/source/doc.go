// Package source reads partitions that no drive of this machine holds: files, objects behind HTTP, and objects in S3.
//
// # Overview
//
// A [Source] is the bytes of one partition. An [Opener] opens sources by URI and lists what a pattern matches:
//
//	src, err := opener.Open(ctx, "https://data.example/day_0.parquet", source.Identity{})
//
// The identity of a source is pinned when the source is opened: the ETag or the version of an object, or inode, size
// and time of a file. Every later read demands that identity, so that all bytes of one partition are of one moment. An
// identity that is given to Open is demanded from the first read on; workers get it from the job.
//
// # Concurrency
//
// Sources and openers are safe for concurrent use.
//
// # Errors
//
// *[ChangedError], *[NotFoundError], *[ForbiddenError], *[ThrottledError], *[TruncatedError], *[CorruptError],
// *[AnswerError], *[UnreachableError] and *[UnsupportedError] each name the source and say what to do where a user can
// do something. [Temporary] reports whether a later attempt may succeed. Errors never hold credentials: [Redact] takes
// user names, passwords and queries out of a URI.
//
// # Debugging
//
// A source's Identity, printed, is what two machines compare when one reads other bytes than the other.
package source
