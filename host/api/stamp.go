package api

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrChangedSince says that a file was written or replaced after something was made of it. The error is a
// *ChangedSinceError.
var ErrChangedSince = errors.New("the file was written or replaced since")

// Stamp is the place of a partition's file and its state, which every later write changes: inode, size and time of the
// last write in nanoseconds of a file, ETag or version of an object. It is not part of a manifest: a copy elsewhere has
// another stamp and is the same partition.
type Stamp struct {
	Place string `json:"place"` // the machine and the path, or the URI
	State string `json:"state"`
}

// ChangedSinceError names a partition whose file has changed after something was made of it.
type ChangedSinceError struct{ Partition, Place string }

func (e *ChangedSinceError) Error() string {
	return fmt.Sprintf("partition %s: %s: %v, though its length and its samples are the same", e.Partition, e.Place,
		ErrChangedSince)
}

// Unwrap returns ErrChangedSince.
func (e *ChangedSinceError) Unwrap() error { return ErrChangedSince }

// CheckStamps returns a *ChangedSinceError for the first partition, by name, whose file has another state now and lies
// at the same place. A file at another place is a copy, which only the manifest can check.
func CheckStamps(then, now map[string]Stamp) error {
	for _, name := range slices.Sorted(maps.Keys(then)) {
		was, is := then[name], now[name]
		if was.Place == is.Place && was.State != is.State {
			return &ChangedSinceError{Partition: name, Place: is.Place}
		}
	}
	return nil
}
