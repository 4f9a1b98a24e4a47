package vocabulary

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/millrace/millrace/sdk/vocabulary/occurrence"
)

// Order says in which order keys get their ids.
type Order uint8

// The orders. The numbers are part of the file's form.
const (
	// FirstSeen is the order of first appearance in the data set: DLRM's, Piper's and TorchRec's.
	FirstSeen Order = iota + 1
	// ByCount puts frequent keys first, and of equally frequent ones the lesser: NVTabular's.
	ByCount
	// ByCountText puts frequent keys first, and of equally frequent ones the key whose decimal text is greater, byte by
	// byte: TensorFlow Transform's.
	ByCountText
)

var orderNames = [...]string{FirstSeen: "first_seen", ByCount: "count", ByCountText: "count_text"}

// OrderNames returns the words of the orders, for documents.
func OrderNames() []string { return orderNames[FirstSeen:] }

// String returns the word of a pipeline's document.
func (o Order) String() string {
	if o < FirstSeen || o > ByCountText {
		return fmt.Sprintf("order(%d)", uint8(o))
	}
	return orderNames[o]
}

// ParseOrder reads the word of a pipeline's document.
func ParseOrder(word string) (Order, error) {
	for o := FirstSeen; o <= ByCountText; o++ {
		if orderNames[o] == word {
			return o, nil
		}
	}
	return 0, fmt.Errorf("order %.40q: want first_seen, count or count_text", word)
}

// sortEntries brings entries, which are sorted by key, in the order of ids.
func (o Order) sortEntries(list []occurrence.Entry) {
	if o == FirstSeen {
		occurrence.SortByPosition(list)
		return
	}
	slices.SortFunc(list, o.compareEntries())
}

// compareEntries returns the order of ids. No two keys are equal in it.
func (o Order) compareEntries() func(a, b occurrence.Entry) int {
	switch o {
	case ByCount:
		return func(a, b occurrence.Entry) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
		}
	case ByCountText:
		return func(a, b occurrence.Entry) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), compareDecimals(b.Key, a.Key))
		}
	}
	return func(a, b occurrence.Entry) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Key, b.Key))
	}
}

// compareDecimals compares the decimal texts of two keys byte by byte.
func compareDecimals(a, b int64) int {
	var x, y [20]byte
	return cmp.Compare(string(strconv.AppendInt(x[:0], a, 10)), string(strconv.AppendInt(y[:0], b, 10)))
}
