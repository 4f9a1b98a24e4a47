package vocabulary

import "fmt"

// Absent is the index of a key that a vocabulary lacks.
const Absent int32 = -1

// MaxKeys bounds the keys of a vocabulary, so that every index is an int32.
const MaxKeys = 1<<31 - 1

// DuplicateError says that a list of keys holds a key twice.
type DuplicateError struct {
	Key           int64
	First, Second int // indices
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("vocabulary: key %d has two indices, %d and %d", e.Key, e.First, e.Second)
}
