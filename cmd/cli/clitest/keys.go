package clitest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// units are how a number's key may end.
var units = regexp.MustCompile(`(^|_)(bytes|khz|seconds|minutes|hours|ns|rows|watts|usd|celsius|percent|share|` +
	`ratio)$|_per_(second|usd|gb|command)$`)

// counts are numbers without a unit: the number of the things that the key names, or the number of one of them.
var counts = map[string]bool{
	"rounds":   true,
	"switches": true, "other_jobs": true, "turns": true, "speedup": true, // of bench regions
	"dilation":     true, // a factor
	"mini_batches": true, "short_mini_batches": true, "split_mini_batches": true, "cut_row_groups": true,
	"fragments": true, "jobs": true, "drives": true, "drives_wanted": true, "drives_peak": true, "stalls": true,
	"queue_depth_mean": true,
	"region":           true, "regions": true, "boot_slot": true, "previous_slot": true, "slm_first_byte": true,
	"nsid": true, "csi": true, "slot": true, "engine_threads": true, "threads": true, "programs_run": true,
	"rows_dropped": true,
	"depth":        true, "connections": true, "buffers": true, "commands": true, "iops": true, "host_reads": true,
	"host_writes": true, "power_cycles": true, "unsafe_shutdowns": true, "media_errors": true,
	"error_log_entries": true,
	"busy_drives":       true, "cores": true, "cores_a_drive": true, "refusal_number": true,
	"nodes": true, "splits": true, "epoch": true, "epochs": true, "rank": true, "mini_batches_delivered": true,
	"mini_batches_acknowledged": true, "queue_mini_batches": true, "leases_redelivered": true, "outstanding_leases": true,
	"partitions": true, "absent_partitions": true, "streams": true,
	"splits_running": true, "buffered_fragments": true, "source_failures": true,
	"fewest_copies": true, "bad_copies": true, "owner_splits": true, "revision": true, "restored_revision": true,
	"fences_above": true, "num_embeddings": true,
	"workers": true, "workers_ready": true, "splits_held": true, "splits_of_reach_any": true, "splits_own": true,
	"own_workers": true, "leases_failed": true,
	"cases": true, "seed": true, "mean_workers": true,
	"keys": true, "seen_keys": true, "appended_keys": true, "table": true, "before_keys": true, "after_keys": true,
	"same_keys": true, "moved_keys": true, "added_keys": true, "removed_keys": true,
	"values": true, "data_set_values": true, "nan_values": true, "positive_infinite_values": true,
	"negative_infinite_values": true,
	"distinct_values":          true, "missed_count": true, "count": true, "drifted_columns": true,
	// Values of columns, in the unit of the column, and numbers of values.
	"least": true, "greatest": true, "mean": true, "deviation": true, "value": true,
	// Moves of statistics: in deviations, relative, or indices without a unit.
	"null_rate_difference": true, "mean_move_deviations": true, "greatest_quantile_move_deviations": true,
	"distinct_values_change": true, "stability_index": true, "frequent_values_stability_index": true,
	"mean_list_length_change": true,
	// A plan's counts, and the range of a figure in the figure's unit.
	"racks": true, "cards": true, "spare_drives": true, "storage_nodes": true, "pool_nodes": true,
	"network_interfaces": true, "trainer_network_interfaces": true, "training_nodes": true, "years": true,
	"low": true, "high": true,
	// Energy, and the width of an integer: the key is the unit.
	"joules": true, "bits": true,
	// Resources of an FPGA, and elements of its units.
	"lut": true, "block_ram18": true, "ultra_ram": true, "dsp": true, "parquet": true, "bucketize": true,
	"sigrid_hash": true, "log": true, "decoder_lanes": true, "designs": true, "fitting_designs": true,
}

// CheckKeys checks the keys of what commands printed in JSON, by the commands' names: they are snake_case, and a
// number's key ends in its unit, or is a count.
func CheckKeys(t *testing.T, printed map[string]string) {
	t.Helper()
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	for name, text := range printed {
		d := json.NewDecoder(strings.NewReader(text))
		var v any
		require.NoError(t, d.Decode(&v), "%s: %s", name, text)
		assert.False(t, d.More(), "%s prints more than one value", name)
		var walk func(path string, v any)
		walk = func(path string, v any) {
			switch v := v.(type) {
			case map[string]any:
				for key, x := range v {
					assert.Regexp(t, snake, key, "%s: %s", name, path)
					if _, ok := x.(float64); ok {
						assert.True(t, units.MatchString(key) || counts[key], "%s: %s.%s is a number without a unit",
							name, path, key)
					}
					// A list that is empty is []; an unknown quantity may be null.
					assert.True(t, x != nil || units.MatchString(key), "%s: %s.%s is null", name, path, key)
					walk(path+"."+key, x)
				}
			case []any:
				for _, x := range v {
					walk(path+"[]", x)
				}
			}
		}
		walk("", v)
	}
}
