package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/shared"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
	"github.com/millrace/millrace/sdk/vocabulary/reducer"
	"github.com/millrace/millrace/trainmgr"
)

// buildVocabulary makes a pass over files and returns the vocabulary's file.
func buildVocabulary(t *testing.T, c Config, pass reducer.Pass) *reducer.Report {
	t.Helper()
	m, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	made, err := pass.Run(t.Context(), &PassSource{Storage: m})
	require.NoError(t, err)
	return made
}

// rowMajorIDs returns the ids of mini-batches of a fixed schema, row by row.
func rowMajorIDs(mb *tensor.MiniBatch) (ids []int64) {
	f := len(mb.Schema.Keys)
	for row := range mb.Rows {
		for key := range f {
			if at := key*mb.Rows + row; mb.Schema.IDs == tensor.Int32 {
				ids = append(ids, int64(mb.Values32[at]))
			} else {
				ids = append(ids, mb.Values64[at])
			}
		}
	}
	return ids
}

// criteoVocabulary is a pipeline over Criteo's ids.
func criteoVocabulary(t *testing.T, batch int, ops, rules string) *pipeline.Spec {
	t.Helper()
	spec, err := pipeline.Parse([]byte(fmt.Sprintf(`batch: %d
label: {column: label}
dense: [{columns: [int_0..int_12], ops: [fill_null: 0]}]
sparse: [{columns: [cat_0..cat_25], ops: [%svocabulary: v]}]
vocabularies: {v: {%s}}
`, batch, ops, rules)))
	require.NoError(t, err)
	return spec
}

