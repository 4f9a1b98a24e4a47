package local

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr"
)

// TestTwoJobsDivideTheRows runs the jobs of both parts over files with nulls, each part on another engine: every row
// that passes the pipeline's own filter comes in exactly one of the jobs, the rows of one value in one job, and those
// without a value in that of the part train.
func TestTwoJobsDivideTheRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	dir, rows := t.TempDir(), map[string]*filterRow{}
	var paths []string
	for i, count := range []int{300, 1, 170} {
		name := fmt.Sprintf("part-%d.parquet", i)
		drawn := drawFilterRows(rng, count)
		for k := range drawn {
			rows[fmt.Sprintf("%s:%d", name, k)] = &drawn[k]
		}
		paths = append(paths, filepath.Join(dir, name))
		writeFilterRows(t, paths[i], drawn, 130)
	}
	filters := []filterCase{{"", func(*filterRow) bool { return true }}, filterCases[6]}
	engines := []host.Engine{host.EngineDrive, host.EngineCPU, host.EngineReference}
	for i, by := range []string{"", "country", "user"} {
		filter := filters[i%2]
		spec := filterPipeline(t, "")
		if filter.filter != "" {
			spec = filterPipeline(t, "filter: "+filter.filter)
		}
		part := func(name string, engine host.Engine) map[string]numberedRow {
			of, err := spec.WithSplit(pipeline.ValidationSplit{Part: name, Rate: 0.7, Seed: 3, By: by})
			require.NoError(t, err)
			return collect(t, Config{Files: source.ParseLocations(paths...),
				DriveOptions: host.DriveOptions{Engine: engine, SLM: 64 << 20}}, of).rows
		}
		train, validation := part(pipeline.PartTrain, engines[i]), part(pipeline.PartValidation, engines[(i+1)%3])
		require.NotEmpty(t, train)
		require.NotEmpty(t, validation)
		parts := map[string]bool{}
		for name, row := range rows {
			_, trained := train[name]
			_, validated := validation[name]
			require.False(t, trained && validated, "by %q: %s comes in both jobs", by, name)
			require.Equal(t, filter.passes(row), trained || validated, "by %q: %s", by, name)
			value, there := "", true
			switch {
			case by == "" || !filter.passes(row):
				continue
			case by == "country":
				if there = row.Country != nil; there {
					value = fmt.Sprint(*row.Country)
				}
			case row.User == nil:
				there = false
			default:
				value = *row.User
			}
			if before, seen := parts[value]; there && seen {
				require.Equal(t, before, trained, "by %q: rows of %q come in both jobs", by, value)
			}
			if there {
				parts[value] = trained
			}
			require.True(t, there || trained, "by %q: %s has no value", by, name)
		}
	}
}

// TestAPartWithoutRows submits a job of a part that no row is drawn for.
func TestAPartWithoutRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part.parquet")
	writeFilterRows(t, path, drawFilterRows(rand.New(rand.NewPCG(1, 1)), 3), 130)
	none, err := filterPipeline(t, "").WithSplit(pipeline.ValidationSplit{Part: pipeline.PartTrain, Rate: 1e-9})
	require.NoError(t, err)
	storage, err := Open(t.Context(), Config{Files: source.ParseLocations(path)})
	require.NoError(t, err)
	defer func() { require.NoError(t, storage.Close()) }()
	none, _, err = new(Selections).Bind(t.Context(), storage, none)
	require.NoError(t, err)
	_, err = trainmgr.Submit(t.Context(), storage, trainmgr.Options{Pipeline: none, RowsPerSecond: 1000})
	require.ErrorIs(t, err, trainmgr.ErrOptions)
	require.ErrorContains(t, err, "none of 3 rows passes the filter")
}
