package format

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriterFaults(t *testing.T) {
	type faults struct{ uncounted, compressed, dictHeader bool }
	for createdBy, want := range map[string]faults{
		"parquet-cpp-arrow version 12.0.0":                {},
		"parquet-cpp-arrow version 11.0.0":                {uncounted: true},
		"parquet-cpp-arrow version 8.0.1":                 {uncounted: true},
		"parquet-cpp-arrow version 3.0.0":                 {uncounted: true},
		"parquet-cpp-arrow version 2.9.9":                 {uncounted: true, compressed: true},
		"parquet-cpp-arrow version 11.0.0-SNAPSHOT":       {uncounted: true},
		"parquet-cpp-arrow version 26.0.1":                {},
		"parquet-cpp-arrow":                               {},
		"parquet-cpp-arrow version x":                     {},
		"parquet-cpp version 1.5.1-SNAPSHOT":              {uncounted: true, compressed: true},
		"parquet-cpp version 1.0.0-v10.1.1 (build Other)": {uncounted: true, compressed: true},
		"parquet-cpp version 2.0.0":                       {uncounted: true},
		"parquet-cpp":                                     {uncounted: true, compressed: true},
		"parquet-mr version 1.2.8 (build x)":              {dictHeader: true},
		"parquet-mr version 1.2.9":                        {},
		"parquet-mr version 1.3":                          {},
		"parquet-mr version 1.1":                          {dictHeader: true},
		"parquet-mr":                                      {dictHeader: true},
		"parquet-mr version":                              {},
		"parquet-rs version 1.0.0":                        {},
		"":                                                {},
	} {
		w := parseWriter(createdBy)
		require.Equal(t, want, faults{w.countsValuesAsRows(), w.alwaysCompressed(), w.omitsDictionaryHeader()},
			createdBy)
	}
}
