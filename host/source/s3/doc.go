// Package s3 opens partitions in S3 and in stores that speak its protocol, by s3://BUCKET/KEY.
//
// # Overview
//
// [New] makes a [Store], which implements source.Opener, from the environment variables and files that other tools
// for S3 use:
//
//   - credentials: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; else the profile AWS_PROFILE of
//     ~/.aws/config and ~/.aws/credentials; else the role of the machine or container; else none, for public buckets;
//   - where the store is: [Options.Endpoint], AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, else Amazon's;
//   - AWS_REGION or AWS_DEFAULT_REGION.
//
// Requests to an endpoint that is not Amazon's have the bucket in the path; requests to Amazon have it in the host's
// name. An object is pinned by its version where the bucket keeps versions, else by its ETag.
//
// # Concurrency
//
// A Store and its sources are safe for concurrent use.
//
// # Errors
//
// The errors are those of package source. A wrong bucket name or key is a *source.AnswerError, since the client
// library refuses it.
//
// # Debugging
//
// The error of a refused request has the code that the store sent, for example SignatureDoesNotMatch.
//
// This is the only package that links the client library.
package s3
