// Package int96 is the unit int96_time: a Parquet INT96 timestamp becomes the seconds or the days since 1970-01-01.
//
// # Overview
//
// An INT96 holds, little-endian, the nanoseconds since midnight (8 bytes) and the Julian day number (4 bytes), both
// signed. The Julian day 2440588 is 1970-01-01. Impala, Hive and Spark write such timestamps. The unit computes
//
//	floor(((day - 2440588) * 86400 * 10^9 + nanoseconds) / unit)
//
// exactly, where unit is the number of nanoseconds of a second or of a day. The nanoseconds may be any number: those of
// a writer that is beyond its day are carried into the next. The result fits int64 whatever the twelve bytes are.
//
// # Concurrency
//
// The function keeps no state.
//
// # Errors
//
// ErrLength says that a value has another length than 12 bytes, ErrUnit that no unit has the number. An error of
// bytecolumn says that the column itself is not well formed.
//
// # Debugging
//
// Reference is the definition, with integers of any size.
package int96
