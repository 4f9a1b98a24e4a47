// Package localhour is the unit get_local_hour: the hour of the day, 0 to 23, at a place, of a time in seconds since
// 1970-01-01 00:00:00 UTC.
//
// # Overview
//
// DPP (Table XI) names GetLocalHour without a definition; Velox's hour(timestamp, zone) is the public one. A zone is a
// table: Offsets[i] is what the zone's clocks are ahead of UTC, in seconds, from Starts[i] on, until Starts[i+1]. The
// hour is floorMod(t + offset, 86400) / 3600, computed without overflow for every int64 t. The unit knows no names of
// zones: the host that lowers a pipeline makes the table, so that all drives compute the same hours.
//
// Times of neighbouring rows are often near each other. The kernel keeps the interval of the last time, and searches
// the table for times outside that interval alone.
//
// # Concurrency
//
// A Zone is immutable and may be shared. It keeps the slices that it was made of, which must not change.
//
// # Errors
//
// New returns ErrTable if the table is not a zone. Hours cannot fail.
//
// # Debugging
//
// Reference is the definition, a value at a time, in numbers of any size.
package localhour
