package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// badDocuments are pipelines that are refused, against the zoo, with the whole text of the error.
var badDocuments = []struct {
	name, doc string
	is        error
	want      string // every line without its "pipeline: "
}{
	{"empty", "", problem.ErrSyntax, "syntax error: the document is empty"},
	{"only a comment", "# nothing\n", problem.ErrSyntax, "syntax error: the document is empty"},
	{"no YAML", "dense: [", problem.ErrSyntax, "syntax error: line 1: did not find expected node content"},
	{"no mapping", "- dense", problem.ErrValue,
		"line 1:1: wrong value: a list, want a mapping of name, batch, ids, dense_type, " +
			"label, values, dense, sparse, generated, vocabularies, statistics, filter"},
	{"two documents", "label: {column: label}\n---\nlabel: {column: label}\n", problem.ErrSyntax,
		"line 2:1: syntax error: a second document; one file holds one pipeline"},
	{"no outputs", "name: x", problem.ErrEmpty, "pipeline has no outputs: want a label, dense, sparse or generated"},
	{"unknown key", "label: {column: label}\ndens: []", problem.ErrUnknownKey,
		`line 2:1: dens: unknown key: "dens"; did you mean "dense"?`},
	{"key far from all", "label: {column: label}\nxyzzy: []", problem.ErrUnknownKey,
		`line 2:1: xyzzy: unknown key: "xyzzy"; want one of name, batch, ids, dense_type, label, ` +
			`values, dense, sparse, generated, vocabularies, statistics, filter`},
	{"key twice", "name: a\nname: b\nlabel: {column: label}", problem.ErrDuplicate, `line 2:1: name: given twice: "name"`},
	{"key that is a list", "[a]: 1", problem.ErrValue, "line 1:1: wrong value: a list as a key"},
	{"merge", "label: {column: label}\n<<: {name: x}", problem.ErrUnknownKey,
		`line 2:1: <<: unknown key: "<<"; want one of name, batch, ids, dense_type, label, values, dense, sparse, ` +
			`generated, vocabularies, statistics, filter`},
	{"batch that is text", "batch: many\nlabel: {column: label}", problem.ErrValue,
		`line 1:8: batch: wrong value: the text "many", want a number`},
	{"batch that is real", "batch: 1.5\nlabel: {column: label}", problem.ErrValue,
		"line 1:8: batch: wrong value: 1.5, want a whole number from 1 to 16777216"},
	{"batch of nothing", "batch: 0\nlabel: {column: label}", problem.ErrValue,
		"line 1:8: batch: wrong value: 0, want a whole number from 1 to 16777216"},
	{"batch beyond 64 bits", "batch: 99999999999999999999\nlabel: {column: label}", problem.ErrValue,
		"line 1:8: batch: wrong value: 1.0e+20, want a whole number from 1 to 16777216"},
	{"ids of a size", "ids: int16\nlabel: {column: label}", problem.ErrValue,
		`line 1:6: ids: wrong value: "int16", want int32, int64 or auto`},
	{"dense type of no kind", "dense_type: float16\nlabel: {column: label}", problem.ErrValue,
		`line 1:13: dense_type: wrong value: "float16", want float32 or bfloat16`},
	{"dense type that is a number", "dense_type: 16\nlabel: {column: label}", problem.ErrValue,
		"line 1:13: dense_type: wrong value: the number 16, want float32 or bfloat16; put it in quotes if it is meant " +
			"as text"},
	{"deduplicate that is text", "sparse: [{columns: [i], deduplicate: together}]", problem.ErrValue,
		`line 1:38: sparse[0].deduplicate: wrong value: the text "together", want true or false`},
	{"deduplicated dense", "dense: [{columns: [f], deduplicate: true}]", problem.ErrValue,
		"line 1:9: dense[0]: wrong value: deduplicate: only keys have rows that are lists of ids; put it to a group of " +
			"sparse or generated"},
	{"dense type twice", "dense_type: bfloat16\ndense_type: bfloat16\nlabel: {column: label}", problem.ErrDuplicate,
		`line 2:1: dense_type: given twice: "dense_type"`},
	{"ids that are a number", "ids: 32\nlabel: {column: label}", problem.ErrValue,
		"line 1:6: ids: wrong value: the number 32, want int32, int64 or auto; put it in quotes if it is meant as text"},
	{"name that is a list", "name: [a]\nlabel: {column: label}", problem.ErrValue,
		"line 1:7: name: wrong value: a list, want the pipeline's name"},
	{"label without column", "label: {ops: []}", problem.ErrMissing,
		"line 1:8: label: missing: column: the name of the column with the label"},
	{"label that is text", "label: label", problem.ErrValue,
		`line 1:8: label: wrong value: the text "label", want a mapping of column, null, nan, ops`},
	{"dense that is a mapping", "dense: {columns: [i]}", problem.ErrValue,
		"line 1:8: dense: wrong value: a mapping, want a list of groups of columns"},
	{"group without columns", "dense:\n  - ops: [fill_null: 0]", problem.ErrMissing,
		"line 2:5: dense[0]: missing: columns: at least one"},
	{"column that is a number", "dense: [{columns: [1]}]", problem.ErrValue,
		"line 1:20: dense[0].columns[0]: wrong value: the number 1, want a column; put it in quotes if it is meant " +
			"as text"},
	{"column without a name that is not there", `dense: [{columns: [""]}]`, problem.ErrMissingColumn,
		`line 1:20: dense[0].columns[0]: missing column: "" is not in the dataset`},
	{"columns that are text", "dense: [{columns: i}]", problem.ErrValue,
		`line 1:19: dense[0].columns: wrong value: the text "i", want a list of columns`},
	{"unknown key of a group", "dense: [{columns: [i], op: []}]", problem.ErrUnknownKey,
		`line 1:24: dense[0].op: unknown key: "op"; did you mean "ops"?`},

	{"unknown operator", "dense:\n  - columns: [i]\n    ops: [fill_null: 0, clmap: {min: 0}]", problem.ErrUnknownOperator,
		`line 3:25: dense[0].ops[1]: unknown operator: "clmap"; did you mean "clamp"?`},
	{"unknown operator by name alone", "dense: [{columns: [i], ops: [lgo]}]", problem.ErrUnknownOperator,
		`line 1:30: dense[0].ops[0]: unknown operator: "lgo"; did you mean "log"?`},
	{"unknown operator far from all", "dense: [{columns: [i], ops: [telescope]}]", problem.ErrUnknownOperator,
		`line 1:30: dense[0].ops[0]: unknown operator: "telescope"; want one of ` + strings.Join(catalogueNames(), ", ")},
	{"two operators in one", "dense: [{columns: [i], ops: [{fill_null: 0, log: {add: 1}}]}]", problem.ErrValue,
		"line 1:30: dense[0].ops[0]: wrong value: a mapping of 2, want one operator and its parameters"},
	{"operator that is a number", "dense: [{columns: [i], ops: [3]}]", problem.ErrValue,
		"line 1:30: dense[0].ops[0]: wrong value: the number 3, want an operator"},
	{"ops that are a mapping", "dense: [{columns: [i], ops: {log: {add: 1}}}]", problem.ErrValue,
		"line 1:29: dense[0].ops: wrong value: a mapping, want a list of operators"},
	{"unknown parameter", "dense: [{columns: [i], ops: [log: {ad: 1}]}]", problem.ErrUnknownParam,
		`line 1:36: dense[0].ops[0].log.ad: unknown parameter: "ad"; did you mean "add"?`},
	{"parameter twice", "dense: [{columns: [i], ops: [log: {add: 1, add: 2}]}]", problem.ErrDuplicate,
		`line 1:44: dense[0].ops[0].log.add: given twice: "add"`},
	{"parameter of the wrong type", "dense: [{columns: [i], ops: [log: {add: one}]}]", problem.ErrValue,
		`line 1:41: dense[0].ops[0].log.add: wrong value: the text "one", want a number`},
	{"parameter that is not a mapping", "dense: [{columns: [i], ops: [log: 1]}]", problem.ErrValue,
		"line 1:35: dense[0].ops[0].log: wrong value: the number 1, want a mapping of add"},
	{"parameter missing", "sparse: [{columns: [i], ops: [sigrid_hash: {salt: 1}]}]", problem.ErrMissing,
		"line 1:31: sparse[0].ops[0].sigrid_hash: missing: max: number of ids that come out: the rows of the " +
			"embedding table"},
	{"label null of another kind", "label: {column: i_null, null: drop}", problem.ErrValue,
		`line 1:31: label.null: wrong value: the text "drop", want a number`},
	{"label null fails by name", "label: {column: i_null, \"null\": fail}", problem.ErrNull,
		`line 1:8: label: column "i_null": null can reach the output: the column may be null and a label has no place for ` +
			`one; write label: {column: i_null, null: 0} with the value that a row without label is to have, or make the ` +
			`column required`},
	{"short parameter missing", "dense: [{columns: [i], ops: [fill_null]}]", problem.ErrMissing,
		"line 1:30: dense[0].ops[0].fill_null: missing: value: what a null becomes; for float32 columns rounded to " +
			"float32"},
	{"parameters of an operator without", "sparse: [{columns: [i], ops: [zero_extend: {bits: 32}]}]",
		problem.ErrUnknownParam,
		"line 1:44: sparse[0].ops[0].zero_extend: unknown parameter: zero_extend takes no parameters"},
	{"max of zero", "sparse: [{columns: [i], ops: [sigrid_hash: {max: 0}]}]", problem.ErrValue,
		"line 1:50: sparse[0].ops[0].sigrid_hash.max: wrong value: 0, want at least 1"},
	{"max that is real", "sparse: [{columns: [i], ops: [sigrid_hash: {max: 1.0}]}]", problem.ErrValue,
		"line 1:50: sparse[0].ops[0].sigrid_hash.max: wrong value: the number 1.0, want a whole number"},
	{"max beyond 64 bits", "sparse: [{columns: [i], ops: [sigrid_hash: {max: 9223372036854775808}]}]", problem.ErrValue,
		"line 1:50: sparse[0].ops[0].sigrid_hash.max: wrong value: 9223372036854775808 does not fit 64 bits"},
	{"modulus below zero", "sparse: [{columns: [i], ops: [positive_modulus: -3]}]", problem.ErrValue,
		"line 1:49: sparse[0].ops[0].positive_modulus.modulus: wrong value: -3, want at least 1"},
	{"n below zero", "sparse: [{columns: [list], ops: [firstx: {n: -1}]}]", problem.ErrValue,
		"line 1:46: sparse[0].ops[0].firstx.n: wrong value: -1, want at least 0"},
	{"clamp without bounds", "dense: [{columns: [i], ops: [clamp: {}]}]", problem.ErrMissing,
		"line 1:30: dense[0].ops[0].clamp: missing: min or max"},
	{"clamp the wrong way", "dense: [{columns: [i], ops: [clamp: {min: 2, max: 1}]}]", problem.ErrValue,
		"line 1:30: dense[0].ops[0].clamp: wrong value: min 2 > max 1"},
	{"eps beyond a half", "dense: [{columns: [f], ops: [logit: {eps: 0.6}]}]", problem.ErrValue,
		"line 1:43: dense[0].ops[0].logit.eps: wrong value: 0.6, want at most 0.5"},
	{"lambda1 missing", "dense: [{columns: [f], ops: [box_cox: {}]}]", problem.ErrMissing,
		"line 1:30: dense[0].ops[0].box_cox: missing: lambda1: the power; rounded to float32"},
	{"lambda2 of rap", "dense: [{columns: [f], ops: [box_cox: {lambda1: 2, mode: rap, lambda2: 1}]}]", problem.ErrValue,
		"line 1:72: dense[0].ops[0].box_cox.lambda2: wrong value: 1 with mode rap, which has none; leave it out, or say " +
			"mode: caffe2"},
	{"mode of another", "dense: [{columns: [f], ops: [box_cox: {lambda1: 2, mode: scipy}]}]", problem.ErrValue,
		`line 1:58: dense[0].ops[0].box_cox.mode: wrong value: the text "scipy", want one of caffe2, rap`},
	{"logit of a list", "sparse: [{columns: [flist], ops: [logit]}]", problem.ErrColumnType,
		`line 1:35: sparse[0].ops[0]: column "flist": wrong type of column: logit of a list: no tensor holds lists of real ` +
			`numbers`},
	{"box_cox of text", "dense: [{columns: [s], ops: [box_cox: {lambda1: 2}]}]", problem.ErrColumnType,
		`line 1:30: dense[0].ops[0]: column "s": wrong type of column: box_cox takes numbers, and these are strings; begin ` +
			`with ` + readsText},
	{"hour of no zone", "sparse: [{columns: [i], ops: [get_local_hour]}]", problem.ErrMissing,
		"line 1:31: sparse[0].ops[0].get_local_hour: missing: zone or offset"},
	{"hour of an unknown zone", "sparse: [{columns: [i], ops: [get_local_hour: {zone: Europe/Berlim}]}]", problem.ErrValue,
		`line 1:54: sparse[0].ops[0].get_local_hour.zone: wrong value: "Europe/Berlim" is not a time zone; did you mean ` +
			`"Europe/Berlin"?`},
	{"hour of the machine's own zone", "sparse: [{columns: [i], ops: [get_local_hour: {zone: Local}]}]", problem.ErrValue,
		`line 1:54: sparse[0].ops[0].get_local_hour.zone: wrong value: "Local" is not a time zone`},
	{"hour of a path", "sparse: [{columns: [i], ops: [get_local_hour: {zone: ../../etc/localtime}]}]", problem.ErrValue,
		`line 1:54: sparse[0].ops[0].get_local_hour.zone: wrong value: "../../etc/localtime" is not a time zone`},
	{"hour of a zone and an offset", "sparse: [{columns: [i], ops: [get_local_hour: {zone: UTC, offset: +01:00}]}]",
		problem.ErrValue, "line 1:67: sparse[0].ops[0].get_local_hour.offset: wrong value: an offset beside a zone or its " +
			"changes, want one of them"},
	{"hour of a day's offset", "sparse: [{columns: [i], ops: [get_local_hour: {offset: +24:00}]}]", problem.ErrValue,
		`line 1:56: sparse[0].ops[0].get_local_hour.offset: wrong value: "+24:00", want hours and minutes ahead of UTC ` +
			`or behind, as +02:00 and -05:30`},
	{"hour of a number", "sparse: [{columns: [i], ops: [get_local_hour: {offset: 2}]}]", problem.ErrValue,
		"line 1:56: sparse[0].ops[0].get_local_hour.offset: wrong value: the number 2, want a word; put it in quotes if it " +
			"is meant as text"},
	{"hour of late changes", "sparse: [{columns: [i], ops: [get_local_hour: {changes: {0: 3600}}]}]", problem.ErrValue,
		"line 1:57: sparse[0].ops[0].get_local_hour.changes: wrong value: the first time is 0, want -9223372036854775808: " +
			"the offset before every change"},
	{"hour of changes by days", "sparse: [{columns: [i], ops: [get_local_hour: {changes: {-9223372036854775808: " +
		"86400}}]}]",
		problem.ErrValue, "line 1:57: sparse[0].ops[0].get_local_hour.changes: wrong value: from -9223372036854775808 on " +
			"an offset of 86400 seconds, want less than a day"},
	{"hour of a list of changes", "sparse: [{columns: [i], ops: [get_local_hour: {changes: [0]}]}]", problem.ErrValue,
		"line 1:57: sparse[0].ops[0].get_local_hour.changes: wrong value: a list, want a mapping of times to offsets, in " +
			"seconds"},
	{"hour of real numbers", "sparse: [{columns: [f], ops: [get_local_hour: {zone: UTC}]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "f": wrong type of column: get_local_hour takes ids (int64), and these are ` +
			`float32; bucketize makes ids of real numbers`},
	{"map_id without a table", "sparse: [{columns: [i], ops: [map_id: {default: 1}]}]", problem.ErrMissing,
		"line 1:31: sparse[0].ops[0].map_id: missing: table: `{key: value}` or a list of values, at most 1048576"},
	{"map_id by nothing", "sparse: [{columns: [i], ops: [map_id: {table: {}}]}]", problem.ErrValue,
		"line 1:47: sparse[0].ops[0].map_id.table: wrong value: 0 values, want 1 to 1048576"},
	{"map_id by a word", "sparse: [{columns: [i], ops: [map_id: {table: x}]}]", problem.ErrValue,
		`line 1:47: sparse[0].ops[0].map_id.table: wrong value: the text "x", want a mapping of ids to ids, or a list of ` +
			`ids`},
	{"map_id of a key twice", "sparse: [{columns: [i], ops: [map_id: {table: {5: 1, 0x5: 2}}]}]", problem.ErrDuplicate,
		"line 1:54: sparse[0].ops[0].map_id.table.5: given twice: key 5"},
	{"map_id of a word", "sparse: [{columns: [i], ops: [map_id: {table: {x: 1}}]}]", problem.ErrValue,
		`line 1:48: sparse[0].ops[0].map_id.table.x: wrong value: the text "x" as a key, want a whole number`},
	{"map_id to a real number", "sparse: [{columns: [i], ops: [map_id: {table: [1, 2.5]}]}]", problem.ErrValue,
		"line 1:51: sparse[0].ops[0].map_id.table[1]: wrong value: 2.5, want a whole number"},
	{"map_id of text", "sparse: [{columns: [s], ops: [map_id: {table: [1]}]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "s": wrong type of column: map_id takes numbers, and these are strings; begin ` +
			`with ` + readsText},
	{"ids of a table in 32 bits", "ids: int32\nsparse: [{columns: [i], ops: [map_id: {table: [1, 2147483648]}]}]",
		problem.ErrIDs,
		`line 2:10: sparse[0]: column "i": ids do not fit int32: ids of "i" may be 0 to 2147483648; end with sigrid_hash, ` +
			`positive_modulus or clamp within int32, or say ids: int64`},
	{"normalize without a deviation", "dense: [{columns: [f], ops: [normalize: {mean: 1}]}]", problem.ErrMissing,
		"line 1:30: dense[0].ops[0].normalize: missing: deviation, or statistics instead of constants"},
	{"normalize by less than nothing", "dense: [{columns: [f], ops: [normalize: {mean: 1, deviation: -2}]}]",
		problem.ErrValue,
		"line 1:62: dense[0].ops[0].normalize.deviation: wrong value: -2, want at least 0"},
	{"normalize by very little", "dense: [{columns: [f], ops: [normalize: {mean: 1, deviation: 1.0e-39}]}]",
		problem.ErrValue,
		"line 1:62: dense[0].ops[0].normalize.deviation: wrong value: 1.0e-39, want 0 or a number of 1.2e-38 to 3.4e38, or " +
			"its negative"},
	{"normalize of a list", "sparse: [{columns: [flist], ops: [normalize: {mean: 1, deviation: 1}]}]",
		problem.ErrColumnType,
		`line 1:35: sparse[0].ops[0]: column "flist": wrong type of column: normalize of a list: no tensor holds lists of ` +
			`real numbers`},
	{"min_max that descends", "dense: [{columns: [f], ops: [min_max: {min: 1, max: 0.5}]}]", problem.ErrValue,
		"line 1:30: dense[0].ops[0].min_max: wrong value: min 1 > max 0.5"},
	{"min_max of text", "dense: [{columns: [s], ops: [min_max: {min: 1, max: 1}]}]", problem.ErrColumnType,
		`line 1:30: dense[0].ops[0]: column "s": wrong type of column: min_max takes numbers, and these are strings; begin ` +
			`with ` + readsText},
	{"list_slice of a scalar", "sparse: [{columns: [i], ops: [list_slice: {end: 2}]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "i": wrong type of column: list_slice takes lists, and this column has one ` +
			`value a row`},
	{"list_slice of text", "sparse: [{columns: [slist], ops: [list_slice: {end: 2}]}]", problem.ErrColumnType,
		`line 1:35: sparse[0].ops[0]: column "slist": wrong type of column: list_slice takes numbers, and these are ` +
			`strings; begin with ` + readsText},
	{"list_slice filled up to any length", "sparse: [{columns: [list], ops: [list_slice: {end: -1, pad: 0}]}]",
		problem.ErrValue,
		`line 1:34: sparse[0].ops[0]: column "list": wrong value: pad: the length of the part depends on the list; lists ` +
			`are filled up to at most 1024 elements, as of start 0 and end 10, or of start -10`},
	{"list_slice filled up with a real number", "sparse: [{columns: [list], ops: [list_slice: {end: 1, pad: 0.5}]}]",
		problem.ErrValue,
		`line 1:34: sparse[0].ops[0]: column "list": wrong value: pad 0.5 of list_slice must be whole: the ` +
			`values are int64`},
	{"ids of what fills up in 32 bits", "ids: int32\nsparse: [{columns: [list], ops: [positive_modulus: 5, list_slice: " +
		"{end: 1, pad: 2147483648}]}]", problem.ErrIDs,
		`line 2:10: sparse[0]: column "list": ids do not fit int32: ids of "list" ` +
			`may be 0 to 2147483648; end with sigrid_hash, positive_modulus or clamp within int32, or say ids: int64`},
	{"ngram of nothing", "sparse: [{columns: [list], ops: [ngram: 0]}]", problem.ErrValue,
		"line 1:41: sparse[0].ops[0].ngram.n: wrong value: 0, want at least 1"},
	{"ngram of many", "sparse: [{columns: [list], ops: [ngram: {n: 17}]}]", problem.ErrValue,
		"line 1:45: sparse[0].ops[0].ngram.n: wrong value: 17, want at most 16"},
	{"windows of windows", "sparse: [{columns: [list], ops: [ngram: {n: 2, mode: rap}, ngram: {n: 2, mode: rap}]}]",
		problem.ErrValue,
		`line 1:60: sparse[0].ops[1]: column "list": wrong value: mode rap a second time in a chain; say it once`},
	{"ngram of a scalar", "sparse: [{columns: [i], ops: [ngram: 2]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "i": wrong type of column: ngram takes lists, and this column has one value a ` +
			`row`},
	{"ngram of real numbers", "sparse: [{columns: [flist], ops: [ngram: 2]}]", problem.ErrColumnType,
		`line 1:35: sparse[0].ops[0]: column "flist": wrong type of column: ngram takes ids (int64), and these are ` +
			`float32; bucketize makes ids of real numbers`},
	{"fill with infinity", "dense: [{columns: [f], ops: [fill_null: .inf]}]", problem.ErrValue,
		"line 1:41: dense[0].ops[0].fill_null.value: wrong value: the number .inf, want a finite number"},
	{"add beyond float32", "dense: [{columns: [f], ops: [log: {add: 1.0e39}]}]", problem.ErrValue,
		"line 1:41: dense[0].ops[0].log.add: wrong value: 1.0e+39 does not fit float32"},

	{"no borders", "sparse: [{columns: [i], ops: [bucketize: {borders: []}]}]", problem.ErrValue,
		"line 1:52: sparse[0].ops[0].bucketize.borders: wrong value: 0 borders, want 1 to 1048576"},
	{"borders unsorted", "sparse: [{columns: [i], ops: [bucketize: {borders: [1, 3, 2]}]}]", problem.ErrValue,
		"line 1:52: sparse[0].ops[0].bucketize.borders[2]: wrong value: borders are not sorted: 2 comes behind 3"},
	{"border that is not a number", "sparse: [{columns: [i], ops: [bucketize: {borders: [1, .nan]}]}]", problem.ErrValue,
		"line 1:52: sparse[0].ops[0].bucketize.borders[1]: wrong value: a border is not a number"},
	{"border that is text", "sparse: [{columns: [i], ops: [bucketize: {borders: [1, x]}]}]", problem.ErrValue,
		`line 1:56: sparse[0].ops[0].bucketize.borders[1]: wrong value: the text "x", want a number`},
	{"borders that are a number", "sparse: [{columns: [i], ops: [bucketize: {borders: 7}]}]", problem.ErrValue,
		"line 1:52: sparse[0].ops[0].bucketize.borders: wrong value: the number 7, want a list of numbers, or " +
			"log_spaced: {from, to, count}"},
	{"borders of another kind", "sparse: [{columns: [i], ops: [bucketize: {borders: {linear: {}}}]}]",
		problem.ErrUnknownParam,
		`line 1:53: sparse[0].ops[0].bucketize.borders.linear: unknown parameter: "linear"; want one of log_spaced`},
	{"borders of no kind", "sparse: [{columns: [i], ops: [bucketize: {borders: {}}]}]", problem.ErrMissing,
		"line 1:52: sparse[0].ops[0].bucketize.borders: missing: log_spaced"},
	{"log_spaced without count", "sparse: [{columns: [i], ops: [bucketize: {borders: {log_spaced: {from: 1, to: " +
		"2}}}]}]", problem.ErrMissing, "line 1:65: sparse[0].ops[0].bucketize.borders.log_spaced: missing: count"},
	{"log_spaced from zero", "sparse: [{columns: [i], ops: [bucketize: {borders: {log_spaced: {from: 0, to: 2, " +
		"count: 4}}}]}]", problem.ErrValue, "line 1:52: sparse[0].ops[0].bucketize.borders.log_spaced: wrong value: from 0 " +
		"to 2, want 0 < from < to"},
	{"log_spaced of one", "sparse: [{columns: [i], ops: [bucketize: {borders: {log_spaced: {from: 1, to: 2, count: " +
		"1}}}]}]", problem.ErrValue, "line 1:89: sparse[0].ops[0].bucketize.borders.log_spaced.count: wrong value: 1, " +
		"want a whole number from 2 to 1048576"},
	{"log_spaced compared as int64", "sparse: [{columns: [i], ops: [bucketize: {borders: {log_spaced: {from: 1, to: " +
		"2, count: 4}}, compare: int64}]}]", problem.ErrValue,
		`line 1:31: sparse[0].ops[0]: column "i": wrong value: log_spaced borders are real numbers: compare as float32 or ` +
			`float64`},
	{"side of no kind", "sparse: [{columns: [i], ops: [bucketize: {borders: [1], side: up}]}]", problem.ErrValue,
		`line 1:63: sparse[0].ops[0].bucketize.side: wrong value: the text "up", want one of left, right`},
	{"nan of no kind", "sparse: [{columns: [i], ops: [bucketize: {borders: [1], nan: zero}]}]", problem.ErrValue,
		`line 1:62: sparse[0].ops[0].bucketize.nan: wrong value: the text "zero", want one of torcharrow, first, last, ` +
			`error`},
	{"border beyond float32", "sparse: [{columns: [d], ops: [bucketize: {borders: [1.0e39]}]}]", problem.ErrValue,
		`line 1:31: sparse[0].ops[0]: column "d": wrong value: border 0 (1.0e+39) does not fit float32`},
	{"border that is not whole", "sparse: [{columns: [i], ops: [bucketize: {borders: [1, 1.5], compare: int64}]}]",
		problem.ErrValue,
		`line 1:31: sparse[0].ops[0]: column "i": wrong value: border 1 (1.5) must be whole to compare as int64`},
	{"float compared as int64", "sparse: [{columns: [f], ops: [bucketize: {borders: [1], compare: int64}]}]",
		problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "f": wrong type of column: compare: int64 takes int64, and these are float32`},

	{"missing column", "dense: [{columns: [fnull]}]", problem.ErrMissingColumn,
		`line 1:20: dense[0].columns[0]: missing column: "fnull" is not in the dataset`},
	{"missing label", "label: {column: click}", problem.ErrMissingColumn,
		`line 1:8: label.column: missing column: "click" is not in the dataset`},
	{"missing column of a range", "dense: [{columns: [c_0..c_3]}]", problem.ErrMissingColumn,
		`line 1:20: dense[0].columns[0]: missing column: "c_3", of "c_0..c_3", is not in the dataset`},
	{"range of other names", "dense: [{columns: [c_0..d_3]}]", problem.ErrPattern,
		`line 1:20: dense[0].columns[0]: wrong column pattern: "c_0..d_3": the names before the numbers differ`},
	{"range without numbers", "dense: [{columns: [c..d]}]", problem.ErrPattern,
		`line 1:20: dense[0].columns[0]: wrong column pattern: "c..d": a range goes from one numbered column to another, ` +
			`as int_0..int_12`},
	{"range backwards", "dense: [{columns: [c_2..c_0]}]", problem.ErrPattern,
		`line 1:20: dense[0].columns[0]: wrong column pattern: "c_2..c_0": the first number is above the last`},
	{"range too wide", "dense: [{columns: [c_0..c_70000]}]", problem.ErrPattern,
		`line 1:20: dense[0].columns[0]: wrong column pattern: "c_0..c_70000": 70001 columns, want at most 65536`},
	{"range of large numbers", "dense: [{columns: [c_0..c_99999999999]}]", problem.ErrPattern,
		`line 1:20: dense[0].columns[0]: wrong column pattern: "c_0..c_99999999999": a number is too large`},
	{"range of uneven zeros", "dense: [{columns: [z_00..z_1]}]", problem.ErrPattern,
		`line 1:20: dense[0].columns[0]: wrong column pattern: "z_00..z_1": numbers that begin with 0 must be of one length`},
	{"glob of nothing", `dense: [{columns: ["q_*"]}]`, problem.ErrPattern,
		`line 1:20: dense[0].columns[0]: wrong column pattern: "q_*" matches no column`},
	{"unsupported column", "dense: [{columns: [odd]}]", problem.ErrUnsupported,
		`line 1:9: dense[0]: column "odd": column cannot be read: INT96 is not decoded`},
	{"feature twice", "dense: [{columns: [i, f]}, {columns: [i]}]", problem.ErrDuplicate,
		`line 1:28: dense[1]: column "i": given twice: a second dense feature named "i"; name it with as`},
	{"key twice", "sparse: [{columns: [i]}]\ngenerated:\n  - columns: [c_0]\n    as: i", problem.ErrDuplicate,
		`line 3:5: generated[0]: column "c_0": given twice: a second key feature named "i"; name it with as`},
	{"as without a number", "dense: [{columns: [i], as: \"x_{n}\"}]", problem.ErrPattern,
		`line 1:20: dense[0].columns[0]: column "i": wrong column pattern: "x_{n}": the column has no number at its end ` +
			`for {n}; use {column} or {i}`},
	{"as with other braces", "dense: [{columns: [i], as: \"x_{m}\"}]", problem.ErrValue,
		`line 1:28: dense[0].as: wrong value: "x_{m}": {m}, want {n}, {i} or {column}`},
	{"as with half a brace", "dense: [{columns: [i], as: \"x_{n\"}]", problem.ErrValue,
		`line 1:28: dense[0].as: wrong value: "x_{n": a brace without its other`},

	{"log of a list", "sparse: [{columns: [flist], ops: [log: {add: 1}]}]", problem.ErrColumnType,
		`line 1:35: sparse[0].ops[0]: column "flist": wrong type of column: log of a list: no tensor holds lists of real ` +
			`numbers`},
	{"log of strings", "dense: [{columns: [s], ops: [log]}]", problem.ErrColumnType,
		`line 1:30: dense[0].ops[0]: column "s": wrong type of column: log takes numbers, and these are strings; begin ` +
			`with ` + readsText},
	{"dense from a list", "dense: [{columns: [list]}]", problem.ErrColumnType,
		`line 1:9: dense[0]: column "list": wrong type of column: a list cannot be dense: only sparse features have ` +
			`several values a row; fixed_length makes dense columns of lists of one length, and list_length counts their ` +
			`elements`},
	{"label from a list", "label: {column: list}", problem.ErrColumnType,
		`line 1:8: label: column "list": wrong type of column: a list cannot be label: only sparse features have several ` +
			`values a row; list_length counts their elements`},
	{"dense from strings", "dense: [{columns: [s]}]", problem.ErrColumnType,
		`line 1:9: dense[0]: column "s": wrong type of column: dense takes numbers, and these are strings; begin with ` +
			readsText},
	{"hash of a float", "sparse: [{columns: [f], ops: [sigrid_hash: {max: 10}]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "f": wrong type of column: sigrid_hash takes ids (int64), and these are ` +
			`float32; bucketize makes ids of real numbers`},
	{"modulus of a logarithm", "sparse: [{columns: [i], ops: [log, positive_modulus: 3]}]", problem.ErrColumnType,
		`line 1:36: sparse[0].ops[1]: column "i": wrong type of column: positive_modulus takes ids (int64), and these are ` +
			`float32; bucketize makes ids of real numbers`},
	{"sparse floats", "sparse: [{columns: [f]}]", problem.ErrColumnType,
		`line 1:10: sparse[0]: column "f": wrong type of column: sparse values are ids (int64), and these are float32; ` +
			`bucketize makes ids of real numbers`},
	{"hex of numbers", "sparse: [{columns: [i], ops: [hex_to_int]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "i": wrong type of column: hex_to_int takes strings, and these are int64 (the ` +
			`decoder of Criteo's rows reads their ids itself)`},
	{"cast of text", "sparse: [{columns: [s], ops: [cast: int64]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "s": wrong type of column: cast takes numbers, and these are strings; ` +
			`begin with ` + readsText},
	{"cast to no type", "sparse: [{columns: [f], ops: [cast]}]", problem.ErrMissing,
		"line 1:31: sparse[0].ops[0].cast: missing: to: the type"},
	{"cast to another type", "sparse: [{columns: [f], ops: [cast: int32]}]", problem.ErrValue,
		`line 1:37: sparse[0].ops[0].cast.to: wrong value: the text "int32", want one of int64, float32, float64, ` +
			`float64_bits`},
	{"cast of reals that overflow", "dense: [{columns: [d], ops: [cast: {to: float32, overflow: fail}]}]",
		problem.ErrValue,
		`line 1:60: dense[0].ops[0].cast.overflow: wrong value: of float32, want to: int64, the only type that a number ` +
			`can overflow`},
	{"cast to real ids", "sparse: [{columns: [i], ops: [cast: float64]}]", problem.ErrColumnType,
		`line 1:10: sparse[0]: column "i": wrong type of column: sparse values are ids (int64), and these are float64; ` +
			`bucketize makes ids of real numbers`},
	{"dense null made by cast", "dense: [{columns: [d], ops: [cast: {to: int64, overflow: as_null}]}]", problem.ErrNull,
		`line 1:9: dense[0]: column "d": null can reach the output: the column may be null and dense features have no ` +
			`place for one; put fill_null first`},
	{"cast to ids of 32 bits", "ids: int32\nsparse: [{columns: [u64], ops: [cast: int64]}]", problem.ErrIDs,
		`line 2:10: sparse[0]: column "u64": ids do not fit int32: ids of "u64" may be 0 to 9223372036854775807; end with ` +
			`sigrid_hash, positive_modulus or clamp within int32, or say ids: int64`},
	{"text_to_int of numbers", "sparse: [{columns: [i], ops: [text_to_int]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "i": wrong type of column: text_to_int takes text, and these are int64`},
	{"text_to_seconds of numbers", "sparse: [{columns: [i], ops: [text_to_seconds]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "i": wrong type of column: text_to_seconds takes text, and these are int64`},
	{"text_to_seconds with the name of a zone", "sparse: [{columns: [s], ops: [text_to_seconds: {offset: UTC}]}]",
		problem.ErrValue,
		`line 1:57: sparse[0].ops[0].text_to_seconds.offset: wrong value: "UTC" is not an offset: want one as ` +
			`"+00:00", of at most 23:59`},
	{"text_to_seconds a day ahead", "sparse: [{columns: [s], ops: [text_to_seconds: {offset: +24:00}]}]",
		problem.ErrValue,
		`line 1:57: sparse[0].ops[0].text_to_seconds.offset: wrong value: "+24:00" is not an offset: want one ` +
			`as "+00:00", of at most 23:59`},
	{"dense null made by text_to_int", "dense: [{columns: [s], ops: [text_to_int]}]", problem.ErrNull,
		`line 1:9: dense[0]: column "s": null can reach the output: the column may be null and dense features have no ` +
			`place for one; put fill_null first`},
	{"dense null made by text_to_seconds", "dense: [{columns: [s], ops: [text_to_seconds]}]", problem.ErrNull,
		`line 1:9: dense[0]: column "s": null can reach the output: the column may be null and dense features have no ` +
			`place for one; put fill_null first`},
	{"times of text in 32 bits", "ids: int32\nsparse: [{columns: [s], ops: [text_to_seconds]}]", problem.ErrIDs,
		`line 2:10: sparse[0]: column "s": ids do not fit int32: ids of "s" may be -62167305540 to 253402387139; end with ` +
			`sigrid_hash, positive_modulus or clamp within int32, or say ids: int64`},
	{"hash_bytes of numbers", "sparse: [{columns: [i], ops: [hash_bytes: xxh3]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "i": wrong type of column: hash_bytes takes strings, and these are int64; ` +
			`sigrid_hash hashes ids`},
	{"hash_bytes after hex_to_int", "sparse: [{columns: [s], ops: [hex_to_int, hash_bytes: xxh3]}]", problem.ErrColumnType,
		`line 1:43: sparse[0].ops[1]: column "s": wrong type of column: hash_bytes takes strings, and these are int64; ` +
			`sigrid_hash hashes ids`},
	{"hash_bytes by no function", "sparse: [{columns: [s], ops: [hash_bytes]}]", problem.ErrMissing,
		"line 1:31: sparse[0].ops[0].hash_bytes: missing: function: hash function"},
	{"hash_bytes by another function", "sparse:\n  - columns: [s]\n    ops: [hash_bytes: sha256]", problem.ErrValue,
		`line 3:23: sparse[0].ops[0].hash_bytes.function: wrong value: the text "sha256", want one of xxh3, ` +
			`murmur3_32, farmhash64`},
	{"hash_bytes with a seed", "sparse: [{columns: [s], ops: [hash_bytes: {function: xxh3, seed: 1}]}]",
		problem.ErrUnknownParam,
		`line 1:60: sparse[0].ops[0].hash_bytes.seed: unknown parameter: "seed"; want one of function`},
	{"ids of 64 bits in 32", "ids: int32\nsparse: [{columns: [s], ops: [hash_bytes: xxh3]}]", problem.ErrIDs,
		`line 2:10: sparse[0]: column "s": ids do not fit int32: ids of "s" may be -9223372036854775808 to ` +
			`9223372036854775807; end with sigrid_hash, positive_modulus or clamp within int32, or say ids: int64`},
	{"firstx of a scalar", "sparse: [{columns: [i], ops: [firstx: 3]}]", problem.ErrColumnType,
		`line 1:31: sparse[0].ops[0]: column "i": wrong type of column: firstx takes lists, and this column has one value ` +
			`a row`},
	{"fill of integers with a real number", "dense: [{columns: [i_null], ops: [fill_null: 0.5]}]", problem.ErrValue,
		`line 1:35: dense[0].ops[0]: column "i_null": wrong value: value 0.5 of fill_null must be whole: the values are ` +
			`int64`},
	{"bound beyond float32", "dense: [{columns: [f], ops: [clamp: {max: 1.0e39}]}]", problem.ErrValue,
		`line 1:30: dense[0].ops[0]: column "f": wrong value: max 1.0e+39 of clamp does not fit float32`},

	{"dense null", "dense:\n  - columns: [f_null]\n    ops: [clamp: {min: 0}]", problem.ErrNull,
		`line 2:5: dense[0]: column "f_null": null can reach the output: the column may be null and dense features have no ` +
			`place for one; put fill_null first`},
	{"label null", "label: {column: i_null}", problem.ErrNull,
		`line 1:8: label: column "i_null": null can reach the output: the column may be null and a label has no place for ` +
			`one; write label: {column: i_null, null: 0} with the value that a row without label is to have, or make the ` +
			`column required`},
	{"dense null made by hex_to_int", "dense: [{columns: [s], ops: [hex_to_int]}]", problem.ErrNull,
		`line 1:9: dense[0]: column "s": null can reach the output: the column may be null and dense features have no ` +
			`place for one; put fill_null first`},
	{"ids that do not fit", "ids: int32\nsparse: [{columns: [u32]}]", problem.ErrIDs,
		`line 2:10: sparse[0]: column "u32": ids do not fit int32: ids of "u32" may be 0 to 4294967295; end with ` +
			`sigrid_hash, positive_modulus or clamp within int32, or say ids: int64`},
	{"ids one too many", "ids: int32\nsparse: [{columns: [i], ops: [sigrid_hash: {max: 2147483649}]}]", problem.ErrIDs,
		`line 2:10: sparse[0]: column "i": ids do not fit int32: ids of "i" may be 0 to 2147483648; end with sigrid_hash, ` +
			`positive_modulus or clamp within int32, or say ids: int64`},
	{"several at once", "dense: [{columns: [nope, i], ops: [fill_null: 0.5]}]\nsparse: [{columns: [f]}]",
		problem.ErrMissingColumn,
		"line 1:20: dense[0].columns[0]: missing column: \"nope\" is not in the dataset\n" +
			"line 1:36: dense[0].ops[0]: column \"i\": wrong value: value 0.5 of fill_null must be whole: the values " +
			"are int64\n" +
			"line 2:10: sparse[0]: column \"f\": wrong type of column: sparse values are ids (int64), and these are " +
			"float32; bucketize makes ids of real numbers"},
}

func TestBadDocuments(t *testing.T) {
	for _, c := range badDocuments {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := lower(c.doc, zoo())
			require.Error(t, err)
			want := "pipeline: " + strings.ReplaceAll(c.want, "\n", "\npipeline: ")
			assert.EqualError(t, err, want)
			require.ErrorIs(t, err, c.is)
			var list problem.Errors
			require.ErrorAs(t, err, &list)
		})
	}
}

