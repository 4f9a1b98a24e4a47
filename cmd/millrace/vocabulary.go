package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
	"github.com/millrace/millrace/sdk/vocabulary/reducer"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/remote"
)

// vocabularyFlags name the files of a pipeline's vocabularies and statistics.
type vocabularyFlags struct {
	files []string
	statisticsFlags
}

func (v *vocabularyFlags) addFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&v.files, "vocabulary", nil,
		"the file of one of the pipeline's vocabularies, as piper=criteo.vocab; may be given again")
	v.statisticsFlags.addFlag(f)
}

// named returns the paths by name.
func (v *vocabularyFlags) named() (map[string]string, error) {
	return namedFiles("--vocabulary", v.files)
}

// bind gives the pipeline its vocabularies and statistics.
func (v *vocabularyFlags) bind(spec *pipeline.Spec, document string) (*pipeline.Spec, error) {
	files, err := v.named()
	if err != nil {
		return nil, err
	}
	if spec, err = v.statisticsFlags.bind(spec, document); err != nil {
		return nil, err
	}
	bound, err := local.BindVocabularies(spec, files)
	return bound, namePipeline(err, document)
}

// appliedVocabulary is a vocabulary in which ids were looked up.
type appliedVocabulary struct {
	Name   string `json:"name"`
	Digest string `json:"sha256"`
	// LookedUpBy is "drive" if the tables of all columns were in the drives' memory, "host" if this machine looked all
	// ids up, and else "drive and host"; of a job of a control plane "drive or node", as the memory of each drive
	// allows.
	LookedUpBy   string  `json:"lookup_place"`
	Keys         int64   `json:"keys"`
	BuildSeconds float64 `json:"build_seconds,omitempty"`
	BuiltFile    string  `json:"file,omitempty"` // --build-vocabulary wrote it.
}

// appliedVocabularies lists the vocabularies of a pipeline that was run, and which of them were built.
func appliedVocabularies(
	spec *pipeline.Spec, built []*builtVocabulary, drives []api.DriveReport,
) []appliedVocabulary {
	list := []appliedVocabulary{}
	for i := range spec.Vocabularies {
		v := &spec.Vocabularies[i]
		applied := appliedVocabulary{Name: v.Name, Digest: v.File.Digest.String(), Keys: v.File.Keys(),
			LookedUpBy: lookedUpBy(v.File, drives)}
		for _, b := range built {
			if b.Digest == applied.Digest {
				applied.BuildSeconds, applied.BuiltFile = b.ElapsedSeconds, b.Out
			}
		}
		list = append(list, applied)
	}
	return list
}

// lookedUpBy says whether the drives of a job or this machine looked up the ids of a vocabulary's columns.
func lookedUpBy(v *vocabulary.Vocabulary, drives []api.DriveReport) string {
	inDrive, byHost := false, false
	for i := range drives {
		has := func(key string) bool { return v.Column(key) != nil }
		inDrive = inDrive || slices.ContainsFunc(drives[i].LookedUpInDrive, has)
		byHost = byHost || slices.ContainsFunc(drives[i].LookedUpByHost, has)
	}
	switch {
	case inDrive && byHost:
		return "drive and host"
	case inDrive:
		return "drive"
	}
	return "host"
}

// printLookups prints which keys' ids were looked up by each drive, and which behind it.
func printLookups(w io.Writer, drives []api.DriveReport) {
	for i := range drives {
		d := &drives[i]
		for _, of := range []struct {
			where string
			keys  []string
		}{{"in the drive", d.LookedUpInDrive}, {"behind the drive", d.LookedUpByHost}} {
			if len(of.keys) > 0 {
				fmt.Fprintf(w, "lookups\t%s: ids of %d keys looked up %s: %s\n", terminal.Cell(d.Name), len(of.keys),
					of.where, terminal.Cell(strings.Join(of.keys, ", ")))
			}
		}
	}
}

