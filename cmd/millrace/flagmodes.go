package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/local"
)

// modes is a set of the modes in which a command may run. The modes form groups, and a command runs in one mode of each
// group: for example over files, computed by the CPU, on rows of text.
type modes uint32

// The modes, by group.
const (
	overFiles     modes = 1 << iota // a drive that is made of --in
	overDrives                      // --drive
	onAccelerator                   // --accelerator
	onService                       // a control plane, to which the command submits a job
	onJob                           // a control plane's job that was submitted before

	byReference // the engine that computes
	byCPU
	byDrive
	byRTL

	ofParquet // the format of the rows
	ofText
	ofBinary
	ofSummaries

	nearFiles // the place of the files
	webFiles
	storeFiles

	mixesNothing
	mixesSplits
	mixesRows

	withFilter
	withoutFilter

	withOwnCPUs // with this machine's CPUs, by --local
	withoutOwnCPUs
)

// inProcess are the modes in which the command opens the data itself.
const inProcess = overFiles | overDrives | onAccelerator

var modeGroups = []modes{
	inProcess | onService | onJob,
	byReference | byCPU | byDrive | byRTL,
	ofParquet | ofText | ofBinary | ofSummaries,
	nearFiles | webFiles | storeFiles,
	mixesNothing | mixesSplits | mixesRows,
	withFilter | withoutFilter,
	withOwnCPUs | withoutOwnCPUs,
}

// modeWords describe the modes, in the order of their bits, as the object of "a flag is for".
var modeWords = []string{
	"--in alone", "--drive", "--accelerator", "a control plane", "--job",
	"the engine reference", "the engine cpu", "a drive that computes", "the engine rtl",
	"Parquet files", "criteo-tsv rows", "criteo-bin rows", "summaries",
	"files of this machine", "https: URLs", "s3: URIs",
	"--shuffle none", "--shuffle splits", "--shuffle rows",
	"a pipeline with a filter", "a pipeline without a filter",
	"--local", "a command without --local",
}

// flagUses lists the flags that some mode does not use: the names of flags, separated by spaces, with the modes that
// use them. A flag is used if one of its sets has the command's mode in every group that the set names. A flag that is
// not listed is used in every mode.
type flagUses map[string][]modes

// The flags of the commands that read rows, by the function that adds the flags.
var (
	inputUses = flagUses{
		"threads":              {overFiles | byCPU | byDrive, overDrives | byCPU},
		"streams slm coalesce": {byCPU | byDrive},
		"commands":             {overFiles | byDrive},
		"image":                {overFiles | byDrive | nearFiles},
		"accelerator":          {byDrive},
		"spread":               {overFiles},
		"label malformed":      {ofText},
		"root include":         {overFiles | onAccelerator},
		"exclude":              {overFiles | onAccelerator, onService},
	}
	sourceUses = flagUses{
		"source-ca":   {webFiles | storeFiles},
		"s3-endpoint": {storeFiles},
	}
	planUses = flagUses{
		"window": {mixesRows},
		"seed":   {mixesRows | mixesSplits},
	}
	selectionUses = flagUses{"selections": {inProcess | withFilter}}

	// hereUses are flags of data that the command opens, for commands that may also use a control plane.
	hereUses = flagUses{"in drive accelerator input-format label malformed engine commands image slm spread threads " +
		"streams coalesce source-ca s3-endpoint temporary include sort root": {inProcess}}
	// clusterUses are flags of passes over the data of a cluster.
	clusterUses = flagUses{"partitions placement work disk put cert key ca": {onService}}

	trainUses = flagUses{
		"name ranks rank-tail weight placement":              {onService},
		"job rank run resume own-worker cert key ca":         {onService | onJob},
		"power-file power-idle selections autoscale exclude": {inProcess},
		"pipeline vocabulary statistics wasm split batch":    {inProcess | onService},
		"split-batches window epochs boundary tail shuffle":  {inProcess | onService},
		"order seed max-drives":                              {inProcess | onService},

		"offload":                       {inProcess | withOwnCPUs, onService},
		"offload-model offload-metrics": {inProcess | withOwnCPUs, onService | onJob},
		"offload-log local-accelerator profile-time": {inProcess | withOwnCPUs},
	}
)

// instead advises what to write instead of a flag that a mode does not use.
func instead(flag, value string, mode modes) string {
	switch {
	case mode == overDrives && (flag == "threads" || flag == "commands"):
		return "say it in the URI, as file:d0.flash?" + flag + "=" + value
	case mode == onAccelerator && (flag == "threads" || flag == "commands"):
		return "say it in the accelerator's URI, as mem:?" + flag + "=" + value
	case mode == overDrives && flag == "image":
		return "load the image with millrace image load"
	case mode == overDrives && flag == "spread":
		return "the partitions lie where they are"
	case mode&(onService|onJob) != 0:
		return "with a control plane the storage nodes' drives are used, and a job is as it was submitted: leave " +
			"the flag out"
	case mode&inProcess != 0:
		return "name a control plane with --control or --context, or leave the flag out"
	case mode == withoutOwnCPUs:
		return "name the same partitions as files of this machine with --local, or leave the flag out"
	}
	return "leave the flag out"
}