func TestErrorsAreBounded(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("dense:\n")
	for range 10 * problem.MaxErrors {
		doc.WriteString("  - {columns: [i], ops: [nonsense]}\n")
	}
	_, err := pipeline.Parse([]byte(doc.String()))
	var list problem.Errors
	require.ErrorAs(t, err, &list)
	assert.Len(t, list, problem.MaxErrors)

	doc.Reset()
	doc.WriteString("dense:\n")
	for i := range 10 * problem.MaxErrors {
		fmt.Fprintf(&doc, "  - {columns: [missing_%d]}\n", i)
	}
	_, _, err = lower(doc.String(), zoo())
	require.ErrorAs(t, err, &list)
	assert.Len(t, list, problem.MaxErrors)
}

func TestErrorsKeepForeignTextShort(t *testing.T) {
	_, err := pipeline.Parse([]byte("dense: [{columns: [i], ops: [" + strings.Repeat("x", 100000) + "]}]"))
	require.ErrorIs(t, err, problem.ErrUnknownOperator)
	assert.Less(t, len(err.Error()), 1024) // it lists the operators
	_, err = pipeline.Parse([]byte(`dense: [{columns: [i], "a\nb": 1}]`))
	require.ErrorIs(t, err, problem.ErrUnknownKey)
	assert.NotContains(t, err.Error(), "\n", "a name cannot forge a line")
}