// viewVocabularies lists the vocabularies of a job of a control plane.
func viewVocabularies(job *apiv1.JobStatus) []appliedVocabulary {
	list := []appliedVocabulary{}
	for _, v := range job.GetSpec().GetVocabularies() {
		applied := appliedVocabulary{Name: v.GetName(), Digest: hex.EncodeToString(v.GetSha256()),
			LookedUpBy: "drive or node"}
		if d, err := vocabulary.ReadDescription(v.GetDescription(), vocabulary.Digest{}); err == nil {
			applied.Keys = d.Keys()
			of := lookedUpOn{}
			for _, k := range job.GetLookups() {
				if slices.ContainsFunc(d.Columns, func(c vocabulary.Column) bool { return c.Name == k.GetKey() }) {
					of.Drives, of.Nodes = of.Drives+k.GetInDrive(), of.Nodes+k.GetOnNode()
				}
			}
			applied.LookedUpBy = of.where()
		}
		list = append(list, applied)
	}
	return list
}

// lookedUpOn says where the ids of a key of a job are looked up, by the drives and workers that are prepared for it.
type lookedUpOn struct {
	Key    string `json:"key"`
	By     string `json:"lookup_place"`
	Drives uint32 `json:"drives"` // in whose memory the table is
	Nodes  uint32 `json:"nodes"`
}

// where names the place.
func (l lookedUpOn) where() string {
	switch {
	case l.Drives > 0 && l.Nodes > 0:
		return "drive and node"
	case l.Drives > 0:
		return "drive"
	case l.Nodes > 0:
		return "node"
	}
	return "drive or node"
}

// viewLookups lists the keys of a job whose ids are looked up.
func viewLookups(job *apiv1.JobStatus) []lookedUpOn {
	list := []lookedUpOn{}
	for _, k := range job.GetLookups() {
		l := lookedUpOn{Key: k.GetKey(), Drives: k.GetInDrive(), Nodes: k.GetOnNode()}
		l.By = l.where()
		list = append(list, l)
	}
	return list
}

// printKeyLookups prints the keys that are looked up in the same places together.
func printKeyLookups(w io.Writer, list []lookedUpOn) {
	type place struct{ drives, nodes uint32 }
	keys := map[place][]string{}
	var places []place
	for _, l := range list {
		at := place{l.Drives, l.Nodes}
		if keys[at] == nil {
			places = append(places, at)
		}
		keys[at] = append(keys[at], l.Key)
	}
	for _, at := range places {
		where := fmt.Sprintf("in %d drives", at.drives)
		switch {
		case at.drives == 0:
			where = fmt.Sprintf("by the nodes behind %d drives", at.nodes)
		case at.nodes > 0:
			where += fmt.Sprintf(", and by the nodes behind %d", at.nodes)
		}
		fmt.Fprintf(w, "lookups\tids of %d keys looked up %s: %s\n", len(keys[at]), where,
			terminal.Cell(strings.Join(keys[at], ", ")))
	}
}

// namedFiles reads NAME=FILE, several times.
func namedFiles(flag string, given []string) (map[string]string, error) {
	files := map[string]string{}
	for _, text := range given {
		name, path, ok := strings.Cut(text, "=")
		if !ok || name == "" || path == "" {
			return nil, cli.Usagef("%s %q: want NAME=FILE, as piper=criteo.vocab", flag, text)
		}
		if files[name] != "" {
			return nil, cli.Usagef("%s names %q twice", flag, name)
		}
		files[name] = path
	}
	return files, nil
}

// vocabularyCommands are the commands about vocabularies.
type vocabularyCommands struct{ *console }

func (c vocabularyCommands) command() *cobra.Command {
	return cli.Group("vocabulary", "Vocabularies: build one of a data set, extend, show and compare them",
		c.build(), c.extend(), c.info(), c.diff())
}

// vocabularyPassFlags are the flags of a pass that ends in a vocabulary.
type vocabularyPassFlags struct {
	passFlags
	out     string
	replace bool
	memory  int64
	folder  string
	disk    int64
	put     bool
}

