package draft

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// role is the part that a column plays in the pipeline.
type role uint8

const (
	roleLeftOut role = iota
	roleLabel
	roleNumber // a dense feature
	roleID     // a key
)

// guess is a column and its part in the pipeline.
type guess struct {
	column  columntypes.Column
	logical string // the file's annotation of the column, as "TIMESTAMP(MICROS)"
	role    role
	why     string // the reason of the role; a reason that columns share makes them one group
	ops     []pipeline.Op
	seen    valueRange
	hashed  bool // text that is not hexadecimal, or UUIDs, so that the bytes are hashed
}

// valueRange is the range of values in the sampled rows of a column.
type valueRange struct {
	nan      bool // a value is NaN
	known    bool // a value is not NaN
	least    float64
	greatest float64
}

// isText reports whether the column's values are text.
func (g *guess) isText() bool { return g.column.Kind == program.Bytes && !g.isDecimal() && !g.isHalf() }

// isDecimal reports whether the column's values are decimals that the operator decimal reads.
func (g *guess) isDecimal() bool { return strings.HasPrefix(g.column.Logical, "DECIMAL(") }

// isHalf reports whether the column's values are FLOAT16.
func (g *guess) isHalf() bool { return g.column.Kind == program.Bytes && g.column.Logical == "FLOAT16" }

// takeForCategories makes text that is not hexadecimal a key of hashed categories.
func (g *guess) takeForCategories() {
	g.hashed, g.why = true, "text, whose values are taken for categories and hashed"
}

// readsText returns the operator that makes ids of the column's text.
func (g *guess) readsText() pipeline.Op {
	if g.hashed {
		return pipeline.HashBytes("xxh3")
	}
	return pipeline.HexToInt()
}

// mayHoldNulls reports whether values of a key may be null once they are ids: hex_to_int makes nulls of empty text.
func (g *guess) mayHoldNulls() bool {
	switch {
	case g.isText() && !g.hashed:
		return true
	case g.column.List:
		return g.column.ElementNullable
	}
	return g.column.Nullable
}

// leaveOut gives the column no part in the pipeline.
func (g *guess) leaveOut(format string, args ...any) {
	g.role, g.why = roleLeftOut, fmt.Sprintf(format, args...)
}

// labelNames are the names of labels, the likeliest first.
var labelNames = []string{"label", "labels", "target", "click", "clicked", "is_click", "is_clicked", "click_label",
	"conversion", "converted", "is_conversion", "purchase", "purchased", "outcome", "class", "y"}

// idWords and amountWords are the words of names by which ids and amounts are distinguished.
var (
	idWords = []string{"id", "ids", "cat", "categorical", "category", "code", "hash", "key", "token", "sparse", "user",
		"item", "product", "ad", "campaign", "advertiser", "publisher", "device", "brand", "city", "country", "region",
		"zip", "site", "domain", "page", "shop", "store", "cookie", "session", "type", "model"}
	amountWords = []string{"int", "num", "numeric", "dense", "float", "count", "counter", "cnt", "price", "amount", "cost",
		"age", "score", "rate", "ratio", "duration", "seconds", "length", "size", "total", "avg", "mean", "sum", "min",
		"max", "clicks", "views", "impressions", "quantity", "qty", "days", "hours", "weight"}
)

// guessColumns decides every column's part in the pipeline. logical has the annotations of columns by name.
func guessColumns(columns []columntypes.Column, logical map[string]string) []*guess {
	guesses := make([]*guess, len(columns))
	for i := range columns {
		g := &guess{column: columns[i], logical: logical[columns[i].Name]}
		g.decideRole()
		guesses[i] = g
	}
	for _, name := range labelNames {
		i := slices.IndexFunc(guesses, func(g *guess) bool {
			numbers := g.role != roleLeftOut && !g.column.List && !g.isText() && !g.isDecimal()
			return numbers && strings.EqualFold(g.column.Name, name)
		})
		if i >= 0 {
			guesses[i].role, guesses[i].why = roleLabel, ""
			break
		}
	}
	return guesses
}

