// Package errorcode gives every error that leaves a storage node one of Connect's codes.
//
// # Overview
//
// The codes are those that millrace.proto promises: not_found, failed_precondition and data_loss for requests that
// would fail again, resource_exhausted and unavailable for requests that may succeed later or elsewhere,
// invalid_argument for requests that make no sense. [Of] finds the code of an error, [RPC] wraps an error for Connect,
// and [Write] answers a request on the bindings outside Connect, with the HTTP status that belongs to the code.
//
// # Concurrency
//
// The functions have no state and may be called from any number of goroutines.
//
// # Errors
//
// [ErrUnavailable], [ErrRequest] and [ErrTooMany] are the errors that several parts of a node return and that belong to
// none of them.
//
// # Debugging
//
// An error with an unexpected code is missing from the table in errorcode.go.
package errorcode
