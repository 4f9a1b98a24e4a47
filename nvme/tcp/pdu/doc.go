// Package pdu holds the protocol data units of NVMe/TCP as they travel: a common header of eight bytes, a header of a
// size that the type fixes, and for some types data, each optionally followed by a CRC32C digest (NVM Express TCP
// Transport Specification 1.0, section 3.6). Everything is little endian.
//
// Reading is in two steps, because a receiver must not believe a length before it has judged it. Parse looks at the
// common header alone and says, by the rules of the type and of what the two sides negotiated, how long the header is
// and how many bytes of data follow; it refuses everything else with an Error, which names the fatal error status and
// the field to report in a termination request. Then the typed headers are read from bytes that are known to be there.
//
// # Concurrency
//
// Values are plain data.
//
// # Errors
//
// Error is the content of a termination request; Terminate makes a termination request from one.
//
// # Debugging
//
// Header and Error print themselves for a log.
package pdu
