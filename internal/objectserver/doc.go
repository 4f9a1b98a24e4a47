// Package objectserver is a small server of objects for tests: buckets as S3 serves them, whose keys are also files
// behind plain HTTP with ranges and ETags. A hook before each request lets a test make the server hostile.
//
// # Overview
//
// [New] starts a server on a free port of the loopback; [Server.Put] gives it objects, which S3 clients find at
// s3://BUCKET/KEY of the endpoint [Server.URL], and HTTP clients at URL/BUCKET/KEY.
//
// # Concurrency
//
// A Server is safe for concurrent use.
//
// # Errors
//
// The server answers as S3 does: 404 NoSuchKey, 403 AccessDenied, 412 PreconditionFailed, each with an XML body.
package objectserver
