package vocabulary

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// OptionalID is an id that may be left out.
type OptionalID struct {
	ID    int64
	Given bool
}

// SomeID returns an id that is given.
func SomeID(id int64) OptionalID { return OptionalID{ID: id, Given: true} }

// Bounds of the rules.
const (
	MaxBase    = 1 << 40       // Rules.Base
	MaxBuckets = 1 << 30       // Rules.Buckets
	LeastID    = math.MinInt32 // of Rules.Null and Rules.Rare
)

// ErrRules says that rules contradict each other or are out of range.
var ErrRules = errors.New("vocabulary: rules")

// Rules say which ids keys get. They are part of a vocabulary's file.
type Rules struct {
	Order Order
	Joint bool  // all columns share one table
	Base  int64 // id of the first key
	// Null is the id of a row without a value, of a column that has one value a row; not given: the row has no id.
	Null OptionalID
	// Rare is the id of keys that the vocabulary lacks.
	Rare OptionalID
	// Buckets is how many ids below Base keys that the vocabulary lacks are hashed to: Base-Buckets to Base-1.
	Buckets  uint32
	MinCount uint64 // a key must have appeared so often; 0 and 1: every key
	MaxSize  uint64 // most keys of a table; 0: no bound
}

// Normalize returns the rules with defaults filled in.
func (r Rules) Normalize() Rules {
	if r.Order == 0 {
		r.Order = FirstSeen
	}
	r.MinCount = max(r.MinCount, 1)
	return r
}

// Check returns an error that wraps ErrRules if the rules cannot hold.
func (r Rules) Check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrRules, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Order < FirstSeen || r.Order > ByCountText:
		return fail("%v, want first_seen, count or count_text", r.Order)
	case r.Base < 0 || r.Base > MaxBase:
		return fail("base %d, want 0 to %d", r.Base, int64(MaxBase))
	case r.Buckets > MaxBuckets || int64(r.Buckets) > r.Base:
		return fail("%d oov_buckets and base %d: the buckets are the ids just below base", r.Buckets, r.Base)
	case r.MinCount == 0:
		return fail("min_count 0, want at least 1")
	}
	for _, special := range []struct {
		name string
		id   OptionalID
	}{{"null_id", r.Null}, {"rare_id", r.Rare}} {
		switch id := special.id.ID; {
		case !special.id.Given && id != 0:
			return fail("%s %d, and it is not given", special.name, id)
		case !special.id.Given:
		case id < LeastID || id >= r.Base && id >= 0:
			return fail("%s %d, want %d to %d: keys have the ids from base on", special.name, id, LeastID, r.Base-1)
		case r.Buckets > 0 && id >= r.Base-int64(r.Buckets):
			return fail("%s %d is one of the %d oov_buckets below base %d", special.name, id, r.Buckets, r.Base)
		}
	}
	return nil
}

// mostKeys returns how many keys a table has at most.
func (r *Rules) mostKeys() int64 {
	if r.MaxSize > 0 && r.MaxSize < math.MaxInt32 {
		return int64(r.MaxSize)
	}
	return math.MaxInt32
}

// Unknown says what becomes of a key that a vocabulary lacks.
type Unknown uint8

// The policies. The zero value follows from the rules, see [Rules.Policy].
const (
	UnknownFail   Unknown = iota + 1 // the split fails
	UnknownRare                      // the key becomes Rules.Rare
	UnknownBucket                    // the key is hashed to one of Rules.Buckets
	UnknownDrop                      // the row loses the key
)

var unknownNames = [...]string{
	UnknownFail: "error", UnknownRare: "id", UnknownBucket: "bucket", UnknownDrop: "drop",
}

// UnknownNames returns the words of the policies, for documents.
func UnknownNames() []string { return unknownNames[UnknownFail:] }

// String returns the word of a pipeline's document.
func (u Unknown) String() string {
	if u < UnknownFail || u > UnknownDrop {
		return fmt.Sprintf("unknown(%d)", uint8(u))
	}
	return unknownNames[u]
}

// ParseUnknown reads the word of a pipeline's document.
func ParseUnknown(word string) (Unknown, error) {
	for u := UnknownFail; u <= UnknownDrop; u++ {
		if unknownNames[u] == word {
			return u, nil
		}
	}
	return 0, fmt.Errorf("unknown %.40q: want error, id, bucket or drop", word)
}

// Policy returns a policy, or for the zero value the one that the rules imply: buckets if there are any, else the rare
// id if there is one, else failure. It refuses a policy for which the rules have no id.
func (r Rules) Policy(u Unknown) (Unknown, error) {
	switch {
	case u == 0 && r.Buckets > 0:
		return UnknownBucket, nil
	case u == 0 && r.Rare.Given:
		return UnknownRare, nil
	case u == 0:
		return UnknownFail, nil
	case u == UnknownRare && !r.Rare.Given:
		return 0, fmt.Errorf("%w: unknown: id, and no rare_id", ErrRules)
	case u == UnknownBucket && r.Buckets == 0:
		return 0, fmt.Errorf("%w: unknown: bucket, and no oov_buckets", ErrRules)
	case u > UnknownDrop:
		return 0, fmt.Errorf("%w: %v", ErrRules, u)
	}
	return u, nil
}

// String renders the rules as a pipeline's document does, without defaults.
func (r Rules) String() string {
	words := []string{"order: " + r.Order.String()}
	add := func(given bool, format string, value any) {
		if given {
			words = append(words, fmt.Sprintf(format, value))
		}
	}
	add(r.Joint, "joint: %v", true)
	add(r.Base != 0, "base: %d", r.Base)
	add(r.Null.Given, "null_id: %d", r.Null.ID)
	add(r.Rare.Given, "rare_id: %d", r.Rare.ID)
	add(r.Buckets != 0, "oov_buckets: %d", r.Buckets)
	add(r.MinCount > 1, "min_count: %d", r.MinCount)
	add(r.MaxSize != 0, "max_size: %d", r.MaxSize)
	return "{" + strings.Join(words, ", ") + "}"
}
