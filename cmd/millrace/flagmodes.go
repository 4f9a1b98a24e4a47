package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/local"
)

// mode is a set of the ways in which a command may run. Each way is of one group, and a command runs in one way of each
// group: over files, by the CPU, on rows of text.
type mode uint32

// The ways, by group.
const (
	overFiles     mode = 1 << iota // a drive that is made of --in
	overDrives                     // --drive
	onAccelerator                  // --accelerator
	onService                      // a control plane, to which the command submits a job
	onJob                          // a control plane's job that was submitted before

	byReference // which engine computes
	byCPU
	byDrive
	byRTL

	ofParquet // what the rows are
	ofText
	ofBinary
	ofSummaries

	nearFiles // where the files lie
	webFiles
	storeFiles

	mixesNothing
	mixesSplits
	mixesRows

	withFilter
	withoutFilter

	sharing // with this machine's CPUs, by --local
	notSharing
)

// hereAlone is every way over data that this process opens.
const hereAlone = overFiles | overDrives | onAccelerator

// modeGroups are the groups of ways.
var modeGroups = []mode{hereAlone | onService | onJob, byReference | byCPU | byDrive | byRTL,
	ofParquet | ofText | ofBinary | ofSummaries, nearFiles | webFiles | storeFiles,
	mixesNothing | mixesSplits | mixesRows,
	withFilter | withoutFilter, sharing | notSharing}

// modeWords say what a way is, as the object of "a command with".
var modeWords = map[mode]string{
	overFiles: "--in alone", overDrives: "--drive", onAccelerator: "--accelerator", onService: "a control plane",
	onJob:       "--job",
	byReference: "the engine reference", byCPU: "the engine cpu", byDrive: "a drive that computes",
	byRTL:     "the engine rtl",
	ofParquet: "Parquet files", ofText: "criteo-tsv rows", ofBinary: "criteo-bin rows", ofSummaries: "summaries",
	nearFiles: "files of this machine", webFiles: "https: URLs", storeFiles: "s3: URIs",
	mixesNothing: "--shuffle none", mixesSplits: "--shuffle splits", mixesRows: "--shuffle rows",
	withFilter: "a pipeline with a filter", withoutFilter: "a pipeline without a filter",
	sharing: "--local", notSharing: "a command without --local",
}

// flagUses has the flags that some way does not use, with the ways that use them: in one of the sets, every group that
// the set names must have the command's way. A flag that is not listed is used in every way.
type flagUses map[string][]mode

// The flags of the commands that read rows, by what adds the flags.
var (
	inputUses = flagUses{
		"threads":     {overFiles | byCPU | byDrive, overDrives | byCPU},
		"streams":     {byCPU | byDrive},
		"slm":         {byCPU | byDrive},
		"coalesce":    {byCPU | byDrive},
		"commands":    {overFiles | byDrive},
		"image":       {overFiles | byDrive | nearFiles},
		"accelerator": {byDrive},
		"spread":      {overFiles},
		"label":       {ofText},
		"malformed":   {ofText},
		"root":        {overFiles | onAccelerator},
		"include":     {overFiles | onAccelerator},
		"exclude":     {overFiles | onAccelerator, onService},
	}
	sourceUses = flagUses{
		"source-ca":   {webFiles | storeFiles},
		"s3-endpoint": {storeFiles},
	}
	planUses = flagUses{
		"window": {mixesRows},
		"seed":   {mixesRows | mixesSplits},
	}
	selectionUses = flagUses{"selections": {hereAlone | withFilter}}

	// hereUses are flags of data that this process opens, for commands that know control planes, too.
	hereUses = flagUses{
		"in": {hereAlone}, "drive": {hereAlone}, "accelerator": {hereAlone}, "input-format": {hereAlone},
		"label": {hereAlone}, "malformed": {hereAlone}, "engine": {hereAlone}, "commands": {hereAlone},
		"image": {hereAlone}, "slm": {hereAlone}, "spread": {hereAlone}, "threads": {hereAlone},
		"streams": {hereAlone}, "coalesce": {hereAlone}, "source-ca": {hereAlone}, "s3-endpoint": {hereAlone},
		"temporary": {hereAlone}, "include": {hereAlone}, "sort": {hereAlone}, "root": {hereAlone},
	}
	// clusterUses are flags of passes over the data of a cluster.
	clusterUses = flagUses{
		"partitions": {onService}, "placement": {onService}, "work": {onService},
		"disk": {onService}, "put": {onService}, "cert": {onService}, "key": {onService}, "ca": {onService},
	}
	trainUses = flagUses{
		"job": {onService | onJob}, "name": {onService}, "rank": {onService | onJob}, "ranks": {onService},
		"rank-tail": {onService}, "run": {onService | onJob}, "resume": {onService | onJob}, "weight": {onService},
		"placement": {onService}, "own-worker": {onService | onJob}, "cert": {onService | onJob},
		"key": {onService | onJob}, "ca": {onService | onJob},

		"power-file": {hereAlone}, "power-idle": {hereAlone},
		"selections": {hereAlone}, "autoscale": {hereAlone}, "exclude": {hereAlone},

		"pipeline": {hereAlone | onService}, "batch": {hereAlone | onService}, "split-batches": {hereAlone | onService},
		"window": {hereAlone | onService}, "epochs": {hereAlone | onService}, "max-drives": {hereAlone | onService},
		"tail": {hereAlone | onService}, "shuffle": {hereAlone | onService}, "order": {hereAlone | onService},
		"seed": {hereAlone | onService}, "vocabulary": {hereAlone | onService}, "statistics": {hereAlone | onService},
		"wasm": {hereAlone | onService},

		"offload":           {hereAlone | sharing, onService},
		"offload-model":     {hereAlone | sharing, onService | onJob},
		"offload-metrics":   {hereAlone | sharing, onService | onJob},
		"offload-log":       {hereAlone | sharing},
		"local-accelerator": {hereAlone | sharing},
	}
)