func (p *vocabularyPassFlags) addFlags(cmd *cobra.Command) {
	p.in.elsewhere = ", or data of a cluster with --control or --context"
	p.passFlags.addFlags(cmd, "the file of --out with .work")
	f := cmd.Flags()
	f.Var(quantity.BytesFlag[int64]{To: &p.disk}, "disk",
		forCluster+"bound of that folder's bytes, as 200GiB (default: what its disk has)")
	f.BoolVar(&p.put, "put", false, forCluster+"put the file to the control plane, too, for jobs that are submitted "+
		"within minutes")
	f.StringVar(&p.pipeline, "pipeline", "", "the YAML file of the pipeline that declares the vocabulary")
	f.StringVar(&p.name, "name", "", "name of the vocabulary in the pipeline (default: the only one)")
	f.StringVar(&p.out, "out", "", "file to write; FILE"+vocabulary.CountsSuffix+" beside it holds the counts of all "+
		"keys")
	f.BoolVar(&p.replace, "overwrite", false, "replace the file of --out")
	f.Var(quantity.BytesFlag[int64]{To: &p.memory}, "memory",
		"memory for keys; more keys go to disk and are merged (default 512MiB)")
	f.StringVar(&p.folder, "temporary", "", "folder for keys that do not fit into memory (default: the system's)")
}

// builtVocabulary is what `millrace vocabulary build` and `extend` print.
type builtVocabulary struct {
	Out            string        `json:"out"`
	Digest         string        `json:"sha256"`
	Bytes          int64         `json:"bytes"`
	Rows           int64         `json:"rows"`
	ElapsedSeconds float64       `json:"elapsed_seconds"`
	RowsPerSecond  float64       `json:"rows_per_second"`
	Keys           int64         `json:"keys"`
	Seen           int64         `json:"seen_keys"`
	Appended       int64         `json:"appended_keys"`
	Columns        []builtColumn `json:"columns"`

	*builtInCluster
}

// builtColumn is a column of a vocabulary. Columns of a joint vocabulary share a table.
type builtColumn struct {
	Name     string `json:"name"`
	Table    int    `json:"table"`
	Keys     int64  `json:"keys"`
	Seen     int64  `json:"seen_keys"`
	Appended int64  `json:"appended_keys"`
}

func (c vocabularyCommands) build() *cobra.Command {
	var p vocabularyPassFlags
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build a vocabulary of a data set, for the operator vocabulary of a pipeline",
		Long: `Makes one pass over a data set (Piper's first loop): the pipeline's operators before the operator
vocabulary run as in millrace preprocess, and every id that comes out gets its place in the vocabulary, by the rules
that the pipeline declares under vocabularies. The file is the same bytes whichever engine and however many
drives made the ids. FILE.counts beside it holds the counts of all keys, which millrace vocabulary extend
goes on from. Progress counts splits that are folded in, and keys: those that went to disk for want of memory count
once more when they come again.

With --control or --context the data are the partitions of a cluster: drives, nodes and workers make the ids, as a
job, and this command takes them and keeps sorted runs of them in the folder --work, with what they cover. After a
kill of the command, of a node or of the control plane's leader, or a full disk, the same command goes on from there,
and the file is the same bytes as of the same partitions on one machine.`,
		Example: "  millrace vocabulary build --pipeline p.yaml --in day_*.parquet --out criteo.vocab\n" +
			"  millrace vocabulary build --pipeline p.yaml --name users --drive file:d0.flash --out users.vocab\n" +
			"  millrace vocabulary build --pipeline p.yaml --control https://control-0:7460 --partitions 'day_*' " +
			"--out criteo.vocab",
		Args: p.in.takeArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.pass(cmd, &p, "") },
	}
	p.addFlags(cmd)
	return cmd
}

func (c vocabularyCommands) extend() *cobra.Command {
	var p vocabularyPassFlags
	cmd := &cobra.Command{
		Use:   "extend VOCABULARY",
		Short: "Append the new keys of more data to a vocabulary; its keys keep their ids",
		Long: `Makes a pass over more data. Keys of the vocabulary keep their ids, and new keys are appended by the
rules of the vocabulary, which must be those of the pipeline. VOCABULARY.counts is read, too, so that min_count counts
over all data so far. A file that it counts already is refused, whatever its name is now and whatever the
pipeline's filter was. A model's tables grow at their ends. With --control or --context the data are
partitions of a cluster, as in millrace vocabulary build; name the new ones with --partitions or --exclude.`,
		Example: "  millrace vocabulary extend criteo.vocab --pipeline p.yaml --in day_1.parquet " +
			"--out criteo-1.vocab\n" +
			"  millrace vocabulary extend criteo.vocab --pipeline p.yaml --in day_1.parquet --out criteo.vocab " +
			"--overwrite",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && len(p.in.in) > 0 { // an unquoted pattern behind --in
				p.in.in = append(p.in.in, args[1:]...)
				return nil
			}
			return cli.ExactArgs("VOCABULARY")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.pass(cmd, &p, args[0]) },
	}
	p.addFlags(cmd)
	return cmd
}

