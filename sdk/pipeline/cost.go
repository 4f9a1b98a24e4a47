package pipeline

// estimatedCosts are nanoseconds of one core for a value, by operator: the figures of docs/performance-kernels.md for
// AVX2, or for plain Go where that is all there is. They were measured on different machines, some of them busy, so
// they tell which step of a pipeline costs the most, and not how long a job takes.
var estimatedCosts = map[string]float64{
	"fill_null": 0.14, "fill_nan": 0.5, "clamp": 0.11, "log": 1.01, "bucketize": 1.6, "sigrid_hash": 2.12,
	"positive_modulus": 0.46,
	"hex_to_int":       2.2, "hash_bytes": 8.7, "zero_extend": 0.06, "firstx": 0.3, "logit": 64, "box_cox": 94,
	"ngram":      25,
	"list_slice": 16, "get_local_hour": 8, "map_id": 23, "normalize": 75, "min_max": 75, "identity": 0,
	"hash_cross": 3.7, "scores": 0, "hash_bucket": 2.5,
}

// estimateCost returns the estimated nanoseconds of one core for a value, and whether there is an estimate.
func (o *Op) estimateCost() (nanoseconds float64, known bool) {
	if table, ok := o.arg("table"); o.Name == "map_id" && ok {
		if t, ok := table.Value.(IDTable); ok && t.Keys == nil {
			return 4, true // a list is looked up without a search
		}
	}
	nanoseconds, known = estimatedCosts[o.Name]
	return nanoseconds, known
}
