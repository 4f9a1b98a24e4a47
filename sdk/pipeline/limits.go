package pipeline

import (
	"github.com/millrace/millrace/fpga/program"
)

// Limits of a document, which its JSON Schema says too. Those of borders and tables are limits of a program.
const (
	MaxBatch    = 1 << 24         // Rows of a mini-batch.
	MaxName     = program.MaxName // Bytes of the name of a column, feature, value, vocabulary or statistics.
	MaxGroups   = 1 << 12         // Groups of each kind, and named values.
	MaxPatterns = 1 << 16         // Patterns of a group.
	// Operators of a chain: lowering adds a conversion before each, and one behind.
	MaxOperators        = program.MaxOps / 2
	MaxFeatures         = program.MaxColumns // Features of each kind.
	MaxFilterTests      = 1 << 12            // Tests of the whole filter.
	MaxFilterSet        = 1 << 16            // Numbers of one "in" of a filter.
	MaxStatistics       = 1 << 8             // Names of statistics.
	MaxStatisticsValues = 1 << 16            // Values that have statistics of one name.
	MaxVocabularies     = 1 << 10            // Names of vocabularies.
)

// Limits that only the reader of documents needs.
const (
	maxDocument = 4 << 20 // Bytes.
	// maxNodes bounds the visited nodes, those behind aliases included, so that nested aliases cannot multiply without
	// bound.
	maxNodes       = 1 << 20
	maxFilterDepth = 32
)