// pass makes the pass of build and extend.
func (c vocabularyCommands) pass(cmd *cobra.Command, p *vocabularyPassFlags, extend string) (err error) {
	spec, err := loadPipeline(p.pipeline)
	if err != nil {
		return err
	}
	if p.out == "" {
		return cli.Usagef("--out is wanted")
	}
	if spec, err = p.bind(spec); err != nil {
		return err
	}
	inCluster, err := p.cluster.isCluster(cmd, p.in.in)
	if err != nil {
		return err
	}
	pass := reducer.Pass{Pipeline: spec, Path: p.out, Replace: p.replace, Extend: extend, Temporary: p.folder,
		Memory: p.memory}
	if pass.Name, err = theVocabulary(spec, p.name); err != nil {
		return err
	}
	pass.Disk = p.disk
	source, closeSource, err := p.open(cmd, &pass.Options, p.out, inCluster)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	begin := time.Now()
	made, err := c.runVocabularyPass(cmd, &pass, source)
	if err != nil {
		return namePipeline(err, p.pipeline)
	}
	v := viewBuilt(pass.Path, made, time.Since(begin))
	if inCluster {
		v.builtInCluster = &builtInCluster{takenFromCluster: *viewTaken(&made.Report), Put: p.put}
	}
	if p.put {
		if err := source.(*remote.PassSource).Client.PutVocabulary(cmd.Context(), pass.Path); err != nil {
			return fmt.Errorf("the vocabulary was written, and was not put to the control plane: %w", err)
		}
	}
	return c.Print(v, v.table)
}

// runVocabularyPass makes a pass with progress.
func (c *console) runVocabularyPass(
	cmd *cobra.Command, pass *reducer.Pass, source passes.Source,
) (*reducer.Report, error) {
	finish := c.showPass(&pass.Options, "vocabulary "+pass.Name)
	made, err := pass.Run(cmd.Context(), source)
	finish()
	return made, nameWork(err)
}

// viewBuilt describes a vocabulary that a pass has made.
func viewBuilt(path string, made *reducer.Report, took time.Duration) *builtVocabulary {
	elapsed := took.Seconds()
	v := &builtVocabulary{Out: path, Digest: made.Digest.String(), Bytes: made.Bytes, Rows: made.Rows,
		ElapsedSeconds: elapsed, RowsPerSecond: float64(made.Folded) / elapsed}
	for _, t := range made.Tables {
		v.Keys, v.Seen, v.Appended = v.Keys+t.Keys, v.Seen+t.Seen, v.Appended+t.Appended
	}
	for _, column := range made.Columns {
		t := made.Tables[0]
		if !made.Rules.Joint {
			t = made.Tables[len(v.Columns)]
		}
		v.Columns = append(v.Columns, builtColumn{Name: column.Name, Table: column.Table, Keys: t.Keys, Seen: t.Seen,
			Appended: t.Appended})
	}
	return v
}

// table writes the result for people.
func (v *builtVocabulary) table(w io.Writer) {
	fmt.Fprintf(w, "wrote\t%s, %d bytes\nsha256\t%s\nrows\t%d, %.0f a second\n", v.Out, v.Bytes, v.Digest, v.Rows,
		v.RowsPerSecond)
	if v.builtInCluster != nil {
		v.builtInCluster.table(w)
	}
	fmt.Fprintf(w, "keys\t%d of %d that were seen, %d of them new\n", v.Keys, v.Seen, v.Appended)
	for _, column := range v.Columns {
		fmt.Fprintf(w, "%s\t%d of %d\n", terminal.Cell(column.Name), column.Keys, column.Seen)
	}
}

// theVocabulary returns the name of a vocabulary of the pipeline: the one that is asked for, or the only one.
func theVocabulary(spec *pipeline.Spec, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	switch len(spec.Vocabularies) {
	case 0:
		return "", errors.New("the pipeline declares no vocabularies, see millrace's docs/pipelines.md")
	case 1:
		return spec.Vocabularies[0].Name, nil
	}
	names := make([]string, len(spec.Vocabularies))
	for i := range spec.Vocabularies {
		names[i] = spec.Vocabularies[i].Name
	}
	return "", cli.Usagef("say --name: the pipeline declares the vocabularies %s", strings.Join(names, ", "))
}