// listOfReals is why a list of real numbers is left out.
const listOfReals = "it is a list of real numbers: fixed_length: {length: N} makes N dense features of lists of one " +
	"length, and bucketize makes ids"

// decideRole decides the column's role by its type and its name.
func (g *guess) decideRole() {
	c := &g.column
	annotation, _, _ := strings.Cut(g.logical, "(")
	switch {
	case c.Unsupported != nil:
		g.leaveOut("%s", strings.ReplaceAll(c.Unsupported.Error(), "\n", "; "))
	case c.Map.IsMap():
		keys := "1..40"
		if c.Map.TextKeys {
			keys = "color, size"
		}
		g.leaveOut("it is a map, and only its rows tell which features it holds: name them, as %s[%s]", c.Name, keys)
	case c.Name == "__index_level_0__":
		g.leaveOut("pandas wrote the index of its rows there")
	case annotation == "TIMESTAMP" || annotation == "DATE" || annotation == "TIME" || c.Logical == "INT96":
		g.leaveOut("its values are %s: a point in time is too exact for a float32, and an id that never comes again; "+
			"to_days or to_seconds, and then bucketize, make a feature of it", cmp.Or(g.logical, c.Logical))
	case g.isDecimal() && !c.List:
		g.role, g.why = roleNumber, fmt.Sprintf("%s, rounded to float32", g.logical)
	case g.isHalf() && !c.List:
		g.role, g.why = roleNumber, "real numbers"
	case c.Kind == program.Bytes && (g.isDecimal() || g.isHalf()):
		g.leaveOut(listOfReals)
	case c.Kind == program.Bytes && c.Logical == "UUID":
		g.role, g.hashed, g.why = roleID, true, "UUIDs, whose bytes are hashed"
	case c.Kind == program.Bytes && (c.Logical == "JSON" || c.Logical == "BSON"):
		g.leaveOut("its values are %s documents: hash_bytes makes an id of a whole document", c.Logical)
	case c.Kind == program.Bytes && c.Logical != "":
		g.leaveOut("its values are %s kept as bytes: write the column as numbers (INT64, FLOAT or DOUBLE)", c.Logical)
	case c.Kind == program.Bytes:
		g.role, g.why = roleID, "text whose values are hexadecimal, read as numbers below 2^32"
	case c.List && c.Kind != program.Int64:
		g.leaveOut(listOfReals)
	case c.List:
		g.role, g.why = roleID, "lists of whole numbers, taken for ids"
	case c.Kind != program.Int64:
		g.role, g.why = roleNumber, "real numbers"
	case c.Bits == 1:
		g.role, g.why = roleNumber, "booleans, which become 0 and 1"
	default:
		g.decideInteger()
	}
}

// decideInteger decides whether a column of integers holds ids or amounts.
func (g *guess) decideInteger() {
	words := wordsOf(g.column.Name)
	// The last word of a name is its noun: user_age is an age, age_code is a code.
	for _, word := range slices.Backward(words) {
		if slices.Contains(idWords, word) {
			g.role, g.why = roleID, "whole numbers, taken for ids because of their names"
			return
		}
		if slices.Contains(amountWords, word) {
			g.role, g.why = roleNumber, "whole numbers, taken for amounts because of their names"
			return
		}
	}
	// Criteo's columns are also called I1 to I13 and C1 to C26.
	if prefix, digits := splitNumber(g.column.Name); digits != "" && len(prefix) == 1 {
		switch prefix {
		case "I", "i":
			g.role, g.why = roleNumber, "whole numbers, taken for amounts because of their names"
			return
		case "C", "c":
			g.role, g.why = roleID, "whole numbers, taken for ids because of their names"
			return
		}
	}
	if g.column.Bits == 0 || g.column.Bits > 32 {
		g.role, g.why = roleID, "whole numbers of 64 bits, taken for ids: their names do not tell"
		return
	}
	g.role, g.why = roleNumber, "whole numbers of at most 32 bits, taken for amounts: their names do not tell"
}

