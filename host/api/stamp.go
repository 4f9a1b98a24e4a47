package api

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrChangedSince says that a file was written or replaced since something was made of it. The error is a
// *ChangedSinceError.
var ErrChangedSince = errors.New("the file was written or replaced since")

// Stamp says where a partition's file lies and by what a later write is seen: inode, size and time of the last write in
// nanoseconds of a file, the ETag or version of an object. It is no part of a manifest: a copy elsewhere has another
// stamp and is the same partition.
type Stamp struct {
	Place string `json:"place"` // the machine and the path, or the URI
	State string `json:"state"`
}

// ChangedSinceError names a partition whose file has another state than when something was made of it.
type ChangedSinceError struct{ Partition, Place string }

func (e *ChangedSinceError) Error() string {
	return fmt.Sprintf("partition %s: %s: %v, though its length and its samples are the same", e.Partition, e.Place,
		ErrChangedSince)
}

// Unwrap returns ErrChangedSince.
func (e *ChangedSinceError) Unwrap() error { return ErrChangedSince }

// CheckStamps returns a *ChangedSinceError for the first partition, by name, whose file lies at the same place as then
// and has another state now. A file at another place is a copy, which only the manifest speaks of.
func CheckStamps(then, now map[string]Stamp) error {
	for _, name := range slices.Sorted(maps.Keys(then)) {
		was, is := then[name], now[name]
		if was.Place == is.Place && was.State != is.State {
			return &ChangedSinceError{Partition: name, Place: is.Place}
		}
	}
	return nil
}