// vocabularyInfo is what `millrace vocabulary info` prints.
type vocabularyInfo struct {
	Path    string             `json:"path"`
	Digest  string             `json:"sha256"`
	Version string             `json:"version"`
	Rules   string             `json:"rules"`
	Keys    int64              `json:"keys"`
	Columns []vocabularyColumn `json:"columns"`
	Counts  *vocabularyCounts  `json:"counts,omitempty"` // absent: there is no file of counts
}

// vocabularyColumn is a column of a vocabulary's file.
type vocabularyColumn struct {
	Name  string `json:"name"`
	Table int    `json:"table"`
	Keys  int64  `json:"keys"`
	Chain string `json:"chain_sha256"`
	Seen  int64  `json:"seen_keys,omitempty"`
}

// vocabularyCounts is the sidecar of a vocabulary.
type vocabularyCounts struct {
	Rows    int64 `json:"rows"`
	Matches bool  `json:"matches"` // it was written with the vocabulary
}

func (c vocabularyCommands) info() *cobra.Command {
	return &cobra.Command{
		Use:     "info VOCABULARY",
		Short:   "Show a vocabulary's rules, columns and sizes, and check both of its files",
		Example: "  millrace vocabulary info criteo.vocab\n  millrace vocabulary info criteo.vocab --output json",
		Args:    cli.ExactArgs("VOCABULARY"),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			v, err := vocabulary.Load(args[0])
			if err != nil {
				return err
			}
			info := vocabularyInfo{Path: args[0], Digest: v.Digest.String(),
				Version: fmt.Sprintf("%d.%d", vocabulary.Major, vocabulary.Minor), Rules: v.Rules.String(),
				Keys: v.Keys()}
			counts, err := vocabulary.OpenCounts(args[0], v.Digest)
			switch {
			case err == nil:
				info.Counts = &vocabularyCounts{Rows: int64(counts.Rows), Matches: counts.Vocabulary == v.Digest}
			case !errors.Is(err, os.ErrNotExist):
				return err
			}
			for _, column := range v.Columns {
				shown := vocabularyColumn{Name: column.Name, Table: column.Table,
					Keys: int64(len(v.Tables[column.Table])), Chain: column.Chain.String()}
				if info.Counts != nil && info.Counts.Matches {
					shown.Seen = counts.Keys(column.Table)
				}
				info.Columns = append(info.Columns, shown)
			}
			return c.Print(info, info.table)
		},
	}
}

// table writes the result for people.
func (v *vocabularyInfo) table(w io.Writer) {
	fmt.Fprintf(w, "%s\tversion %s\nsha256\t%s\nrules\t%s\nkeys\t%d\n", terminal.Cell(v.Path), v.Version, v.Digest,
		v.Rules,
		v.Keys)
	switch {
	case v.Counts == nil:
		fmt.Fprintf(w, "counts\tnone: it cannot be extended\n")
	case !v.Counts.Matches:
		fmt.Fprintf(w, "counts\tof another vocabulary: it cannot be extended\n")
	default:
		fmt.Fprintf(w, "counts\tof %s\n", quantity.Of(v.Counts.Rows, "row"))
	}
	for _, column := range v.Columns {
		seen := ""
		if column.Seen > 0 {
			seen = fmt.Sprintf(" of %d that were seen", column.Seen)
		}
		fmt.Fprintf(w, "%s\t%s%s\n", terminal.Cell(column.Name), quantity.Of(column.Keys, "key"), seen)
	}
}

// vocabularyDifference is what `millrace vocabulary diff` prints.
type vocabularyDifference struct {
	Same    bool               `json:"same"` // the files are the same bytes
	Rules   []string           `json:"rules"`
	Columns []columnDifference `json:"columns"`
}

// columnDifference compares a column of two vocabularies.
type columnDifference struct {
	Name       string `json:"name"`
	OtherChain bool   `json:"other_chain"` // other operators make its keys
	Before     int64  `json:"before_keys"`
	After      int64  `json:"after_keys"`
	SameIDs    int64  `json:"same_keys"`
	Moved      int64  `json:"moved_keys"`
	Added      int64  `json:"added_keys"`
	Removed    int64  `json:"removed_keys"`
}