// wordsOf splits a name into its words, in lower case and without numbers: userID_2 gives user, id.
func wordsOf(name string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	small := false // the last letter was in lower case
	for _, r := range name {
		if !unicode.IsLetter(r) || unicode.IsUpper(r) && small {
			end()
		}
		if unicode.IsLetter(r) {
			word.WriteRune(r)
		}
		small = unicode.IsLower(r)
	}
	end()
	return words
}

// splitNumber returns the digits at the end of a name, and the part before them.
func splitNumber(name string) (prefix, digits string) {
	prefix = strings.TrimRight(name, "0123456789")
	return prefix, name[len(prefix):]
}

// Operators of a draft.
const (
	hashedIDs  = 500_000 // rows of an embedding table, as PreSto's RM1 has them
	longTail   = 256     // amounts above it are drafted with a logarithm
	leastCount = -16     // amounts above it count as amounts with a few codes below zero, as Criteo's -1 to -3
)

// decideOperators decides the operators of every column that is used. Amounts whose names differ only in their number
// get the same operators.
func decideOperators(guesses []*guess) {
	tails := map[string]bool{}
	for _, g := range guesses {
		if g.role == roleNumber && g.hasLongTail() {
			tails[g.family()] = true
		}
	}
	for _, g := range guesses {
		if g.role == roleNumber && g.column.Kind == program.Int64 && g.seen.known && g.seen.least < leastCount {
			delete(tails, g.family())
		}
	}
	for _, g := range guesses {
		switch g.role {
		case roleLabel:
			if g.column.Nullable {
				g.ops = append(g.ops, pipeline.FillNull(pipeline.Int(0)))
			}
		case roleNumber:
			if g.isDecimal() {
				g.ops = append(g.ops, pipeline.Decimal("float32"))
			}
			if g.column.Nullable {
				g.ops = append(g.ops, pipeline.FillNull(pipeline.Int(0)))
			}
			if g.seen.nan {
				g.ops = append(g.ops, pipeline.FillNaN(pipeline.Int(0)))
			}
			if tails[g.family()] {
				g.ops = append(g.ops, pipeline.Clamp(pipeline.With("min", pipeline.Int(0))),
					pipeline.Log(pipeline.With("add", pipeline.Int(1))))
			}
		case roleID:
			if g.isText() {
				g.ops = append(g.ops, g.readsText())
			}
			if g.mayHoldNulls() {
				g.ops = append(g.ops, pipeline.FillNull(pipeline.Int(0)))
			}
			g.ops = append(g.ops, pipeline.SigridHash(hashedIDs, pipeline.With("salt", pipeline.Int(0))))
		}
	}
}

// hasLongTail reports whether the column holds whole numbers in so wide a range that the draft takes their
// logarithm.
func (g *guess) hasLongTail() bool {
	whole := g.column.Kind == program.Int64 && g.column.Bits != 1 && !g.isDecimal()
	return whole && g.seen.known && g.seen.greatest > longTail
}

// family names the columns whose names differ only in the number at their end.
func (g *guess) family() string {
	prefix, _ := splitNumber(g.column.Name)
	return fmt.Sprintf("%v %s", g.column.Kind, prefix)
}

// logicalTypes returns the annotations of the partitions' columns by name. If the partitions of a data set differ in
// a column's annotation, the first one counts.
func logicalTypes(partitions []*partition.Partition) map[string]string {
	types := map[string]string{}
	for _, p := range partitions {
		if p.File == nil {
			continue
		}
		for i := range p.File.Leaves {
			leaf := &p.File.Leaves[i]
			if _, known := types[leaf.Name]; !known {
				types[leaf.Name] = leaf.Logical
			}
		}
	}
	return types
}
