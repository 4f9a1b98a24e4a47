// Package httpbody bounds how long the bodies of requests may take.
//
// # Overview
//
// An http.Server bounds the time of headers apart, and of bodies only together with everything else that a connection reads, where uploads of
// hours and calls that wait for half a minute have their place. [Within] stands before a handler whose requests are small: who sends one a byte
// an hour would hold a connection, of which a server has so many.
//
// # Concurrency
//
// Any number of requests may be served at once, each by its goroutine.
//
// # Errors
//
// A body that comes too late fails to be read with an error that is os.ErrDeadlineExceeded, and the connection ends with the request.
//
// # Debugging
//
// A deadline holds until the body was read to its end, or to an error, and no longer: what a handler does after that takes as long as it takes.
package httpbody