// lacking returns the command's mode that a set lacks in a group that both name, or 0 if there is none.
func (set modes) lacking(mode modes) modes {
	for _, group := range modeGroups {
		if is := mode & group; is != 0 && set&group != 0 && set&is == 0 {
			return is
		}
	}
	return 0
}

// group returns the group of a mode.
func (set modes) group() modes {
	return modeGroups[slices.IndexFunc(modeGroups, func(group modes) bool { return group&set != 0 })]
}

// String lists the modes of a set in words.
func (set modes) String() string {
	var words []string
	if set&inProcess == inProcess {
		words, set = []string{"data that this command opens"}, set&^inProcess
	}
	for bit, word := range modeWords {
		if set&(1<<bit) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

// refuseUnused returns an error that names a flag that was given and that the command does not use in its mode. The
// mode may lack groups that are not known yet.
func refuseUnused(cmd *cobra.Command, mode modes, tables ...flagUses) error {
	return refuseUnusedInAll(cmd, []modes{mode}, tables...)
}

// refuseUnusedInAll does what refuseUnused does for a command that runs in several modes one after the other: it
// refuses a flag that none of them uses.
func refuseUnusedInAll(cmd *cobra.Command, ran []modes, tables ...flagUses) error {
	var refused error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, table := range tables {
			if refused == nil {
				refused = table.refuse(f, ran)
			}
		}
	})
	return refused
}

// of returns the sets of modes that use a flag, or nil if every mode does.
func (t flagUses) of(flag string) []modes {
	for names, uses := range t {
		if slices.Contains(strings.Fields(names), flag) {
			return uses
		}
	}
	return nil
}

// refuse returns an error if a flag is used in none of the modes in which the command runs.
func (t flagUses) refuse(f *pflag.Flag, ran []modes) error {
	uses := t.of(f.Name)
	for _, mode := range ran {
		used := func(set modes) bool { return set.lacking(mode) == 0 }
		if uses == nil || slices.ContainsFunc(uses, used) {
			return nil
		}
	}
	lacking := uses[0].lacking(ran[len(ran)-1])
	return cli.Usagef("--%s is for %s, and not for %s: %s", f.Name, uses[0]&lacking.group(), lacking,
		instead(f.Name, f.Value.String(), lacking))
}

// placeOf returns the mode of the place of files: a store if one of the files is in a store.
func placeOf(files []source.Location) modes {
	place := nearFiles
	for _, at := range files {
		switch {
		case at.Scheme() == "s3":
			return storeFiles
		case at.InStore():
			place = webFiles
		}
	}
	return place
}

// mode returns the mode in which the flags make a command run, without the format of the rows.
func (i *input) mode(c *local.Config) modes {
	mode, engine := placeOf(i.files()), c.Engine
	switch {
	case i.card != "":
		mode |= onAccelerator
	case len(i.drives) > 0:
		mode |= overDrives
	default:
		if engine == host.EngineAuto && mode != nearFiles && i.image == "" {
			engine = host.EngineCPU
		}
		mode |= overFiles
	}
	switch engine {
	case host.EngineReference:
		return mode | byReference
	case host.EngineCPU:
		return mode | byCPU
	case host.EngineRTL:
		return mode | byRTL
	}
	return mode | byDrive
}

// modeOfFlags returns the mode in which a command opens data itself, as far as its flags decide it.
func modeOfFlags(cmd *cobra.Command) modes {
	mode := withoutOwnCPUs
	if cmd.Flags().Changed("local") {
		mode = withOwnCPUs
	}
	switch {
	case cmd.Flags().Changed("accelerator"):
		return mode | onAccelerator
	case cmd.Flags().Changed("drive"):
		return mode | overDrives
	}
	return mode | overFiles
}

// formatMode returns the mode of rows of a format.
func formatMode(rows program.Source) modes {
	switch rows {
	case program.CriteoTSV:
		return ofText
	case program.CriteoBinary:
		return ofBinary
	}
	return ofParquet
}

// mode returns the mode in which a plan mixes rows.
func (p *planFlags) mode() modes {
	switch p.shuffle {
	case dataset.ShuffleRows.String():
		return mixesRows
	case dataset.ShuffleSplits.String():
		return mixesSplits
	}
	return mixesNothing
}
