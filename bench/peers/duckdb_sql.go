package main

import (
	"fmt"
	"math"
	"strings"
)

// duckQuery is the pipeline as SQL: label, dense features, sparse ones, generated ones. Which hash: DuckDB's own, or
// SigridHash spelt out. CASE, because greatest and least of floats take 38 ns each; and it turns null into 0 besides.
func duckQuery(d *dataset, sigridHash bool) string {
	h := ownHash
	if sigridHash {
		h = sigridSQL
	}
	var b strings.Builder
	b.WriteString("SELECT label::FLOAT")
	for i := range d.Model.Dense {
		fmt.Fprintf(&b, ",\n ln((CASE WHEN int_%[1]d > 0 THEN int_%[1]d ELSE 0 END::FLOAT + 1::FLOAT)::DOUBLE)::FLOAT",
			i)
	}
	for i := range d.Model.Sparse {
		if d.Model.Lists {
			fmt.Fprintf(&b, ",\n %s", h.list(fmt.Sprintf("cat_%d", i), d.Max))
		} else {
			fmt.Fprintf(&b, ",\n %s", h.scalar(fmt.Sprintf("coalesce(cat_%d, 0)", i), d.Max))
		}
	}
	for i := range d.Model.Generated {
		fmt.Fprintf(&b, ",\n %s", h.scalar(bucketSQL(fmt.Sprint("int_", i), d), d.Max))
	}
	fmt.Fprintf(&b, "\nFROM read_parquet('%s')", strings.ReplaceAll(d.Path, "'", "''"))
	return b.String()
}

// bucketSQL is the number of borders below a column's value. DuckDB has no search among borders; these are log-spaced,
// so the nearest one is found by logarithm, and a compare with it, in float32, settles on which side the value is.
func bucketSQL(column string, d *dataset) string {
	from := math.Log(d.From)
	step := (math.Log(d.To) - from) / float64(len(d.Borders)-1)
	v := fmt.Sprintf("coalesce(%s, 0)::FLOAT", column)
	inside := fmt.Sprintf(
		"CASE WHEN %[1]s >= %[2]v::FLOAT THEN %[2]v::FLOAT WHEN %[1]s > %[3]v::FLOAT THEN %[1]s ELSE %[3]v::FLOAT END",
		v, d.To, d.From)
	nearest := fmt.Sprintf("floor((ln((%s)::DOUBLE) - %v::DOUBLE) * %v::DOUBLE + 0.5::DOUBLE)", inside, from, 1/step)
	return fmt.Sprintf("(%s + (exp(%v::DOUBLE + %s * %v::DOUBLE)::FLOAT < %s)::INTEGER)::BIGINT", nearest, from,
		nearest, step, v)
}

// hashSQL is a hash as steps of SQL. Each step is an expression of the result of the previous step, called k.
type hashSQL []string

// ownHash is DuckDB's hash, modulo max. (A user of DuckDB would use DuckDB's own hash.)
var ownHash = hashSQL{"(hash(k) % MAX)::INTEGER"}

// sigridSQL is SigridHash with salt 0 of ids that are not negative. 64-bit arithmetic that wraps is 128-bit
// arithmetic and a mask, because DuckDB's 64-bit arithmetic fails instead of wrapping.
var sigridSQL = hashSQL{
	"((18446744073709551615::UHUGEINT " +
		"- k::UBIGINT + k::UBIGINT::UHUGEINT * 2097152::UHUGEINT) & 18446744073709551615::UHUGEINT)::UBIGINT",
	"xor(k, k >> 24)",
	"((k::UHUGEINT * 265::UHUGEINT) & 18446744073709551615::UHUGEINT)::UBIGINT",
	"xor(k, k >> 14)",
	"((k::UHUGEINT * 21::UHUGEINT) & 18446744073709551615::UHUGEINT)::UBIGINT",
	"xor(k, k >> 28)",
	"((k::UHUGEINT * 2147483649::UHUGEINT) & 18446744073709551615::UHUGEINT)::UBIGINT",
	"((k::UHUGEINT * 11376068507788127593::UHUGEINT) & 18446744073709551615::UHUGEINT)::UBIGINT",
	"xor(k, k >> 47)",
	"((k::UHUGEINT * 11376068507788127593::UHUGEINT) & 18446744073709551615::UHUGEINT)::UBIGINT",
	"xor(k, k >> 47)",
	"((k::UHUGEINT * 11376068507788127593::UHUGEINT) & 18446744073709551615::UHUGEINT)::UBIGINT",
	"((k % MAX + CASE WHEN k >= 9223372036854775808::UBIGINT THEN MAX - WRAP ELSE 0 END) % MAX)::INTEGER",
}

// list applies the steps to a list's elements, one list_transform a step.
func (h hashSQL) list(column string, max int64) string {
	for i := range h {
		column = fmt.Sprintf("list_transform(%s, lambda k: %s)", column, h.step(i, max))
	}
	return column
}

// scalar applies the steps to an expression. A list of one element names an expression that a step uses twice.
func (h hashSQL) scalar(x string, max int64) string {
	if len(h) == 1 {
		return strings.ReplaceAll(h.step(0, max), "(k)", "("+x+")")
	}
	return h.list("["+x+"]", max) + "[1]"
}

// step returns step i with its numbers: MAX, and WRAP, which is 2^64 modulo max.
func (h hashSQL) step(i int, max int64) string {
	wrap := (math.MaxUint64%uint64(max) + 1) % uint64(max)
	return strings.NewReplacer("MAX", fmt.Sprint(max), "WRAP", fmt.Sprint(wrap)).Replace(h[i])
}