// TestVocabulariesOfRealRows builds and applies the vocabularies of DLRM and Piper at five moduli, of TorchRec and of
// NVTabular over Criteo's rows, and compares the ids with checksums that a reference program made.
func TestVocabulariesOfRealRows(t *testing.T) {
	document, err := os.ReadFile(shared.Path(t, "golden/criteo_real_checksums.json"))
	require.NoError(t, err)
	var golden struct {
		Cases []map[string]json.RawMessage `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(document, &golden))
	file := shared.Path(t, "data/criteo/td_day_11_first_3k_rows_original.tsv")
	var fields map[string]json.RawMessage
	for _, c := range golden.Cases {
		if strings.Contains(string(c["file"]), filepath.Base(file)) {
			fields = c
		}
	}
	require.NotNil(t, fields)
	read := func(field string, into any) {
		require.Contains(t, fields, field)
		require.NoError(t, json.Unmarshal(fields[field], into))
	}
	type work struct {
		name, ops, rules, sum string
		wide                  bool
		sizes                 []int64
	}
	var all []work
	for _, m := range []int{5000, 8192, 524288, 1000000, 40000000} {
		var of struct {
			Sizes []int64 `json:"sizes"`
			Sum   string  `json:"sha256_ids_i32_rowmajor"`
		}
		read(fmt.Sprintf("vocab_mod_%d", m), &of)
		all = append(all, work{name: fmt.Sprintf("first seen, modulus %d", m), sum: of.Sum, sizes: of.Sizes,
			ops: fmt.Sprintf("fill_null: 0, positive_modulus: %d, ", m)})
	}
	torchrec := work{name: "TorchRec", ops: "fill_null: 0, ", rules: "base: 2, rare_id: 1, min_count: 3"}
	read("sha256_torchrec_contiguous_thr3_i32_rowmajor", &torchrec.sum)
	nvtabular := work{name: "NVTabular", rules: "order: count, base: 3, null_id: 1, rare_id: 2", wide: true}
	read("sha256_nvt_categorify_i64_rowmajor (null->1, ties by uint32 value asc)", &nvtabular.sum)
	for i, w := range append(all, torchrec, nvtabular) {
		t.Run(w.name, func(t *testing.T) {
			digests := map[vocabulary.Digest]bool{}
			for j, engine := range paperEngines {
				batch := []int{256, 1000, 8192}[(i+j)%3]
				// 64 MiB have no room for tables beside a stream; all of a drive's memory has.
				memory := []uint64{64 << 20, 0}[(i+j)%2]
				c := Config{Files: source.ParseLocations(file), DriveOptions: host.DriveOptions{Engine: engine,
					Source: program.CriteoTSV, SLM: memory}}
				spec := criteoVocabulary(t, batch, w.ops, w.rules)
				path := filepath.Join(t.TempDir(), "v.vocab")
				made := buildVocabulary(t, c, reducer.Pass{Pipeline: spec, Name: "v", Path: path})
				require.EqualValues(t, 3000, made.Rows)
				digests[made.Digest] = true
				for column, size := range w.sizes {
					assert.EqualValues(t, size, made.Tables[column].Keys, "column %d", column)
				}
				bound, err := BindVocabularies(spec, map[string]string{"v": path})
				require.NoError(t, err)
				var packed []byte
				done := run(t, c, trainmgr.Options{Pipeline: bound, Shuffle: dataset.ShuffleNone, Order: dataset.Deterministic,
					AllDrives: true}, func(mb *tensor.MiniBatch) {
					require.True(t, mb.Schema.Fixed())
					for _, id := range rowMajorIDs(mb) {
						if w.wide {
							packed = binary.LittleEndian.AppendUint64(packed, uint64(id))
						} else {
							packed = binary.LittleEndian.AppendUint32(packed, uint32(id))
						}
					}
				})
				sum := sha256.Sum256(packed)
				require.Equal(t, w.sum, hex.EncodeToString(sum[:]), "engine %q, batch %d", engine, batch)
				inDrive := 0
				if memory == 0 && engine != host.EngineCPU && engine != host.EngineReference {
					inDrive = 26
				}
				require.Len(t, done.report.PerDrive, 1)
				assert.Len(t, done.report.PerDrive[0].LookedUpInDrive, inDrive)
				assert.Len(t, done.report.PerDrive[0].LookedUpByHost, 26-inDrive)
			}
			assert.Len(t, digests, 1, "the file is the same on every engine, at every batch size")
		})
	}
}

// writePartitions writes the fixture's partitions and returns their paths.
func writePartitions(t *testing.T, n int) []string {
	t.Helper()
	paths := make([]string, n)
	for i := range paths {
		paths[i] = filepath.Join(t.TempDir(), fmt.Sprintf("part-%d.parquet", i))
		require.NoError(t, os.WriteFile(paths[i], makePartition(t, uint64(i), 300+50*i, 120, 512), 0o600))
	}
	return paths
}

// vocabularyOfLists is a joint vocabulary over a nullable column, a plain one and one of lists, and another of a
// generated feature.
const vocabularyOfLists = `ids: auto
batch: %d
label: {column: label}
sparse:
  - {columns: [cat_0, cat_1, list_0], ops: [positive_modulus: 300, vocabulary: shared]}
  - {columns: [cat_1], as: plain, ops: [sigrid_hash: {max: 1000}]}
generated:
  - {columns: [int_1], as: b, ops: [bucketize: {borders: [10, 100, 500]}, vocabulary: bucket]}
vocabularies:
  shared: {order: count, joint: true, base: 20, null_id: 0, min_count: 3, oov_buckets: 16, unknown: %s}
  bucket: {}
`

// TestVocabulariesOfManyDrives builds over several partitions on one, two and three drives and with every engine, in
// little memory, and compares files and mini-batches.
func TestVocabulariesOfManyDrives(t *testing.T) {
	paths := writePartitions(t, 3)
	for _, unknown := range []string{"bucket", "drop"} {
		var files [][]byte
		var batches [][]*tensor.MiniBatch
		for i, c := range []Config{
			{Spread: 1, DriveOptions: host.DriveOptions{Engine: host.EngineReference}}, {Spread: 2}, {Spread: 3},
			{Spread: 3, DriveOptions: host.DriveOptions{Commands: "standard"}},
			{Spread: 1, DriveOptions: host.DriveOptions{Engine: host.EngineCPU}},
			{Spread: 2, DriveOptions: host.DriveOptions{Commands: "standard"}},
		} {
			c.Files, c.SLM = source.ParseLocations(paths...), []uint64{16 << 20, 0}[i%2] // 0: the tables lie in the drives
			parse := func(batch int) *pipeline.Spec {
				spec, err := pipeline.Parse([]byte(fmt.Sprintf(vocabularyOfLists, batch, unknown)))
				require.NoError(t, err)
				return spec
			}
			named := map[string]string{}
			var whole []byte
			for _, name := range []string{"shared", "bucket"} {
				named[name] = filepath.Join(t.TempDir(), name)
				buildVocabulary(t, c, reducer.Pass{Pipeline: parse(17 + 40*i), Name: name, Path: named[name],
					Memory: 1})
				b, err := os.ReadFile(named[name])
				require.NoError(t, err)
				counts, err := os.ReadFile(named[name] + vocabulary.CountsSuffix)
				require.NoError(t, err)
				whole = append(append(whole, b...), counts...)
			}
			files = append(files, whole)
			spec, err := BindVocabularies(parse(64), named)
			require.NoError(t, err)
			var made []*tensor.MiniBatch
			run(t, c, trainmgr.Options{Pipeline: spec, Shuffle: dataset.ShuffleRows, Window: 2,
				Order: dataset.Deterministic, AllDrives: true}, func(mb *tensor.MiniBatch) {
				require.NoError(t, mb.Validate())
				made = append(made, mb.Clone())
			})
			batches = append(batches, made)
		}
		for i := 1; i < len(files); i++ {
			assert.True(t, bytes.Equal(files[0], files[i]), "files of configuration %d", i)
			require.Len(t, batches[i], len(batches[0]))
			for j := range batches[0] {
				require.Empty(t, tensor.Diff(batches[0][j], batches[i][j]), "configuration %d", i)
			}
		}
	}
}

// TestAPassThatFails checks refusals before and in a pass, and that none leaves a file.
func TestAPassThatFails(t *testing.T) {
	paths := writePartitions(t, 2)
	spec, err := pipeline.Parse([]byte("sparse: [{columns: [cat_1], ops: [vocabulary: v]}]\nvocabularies: {v: {}}\n"))
	require.NoError(t, err)
	m, err := Open(t.Context(), Config{Files: source.ParseLocations(paths[:1]...)})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	path, here := filepath.Join(t.TempDir(), "v"), &PassSource{Storage: m}

	_, err = (&reducer.Pass{Pipeline: spec, Name: "w", Path: path}).Run(t.Context(), here)
	require.ErrorIs(t, err, problem.ErrVocabulary)
	_, err = (&reducer.Pass{Pipeline: spec, Name: "v"}).Run(t.Context(), here)
	require.ErrorIs(t, err, passes.ErrOptions)
	_, err = (&reducer.Pass{Pipeline: spec, Name: "v", Path: path, Extend: path}).Run(t.Context(), here)
	require.ErrorIs(t, err, os.ErrNotExist)
	for doc, want := range map[string]error{
		"dense: [{columns: [nowhere]}]":                             problem.ErrMissingColumn,
		"generated: [{columns: [cat_0], ops: [log]}]":               problem.ErrColumnType,
		"dense: [{columns: [int_0]}]":                               problem.ErrNull,
		"sparse: [{columns: [cat_0], ops: [hex_to_int]}]":           problem.ErrColumnType,
		"values: [{as: x, from: nowhere}]\ndense: [{columns: [x]}]": problem.ErrMissingColumn,
	} {
		whole, err := pipeline.Parse([]byte(doc + "\n"))
		require.NoError(t, err, doc)
		whole.Sparse, whole.Vocabularies = append(whole.Sparse, spec.Sparse...), spec.Vocabularies
		_, err = (&reducer.Pass{Pipeline: whole, Name: "v", Path: path}).Run(t.Context(), here)
		require.ErrorIs(t, err, want, doc)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Empty(t, left, "the whole pipeline is checked before the pass")

	made, err := (&reducer.Pass{Pipeline: spec, Name: "v", Path: path}).Run(t.Context(), here)
	require.NoError(t, err)
	_, err = (&reducer.Pass{Pipeline: spec, Name: "v", Path: path}).Run(t.Context(), here)
	require.ErrorIs(t, err, os.ErrExist)

	// The second partition has keys that the first has not.
	both, err := Open(t.Context(), Config{Files: source.ParseLocations(paths...)})
	require.NoError(t, err)
	defer func() { require.NoError(t, both.Close()) }()
	bound, err := BindVocabularies(spec, map[string]string{"v": path})
	require.NoError(t, err)
	consumeOn := func(m *host.Manager, spec *pipeline.Spec) error {
		job, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: spec, Batch: 100,
			Shuffle: dataset.ShuffleNone, Order: dataset.Deterministic, AllDrives: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, job.Close()) }()
		for _, err := range job.MiniBatches(t.Context()) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	consume := func(spec *pipeline.Spec) error { return consumeOn(both, spec) }
	err = consume(bound)
	var unknown *vocabulary.UnknownError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, "part-1.parquet", filepath.Base(unknown.Partition))
	assert.Equal(t, "cat_1", unknown.Column)
	for name, config := range map[string]Config{
		"looked up by this machine":         {DriveOptions: host.DriveOptions{SLM: 16 << 20}},
		"on the CPU":                        {DriveOptions: host.DriveOptions{Engine: host.EngineCPU}},
		"in the drive, by the standard set": {DriveOptions: host.DriveOptions{Commands: "standard"}},
	} {
		config.Files = source.ParseLocations(paths...)
		other, err := Open(t.Context(), config)
		require.NoError(t, err)
		var again *vocabulary.UnknownError
		require.ErrorAs(t, consumeOn(other, bound), &again, name)
		assert.Equal(t, unknown, again, name)
		require.NoError(t, other.Close())
	}

	// Extended by the second partition it has the keys of both, and those of the first keep their ids. A partition that
	// was counted is refused, also under another name.
	extend := &reducer.Pass{Pipeline: spec, Name: "v", Path: path, Replace: true, Extend: path}
	var counted *vocabulary.CountedError
	_, err = extend.Run(t.Context(), &PassSource{Storage: both})
	require.ErrorAs(t, err, &counted)
	assert.Equal(t, "part-0.parquet", filepath.Base(counted.Partition))
	second, err := Open(t.Context(), Config{Files: source.ParseLocations(paths[1:]...)})
	require.NoError(t, err)
	defer func() { require.NoError(t, second.Close()) }()
	extended, err := extend.Run(t.Context(), &PassSource{Storage: second})
	require.NoError(t, err)
	_, err = extend.Run(t.Context(), &PassSource{Storage: second})
	require.ErrorIs(t, err, vocabulary.ErrCounted)
	copied := filepath.Join(t.TempDir(), "copy.parquet")
	b, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, b, 0o600))
	third, err := Open(t.Context(), Config{Files: source.ParseLocations(copied)})
	require.NoError(t, err)
	defer func() { require.NoError(t, third.Close()) }()
	_, err = extend.Run(t.Context(), &PassSource{Storage: third})
	require.ErrorContains(t, err, "copy.parquet: its keys have their ids")
	assert.Equal(t, made.Tables[0].Keys, extended.Tables[0].Keys-extended.Tables[0].Appended)
	assert.Positive(t, extended.Tables[0].Appended)
	bound, err = BindVocabularies(spec, map[string]string{"v": path})
	require.NoError(t, err)
	require.NoError(t, consume(bound))
	_, err = BindVocabularies(spec, map[string]string{"w": path})
	require.ErrorIs(t, err, problem.ErrVocabulary)
	_, err = BindVocabularies(spec, map[string]string{"v": paths[0]})
	require.ErrorIs(t, err, vocabulary.ErrDamaged)

	other := *spec
	other.Vocabularies = []pipeline.Vocabulary{{Name: "v", Rules: vocabulary.Rules{Base: 1}}}
	_, err = (&reducer.Pass{Pipeline: &other, Name: "v", Path: path, Replace: true, Extend: path}).Run(t.Context(),
		&PassSource{Storage: both})
	require.ErrorIs(t, err, vocabulary.ErrOther)
}

// TestKeptIDsOfManyDrives builds a vocabulary in memory that keeps the ids of all rows, of a whole data set and of rows
// that a filter chooses. A job in another order makes the mini-batches of a vocabulary in a file, on one to three
// drives and with every engine, and refuses other partitions.
func TestKeptIDsOfManyDrives(t *testing.T) {
	paths := writePartitions(t, 3)
	for _, filter := range []string{"", "filter: {sampling: {key: row, rate: 0.5}}\n"} {
		parse := func(batch int) *pipeline.Spec {
			spec, err := pipeline.Parse([]byte(fmt.Sprintf(`batch: %d
ids: int32
label: {column: label}
sparse:
  - {columns: [cat_0], ops: [fill_null: 0, positive_modulus: 3000, vocabulary: v]}
  - {columns: [cat_1], as: plain, ops: [sigrid_hash: {max: 1000}]}
  - {columns: [cat_1], ops: [positive_modulus: 3000, vocabulary: v]}
vocabularies: {v: {base: 3}}
%s`, batch, filter)))
			require.NoError(t, err)
			return spec
		}
		for i, c := range []Config{
			{Spread: 1, DriveOptions: host.DriveOptions{Engine: host.EngineReference}}, {Spread: 2},
			{Spread: 3, DriveOptions: host.DriveOptions{Engine: host.EngineCPU}},
			{Spread: 2, DriveOptions: host.DriveOptions{Commands: "standard"}},
		} {
			c.Files = source.ParseLocations(paths...)
			path := filepath.Join(t.TempDir(), "v")
			pass := reducer.Pass{Pipeline: parse(17 + 40*i), Name: "v", Path: path}
			buildVocabulary(t, c, pass)
			pass.InMemory, pass.KeepIDs = true, true
			kept := buildVocabulary(t, c, pass).Vocabulary
			inFile, err := vocabulary.Load(path)
			require.NoError(t, err)
			require.Equal(t, inFile.Digest, kept.Digest)
			var made [2][]*tensor.MiniBatch
			var bound [2]*pipeline.Spec
			for j, v := range []*vocabulary.Vocabulary{inFile, kept} {
				bound[j], err = parse(64).Bind("v", v)
				require.NoError(t, err)
				bound[j] = selected(t, c, bound[j])
				run(t, c, trainmgr.Options{Pipeline: bound[j], Shuffle: dataset.ShuffleRows, Window: 2, Seed: 3,
					Order: dataset.Deterministic, AllDrives: true}, func(mb *tensor.MiniBatch) {
					require.NoError(t, mb.Validate())
					made[j] = append(made[j], mb.Clone())
				})
			}
			require.NotEmpty(t, made[0])
			require.Len(t, made[1], len(made[0]))
			for j := range made[0] {
				require.Empty(t, tensor.Diff(made[0][j], made[1][j]), "configuration %d", i)
			}

			other := filepath.Join(t.TempDir(), filepath.Base(paths[0]))
			require.NoError(t, os.WriteFile(other, makePartition(t, 99, 300, 120, 512), 0o600))
			c.Files, c.Spread = source.ParseLocations(other), 1
			spec, err := parse(64).Bind("v", kept)
			require.NoError(t, err)
			spec = selected(t, c, spec)
			m, err := Open(t.Context(), c)
			require.NoError(t, err)
			job, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: spec, AllDrives: true})
			require.NoError(t, err)
			for _, err = range job.MiniBatches(t.Context()) {
				if err != nil {
					break
				}
			}
			require.ErrorContains(t, err, "were not kept")
			require.NoError(t, job.Close())
			require.NoError(t, m.Close())
		}
	}
}

// selected binds the selection of a pipeline's filter to it.
func selected(t *testing.T, c Config, spec *pipeline.Spec) *pipeline.Spec {
	t.Helper()
	m, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	bound, _, err := (&Selections{}).Bind(t.Context(), m, spec)
	require.NoError(t, err)
	return bound
}

// TestFilesOfVocabulariesAreTakenInTheOrderOfNames: of two errors the same one is returned each time.
func TestFilesOfVocabulariesAreTakenInTheOrderOfNames(t *testing.T) {
	for range 20 {
		_, err := BindVocabularies(&pipeline.Spec{}, map[string]string{"b": "", "a": "", "c": "", "d": ""})
		require.ErrorContains(t, err, `"a"`)
	}
}