func (c vocabularyCommands) diff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "Compare two vocabularies: keys that kept their ids, moved, came and went",
		Long: `Compares two vocabularies, column by column. A model that was trained with BEFORE can go on with AFTER
where no key moved and none was removed. The exit status is 0 if the vocabularies are the same, and 1 otherwise.`,
		Example: "  millrace vocabulary diff criteo.vocab criteo-1.vocab",
		Args:    cli.ExactArgs("BEFORE", "AFTER"),
		RunE: func(_ *cobra.Command, args []string) error {
			before, err := vocabulary.Load(args[0])
			if err != nil {
				return err
			}
			after, err := vocabulary.Load(args[1])
			if err != nil {
				return err
			}
			columns, err := vocabulary.Compare(before, after)
			if err != nil {
				return err
			}
			d := vocabularyDifference{Same: before.Digest == after.Digest,
				Rules: slices.Compact([]string{before.Rules.String(), after.Rules.String()})}
			for _, column := range columns {
				d.Columns = append(d.Columns, columnDifference{Name: column.Column, OtherChain: column.OtherChain,
					Before: column.Before, After: column.After, SameIDs: column.Same, Moved: column.Moved,
					Added: column.Added, Removed: column.Removed})
			}
			if err := c.Print(d, d.table); err != nil || d.Same {
				return err
			}
			return cli.ErrReported
		},
	}
}

// table writes the result for people.
func (d *vocabularyDifference) table(w io.Writer) {
	if d.Same {
		fmt.Fprintf(w, "the same\t%s\n", d.Rules[0])
		return
	}
	if len(d.Rules) == 2 {
		fmt.Fprintf(w, "rules\t%s, then %s\n", d.Rules[0], d.Rules[1])
	}
	fmt.Fprintf(w, "column\tbefore\tafter\tsame\tmoved\tadded\tremoved\n")
	for _, column := range d.Columns {
		other := ""
		if column.OtherChain {
			other = "\tother operators"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d%s\n", terminal.Cell(column.Name), column.Before, column.After,
			column.SameIDs, column.Moved, column.Added, column.Removed, other)
	}
}

// buildVocabularies builds the vocabularies of --build-vocabulary, of which those without a file stay in memory, and
// returns the pipeline that has them.
func (c *console) buildVocabularies(
	cmd *cobra.Command, spec *pipeline.Spec, files map[string]string, storage api.Storage, queue int64,
) (*pipeline.Spec, []*builtVocabulary, error) {
	var all []*builtVocabulary
	bound := spec
	for _, name := range slices.Sorted(maps.Keys(files)) {
		pass := &reducer.Pass{Pipeline: spec, Name: name, Path: files[name], InMemory: files[name] == "", KeepIDs: true,
			Options: passes.Options{QueueBytes: queue}}
		begin := time.Now()
		made, err := c.runVocabularyPass(cmd, pass, &local.PassSource{Storage: storage})
		if err != nil {
			return nil, nil, err
		}
		if pass.InMemory {
			all = append(all, &builtVocabulary{Digest: made.Vocabulary.Digest.String(),
				ElapsedSeconds: time.Since(begin).Seconds()})
			bound, err = bound.Bind(name, made.Vocabulary)
		} else {
			all = append(all, viewBuilt(pass.Path, made, time.Since(begin)))
			bound, err = local.BindVocabularies(bound, map[string]string{name: pass.Path})
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return bound, all, nil
}

// vocabulariesToBuild reads the values of --build-vocabulary: NAME=FILE, or NAME for a vocabulary without a file.
func vocabulariesToBuild(given []string) (map[string]string, error) {
	files := map[string]string{}
	for _, text := range given {
		name, path, hasFile := strings.Cut(text, "=")
		if name == "" || hasFile && path == "" {
			return nil, cli.Usagef("--build-vocabulary %q: want NAME or NAME=FILE, as piper=criteo.vocab", text)
		}
		if _, twice := files[name]; twice {
			return nil, cli.Usagef("--build-vocabulary names %q twice", name)
		}
		files[name] = path
	}
	return files, nil
}