// zeroIsDefault are flags whose value is 0 unless they are given. A zero that is given asks for nothing.
var zeroIsDefault = []string{"batch", "split-batches", "window", "streams", "spread", "stop-after"}

// instead says what to write instead of a flag that a way does not use.
func instead(flag, value string, is mode) string {
	switch {
	case is == overDrives && (flag == "threads" || flag == "commands"):
		return "say it in the URI, as file:d0.flash?" + flag + "=" + value
	case is == onAccelerator && (flag == "threads" || flag == "commands"):
		return "say it in the accelerator's URI, as mem:?" + flag + "=" + value
	case is == overDrives && flag == "image":
		return "load the image with millrace image load"
	case is == overDrives && flag == "spread":
		return "the partitions lie where they are"
	case is&(onService|onJob) != 0:
		return "with a control plane the storage nodes' drives are used, and a job is as it was submitted: leave the flag out"
	case is&hereAlone != 0:
		return "name a control plane with --control or --context, or leave the flag out"
	case is == notSharing:
		return "name the same partitions as files of this machine with --local, or leave the flag out"
	}
	return "leave the flag out"
}

// holds reports whether a set of ways has the way in which a command runs, in every group that the set and the way
// name.
func (uses mode) holds(way mode) (is mode, ok bool) {
	for _, group := range modeGroups {
		if is := way & group; is != 0 && uses&group != 0 && uses&is == 0 {
			return is, false
		}
	}
	return 0, true
}

// refuseUnused returns an error that names a flag that was given and that the command does not use in the way in which
// it runs. Groups that way does not name are not known yet.
func refuseUnused(cmd *cobra.Command, way mode, tables ...flagUses) error {
	return refuseUnusedByAll(cmd, []mode{way}, tables...)
}

// refuseUnusedByAll does what refuseUnused does for a command that runs in several ways one after the other: it refuses
// a flag that none of them uses.
func refuseUnusedByAll(cmd *cobra.Command, ways []mode, tables ...flagUses) error {
	var refused error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, table := range tables {
			if refused == nil {
				refused = table.refuse(f, ways)
			}
		}
	})
	return refused
}

// refuse returns an error if a flag is used in none of the ways.
func (t flagUses) refuse(f *pflag.Flag, ways []mode) error {
	var failed mode
	for _, way := range ways {
		for i, uses := range t[f.Name] {
			is, ok := uses.holds(way)
			if ok {
				return nil
			}
			if i == 0 {
				failed = is
			}
		}
	}
	if failed == 0 {
		return nil
	}
	return usagef("--%s is for %s, and not for %s: %s", f.Name, wordsOf(t[f.Name][0]&groupOf(failed)),
		modeWords[failed], instead(f.Name, f.Value.String(), failed))
}

// groupOf returns the group of a way.
func groupOf(is mode) mode {
	return modeGroups[slices.IndexFunc(modeGroups, func(group mode) bool { return group&is != 0 })]
}

// wordsOf lists the ways of a set.
func wordsOf(uses mode) string {
	var words []string
	if uses&hereAlone == hereAlone {
		words, uses = []string{"data that this command opens"}, uses&^hereAlone
	}
	for is := mode(1); is <= notSharing; is <<= 1 {
		if uses&is != 0 {
			words = append(words, modeWords[is])
		}
	}
	return strings.Join(words, " or ")
}

// refuseZero returns an error if a flag was given a zero that it does not take.
func refuseZero(cmd *cobra.Command) error {
	for _, name := range zeroIsDefault {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "0" {
			return usagef("--%s 0: want 1 or more; leave the flag out for the default", name)
		}
	}
	return nil
}

// wayOfNames returns where the files of names lie: in a store, if any does.
func wayOfNames(names []string) mode {
	way := nearFiles
	for _, name := range names {
		switch {
		case source.Scheme(name) == "s3":
			return storeFiles
		case source.IsURI(name):
			way = webFiles
		}
	}
	return way
}

// way returns the way in which the flags make a command run, without the group of the rows.
func (i *input) way(c *local.Config) mode {
	way := wayOfNames(i.in)
	far := way != nearFiles
	engine := c.Engine
	switch {
	case i.card != "":
		way |= onAccelerator
	case len(i.drives) > 0:
		way |= overDrives
	default:
		way |= overFiles
		if engine == host.EngineAuto && far && i.image == "" {
			engine = host.EngineCPU
		}
	}
	switch engine {
	case host.EngineReference:
		way |= byReference
	case host.EngineCPU:
		way |= byCPU
	case host.EngineRTL:
		way |= byRTL
	default:
		way |= byDrive
	}
	return way
}

// wayHere returns the way in which a command opens data itself, as far as its flags alone say it.
func wayHere(cmd *cobra.Command) mode {
	given := func(flag string) bool { f := cmd.Flags().Lookup(flag); return f != nil && f.Changed }
	way := overFiles
	switch {
	case given("accelerator"):
		way = onAccelerator
	case given("drive"):
		way = overDrives
	}
	if given("local") {
		return way | sharing
	}
	return way | notSharing
}

// wayOf returns the way of rows of a format.
func wayOf(rows program.Source) mode {
	switch rows {
	case program.CriteoTSV:
		return ofText
	case program.CriteoBinary:
		return ofBinary
	}
	return ofParquet
}

// way returns the way in which a plan mixes rows.
func (p *planFlags) way() mode {
	switch p.shuffle {
	case dataset.ShuffleRows.String():
		return mixesRows
	case dataset.ShuffleSplits.String():
		return mixesSplits
	}
	return mixesNothing
}