func TestAliases(t *testing.T) {
	t.Run("share a list of operators", func(t *testing.T) {
		_, p, err := lower("dense: [{columns: [i], ops: &ops [clamp: {min: 0}]}]\nsparse: [{columns: [c_0], ops: "+
			"*ops}]", zoo())
		require.NoError(t, err)
		assert.Equal(t, p.Columns[0].Sinks[0].Ops[0], p.Columns[1].Sinks[0].Ops[0])
	})
	t.Run("to an unknown anchor", func(t *testing.T) {
		_, err := pipeline.Parse([]byte("dense: *nothing"))
		require.ErrorIs(t, err, problem.ErrSyntax)
	})
	t.Run("to what holds them", func(t *testing.T) {
		_, err := pipeline.Parse([]byte("dense: &a [{columns: *a}]"))
		require.Error(t, err)
	})
	t.Run("a bomb", func(t *testing.T) {
		var doc strings.Builder
		doc.WriteString("sparse:\n  - columns: [i]\n    ops:\n      - bucketize: {borders: &b [" + strings.Repeat("1,",
			100000) + "1]}\n")
		for range 1000 {
			doc.WriteString("  - {columns: [i], ops: [bucketize: {borders: *b}]}\n")
		}
		_, err := pipeline.Parse([]byte(doc.String()))
		require.ErrorIs(t, err, problem.ErrSyntax)
		assert.ErrorContains(t, err, "the document comes to more than 1048576 values")
	})
}

func TestDocumentThatIsTooLarge(t *testing.T) {
	const most = 4 << 20
	doc := []byte("label: {column: label}\n" + strings.Repeat("\n", most))
	_, err := pipeline.Parse(doc[:most])
	require.NoError(t, err)
	_, err = pipeline.Parse(doc[:most+1])
	require.EqualError(t, err, "pipeline: syntax error: the document has 4194305 bytes, want at most 4194304")
}

// Features of the same borders share one operator.
func TestBordersAreShared(t *testing.T) {
	_, p, err := lower("generated: [{columns: [i, f], ops: [bucketize: {borders: "+
		"{log_spaced: {from: 1, to: 9, count: 4}}}]}]", zoo())
	require.NoError(t, err)
	var made []*bucketize.Op
	for _, c := range p.Columns {
		for _, op := range c.Sinks[0].Ops {
			if b, ok := op.(*bucketize.Op); ok {
				made = append(made, b)
			}
		}
	}
	require.Len(t, made, 2)
	assert.Same(t, made[0], made[1])
}

// readsText is the end of the errors about text, in front of which an operator stands that does not take it.
const readsText = "hash_bytes for categories, text_to_int for decimal numbers, hex_to_int for hexadecimal ones, or " +
	"text_to_seconds for times"
