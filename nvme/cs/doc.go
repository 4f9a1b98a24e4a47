// Package cs holds the two command sets for computation on a drive: builders, parsers and the structures that travel.
//
// The vendor set is the stable contract: Preprocess, Fetch and Store on namespace 1, image and memory administration,
// log page C0h. The standard set (Subsystem Local Memory, CSI 3, on namespace 2; Computational Programs, CSI 4, on
// namespace 3) says the same over the same core: a Preprocess is a Memory Copy and an Execute Program with the same
// ranges and arguments. A part of the standard set's layouts that the public sources do not settle is marked
// provisional where it is defined.
//
// Nothing here knows what a program does: arguments are opaque bytes.
//
// # Concurrency
//
// Values are plain data.
//
// # Errors
//
// Unmarshalling foreign bytes returns an error that names the field, and never allocates by a number that was not
// checked against the bytes at hand.
package cs
