package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/remote"
)

// jobCommands are the commands about the jobs of a control plane.
type jobCommands struct{ *console }

func (c jobCommands) command() *cobra.Command {
	return cli.Group("jobs", "Jobs of a control plane", c.submit(), c.list(), c.show(), c.watch(),
		c.checkpoint(), c.cancel())
}

// jobView is a job as it is printed.
type jobView struct {
	ID          string     `json:"id" table:"job"`
	State       string     `json:"state" table:"state"`
	epoch       string     `table:"epoch"`
	share       string     `table:"delivered"`                          // the share of the epoch that is delivered
	LeftOut     int64      `json:"left_out_rows" table:"left out rows"` // No rank gets these rows.
	Short       uint64     `json:"short_mini_batches"`
	Drives      int32      `json:"drives" table:"drives"`
	Wanted      int32      `json:"drives_wanted" table:"wanted"`
	attached    string     `table:"attached"`
	LastContact string     `json:"last_contact" table:"last contact"` // empty: no rank called since the leader leads
	Submitted   string     `json:"submitted" table:"submitted"`
	Name        string     `json:"name"`
	Digest      string     `json:"digest"`
	Owner       string     `json:"owner"` // the owner of the launchers that may attach; empty: every launcher may
	Epoch       uint64     `json:"epoch"` // from 0
	Epochs      uint64     `json:"epochs"`
	MiniBatches uint64     `json:"mini_batches"`
	Delivered   uint64     `json:"mini_batches_delivered"`
	Rows        int64      `json:"rows"`           // rows of the data, which each epoch reads
	AllRows     int64      `json:"delivered_rows"` // rows that all ranks got in all epochs
	T           float64    `json:"t_rows_per_second"`
	P           float64    `json:"p_rows_per_second"`
	Stall       float64    `json:"expected_stall_seconds"`
	Allocation  string     `json:"allocation"`
	Redelivered uint64     `json:"leases_redelivered"`
	WaitsFor    string     `json:"wait_reason"`
	Follows     bool       `json:"follow"`
	FollowsOnce bool       `json:"follow_once"`           // Each later partition is delivered once.
	Abandon     float64    `json:"abandon_after_seconds"` // 0: never
	Ranks       []rankView `json:"per_rank"`

	Placement    string `json:"placement"`
	Workers      int32  `json:"workers"`             // without data, at once beside the drives; -1: all
	WorkersReady int32  `json:"workers_ready"`       // without data, prepared for the job
	SplitsHeld   uint64 `json:"splits_held"`         // granted to drives that hold them
	SplitsAny    uint64 `json:"splits_of_reach_any"` // granted to workers without data
	SplitsOwn    uint64 `json:"splits_own"`          // Ranks' own CPUs got these of splits_of_reach_any.
	Offload      string `json:"offload_policy"`      // how splits are shared with ranks' own CPUs; empty: not at all

	Vocabularies []appliedVocabulary `json:"vocabularies"`
	Lookups      []lookedUpOn        `json:"lookups"` // jobs show asks the nodes for them
	Modules      []jobModule         `json:"modules"`
	Selection    *selectedView       `json:"selection,omitempty"`
}

type rankView struct {
	Rank        uint32  `json:"rank" table:"rank"`
	Attached    bool    `json:"attached" table:"attached"`
	LastContact string  `json:"last_contact" table:"last contact"` // empty: it has not called since the leader leads
	Delivered   uint64  `json:"mini_batches_delivered" table:"delivered"`
	MiniBatches uint64  `json:"mini_batches" table:"of"`
	Queue       float64 `json:"queue_mini_batches" table:"queue|%.1f"`
	Stall       float64 `json:"stall_seconds" table:"stall|%.1f s"`
	Detached    string  `json:"detach_reason" table:"detached because"` // empty: it is attached, or was not yet
	T           float64 `json:"t_rows_per_second"`                      // as the launcher measured it; 0: it did not
	Own         int32   `json:"own_workers"`                            // They serve this rank alone.
	SplitsOwn   uint64  `json:"splits_own"`                             // granted to them
	Share       float64 `json:"other_workers_share"`                    // -1: the others come first
	Why         string  `json:"offload_reason"`                         // why the share is what it is

	ProfileFrom    string  `json:"profile_from"` // measured, stored by an earlier job, or empty: there is none yet
	ProfileSeconds float64 `json:"profile_seconds"`
	ProfileShare   float64 `json:"profile_share"` // 0 to 1; the profile took this share of the training
}

func viewJob(s *apiv1.JobStatus) jobView {
	v := jobView{
		ID: s.GetId(), Name: s.GetSpec().GetName(), State: s.GetState(), Digest: hex.EncodeToString(s.GetDigest()),
		Submitted: time.UnixMilli(int64(s.GetSubmittedSeconds() * 1e3)).UTC().Format(time.RFC3339),
		Epoch:     s.GetEpoch(), Epochs: s.GetSpec().GetEpochs(), MiniBatches: s.GetMinibatches(),
		Delivered: s.GetDelivered(), Rows: s.GetRows(), LeftOut: s.GetLeftOutRows(), AllRows: s.GetDeliveredRows(),
		Short: s.GetShortMinibatches(),
		T:     s.GetSpec().GetTRowsPerSecond(), P: s.GetPRowsPerSecond(), Drives: s.GetDrives(),
		Wanted: s.GetDrivesWanted(), Stall: s.GetExpectedStallSeconds(),
		Allocation: s.GetAllocation(), Redelivered: s.GetRedelivered(), WaitsFor: s.GetWaitsFor(),
		Follows: s.GetSpec().GetFollow(), FollowsOnce: s.GetSpec().GetFollowOnce(),
		Abandon: s.GetAbandonAfterSeconds(), Owner: s.GetOwner(), Ranks: []rankView{},
		Placement: s.GetSpec().GetPlacement(), Workers: s.GetWorkers(), WorkersReady: s.GetWorkersReady(),
		SplitsHeld: s.GetSplitsHeld(), SplitsAny: s.GetSplitsAny(), SplitsOwn: s.GetSplitsOwn(),
		Offload: s.GetSpec().GetOffload(), Vocabularies: viewVocabularies(s),
		Lookups: viewLookups(s), Modules: viewModules(s.GetSpec()),
		Selection: viewSelection(s.GetSelection()),
	}
	last, attached := 0.0, 0
	for _, r := range s.GetRanks() {
		v.Ranks = append(v.Ranks, rankView{Rank: r.Rank, Attached: r.Attached, MiniBatches: r.Minibatches,
			Delivered: r.Delivered, Queue: r.QueueBatches, Stall: r.StallSeconds,
			LastContact: formatContact(r.LastContactSeconds), Detached: r.Detached, T: r.TRowsPerSecond,
			Own: r.OwnWorkers, SplitsOwn: r.SplitsOwn, Share: r.ShareElsewhere, Why: r.Offload,
			ProfileFrom: r.ProfileFrom, ProfileSeconds: r.ProfileSeconds, ProfileShare: r.ProfileShare})
		last = max(last, r.LastContactSeconds)
		if r.Attached {
			attached++
		}
	}
	v.LastContact = formatContact(last)
	v.epoch = v.formatEpoch()
	v.attached = fmt.Sprintf("%d of %d", attached, len(v.Ranks))
	v.share = "-"
	if v.MiniBatches > 0 {
		v.share = fmt.Sprintf("%.1f%%", 100*float64(v.Delivered)/float64(v.MiniBatches))
	}
	return v
}

// formatContact returns a time of the control plane's clock as RFC 3339; empty for 0.
func formatContact(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return time.UnixMilli(int64(seconds * 1e3)).UTC().Format(time.RFC3339)
}

// formatT returns T, for a table.
func (v *jobView) formatT() string {
	if v.T == 0 {
		return "not known: every drive may run"
	}
	return fmt.Sprintf("%.0f rows/s", v.T)
}

// formatWorkers returns how many workers without data may run, for a table.
func (v *jobView) formatWorkers() string {
	if v.Workers < 0 {
		return "all"
	}
	return strconv.Itoa(int(v.Workers))
}

func printJob(w io.Writer, v jobView) {
	fmt.Fprintf(w, "job\t%s\nname\t%s\nstate\t%s\ndigest\t%s\nsubmitted\t%s\n", v.ID, v.Name, v.State, v.Digest,
		v.Submitted)
	if v.Owner != "" {
		fmt.Fprintf(w, "owner\t%s\n", v.Owner)
	}
	fmt.Fprintf(w, "epoch\t%s\ndelivered\t%d of %s of the epoch (%s)\nrows\t%d in each epoch\n", v.epoch,
		v.Delivered, quantity.Of(v.MiniBatches, "mini-batch"), v.share, v.Rows)
	printShort(w, v.Short)
	printLeftOut(w, v.LeftOut)
	fmt.Fprintf(w, "delivered in all epochs\t%s\n", quantity.Of(v.AllRows, "row"))
	fmt.Fprintf(w,
		"T\t%s\nP\t%.0f rows/s a drive\ndrives\t%d at once, T/P wants %d\nallocation\t%s\nexpected stall\t%.1f s\n"+
			"leases redelivered\t%d\n", v.formatT(), v.P, v.Drives, v.Wanted, v.Allocation, v.Stall, v.Redelivered)
	fmt.Fprintf(w, "placement\t%s\nworkers without data\t%s at once beside the drives, %d prepared\n"+
		"splits granted\t%d to drives that hold them, %d to workers without data\n", dash(v.Placement),
		v.formatWorkers(), v.WorkersReady, v.SplitsHeld, v.SplitsAny)
	if v.Offload != "" {
		fmt.Fprintf(w, "offload\t%s\nsplits of ranks' own CPUs\t%d\n", v.Offload, v.SplitsOwn)
	}
	printVocabularies(w, v.Vocabularies, v.Lookups)
	for _, m := range v.Modules {
		fmt.Fprintf(w, "module\t%s: %.12s, %d bytes\n", terminal.Cell(m.Name), m.Digest, m.Bytes)
	}
	printSelection(w, v.Selection)
	if v.Follows {
		fmt.Fprintf(w, "follows\t%s\n", v.formatFollow())
	}
	if v.WaitsFor != "" {
		fmt.Fprintf(w, "waits for\t%s\n", v.WaitsFor)
	}
	if v.Abandon > 0 {
		fmt.Fprintf(w, "abandoned\twhen no rank has called for %v\n", time.Duration(v.Abandon*float64(time.Second)))
	} else {
		fmt.Fprintf(w, "abandoned\tnever\n")
	}
	if len(v.Ranks) > 0 {
		fmt.Fprintln(w)
		terminal.Rows(w, v.Ranks)
	}
	if v.Offload != "" && len(v.Ranks) > 0 {
		fmt.Fprintf(w, "\nrank\tT rows/s\town workers\ttheir splits\tshare elsewhere\tprofile\tbecause\n")
		for _, r := range v.Ranks {
			share := "all"
			if r.Share >= 0 && r.Own > 0 {
				share = fmt.Sprintf("%.1f%%", 100*r.Share)
			}
			fmt.Fprintf(w, "%d\t%.0f\t%d\t%d\t%s\t%s\t%s\n", r.Rank, r.T, r.Own, r.SplitsOwn, share, r.formatProfile(),
				dash(r.Why))
		}
	}
}

// printVocabularies prints where ids of a job are looked up.
func printVocabularies(w io.Writer, list []appliedVocabulary, lookups []lookedUpOn) {
	for _, v := range list {
		where := "looked up in the drives whose memory holds the tables, else by nodes and workers"
		if len(lookups) > 0 {
			where = "looked up by the " + v.LookedUpBy
		}
		fmt.Fprintf(w, "vocabulary\t%s: %.12s, %d keys: ids %s\n", terminal.Cell(v.Name), v.Digest, v.Keys, where)
	}
	printKeyLookups(w, lookups)
}

// formatProfile returns what a rank's profile took, for a table.
func (r *rankView) formatProfile() string {
	switch {
	case r.ProfileFrom != "":
		return fmt.Sprintf("%s, %.1f s (%.1f%%)", r.ProfileFrom, r.ProfileSeconds, 100*r.ProfileShare)
	case r.ProfileSeconds > 0:
		return fmt.Sprintf("%.1f s (%.1f%%)", r.ProfileSeconds, 100*r.ProfileShare)
	}
	return "-"
}

func (c jobCommands) submit() *cobra.Command {
	var (
		f          remoteFlags
		spec       apiv1.JobSpec
		plan       planFlags
		name       string
		resume     string
		wait       bool
		maxDrives  int32
		partitions []string
		exclude    []string
		abandon    time.Duration
		owner      string
		files      pipelineFiles
	)
	cmd := &cobra.Command{
		Use:   "submit",
		Short: "Submit a job",
		Long: `Hands a job to the control plane: a pipeline over the partitions that match --partitions and not
--exclude, of those that live nodes hold. The job is prepared on the nodes and P is measured; then
launchers attach to it, each as one rank (trainmgr/remote, millrace train --control, or the Python
package). Submitting again, word for word the same, returns the job that runs.

The partitions that one job excludes are what another takes: so training and validation are split. Within
partitions --split does it: two jobs with --split train:0.9:7 and --split validation:0.9:7 share no row and
leave none out.
With --follow, partitions that appear later are taken when all that was there is delivered, each for --epochs
epochs more; with --follow=once each for one.

The summaries of --statistics become numbers in the job's pipeline, so that nodes need no summary.
The files of --vocabulary are put to the control plane, unless it has them: they are named by their digest,
which is part of the job's. Nodes fetch them, and look ids up in them. Those of --wasm are put there, too. Drives
call the functions of their active images' modules; other machines call those of images that their
configurations name, and modules that are put only if their configurations say so (modules.submitted).`,
		Example: "  millrace jobs submit --pipeline rm1.yaml --name ads --partitions 'day-2026-11-*' --epochs 2 " +
			"--ranks 8 --t 2.5e6\n" +
			"  millrace jobs submit --pipeline rm1 --name check-ads --split validation:0.9:7\n" +
			"  millrace jobs submit --pipeline rm1 --name validate --partitions 'day-2026-11-30*' --wait",
		Args: cli.NoArgs,
	}
	fl := cmd.Flags()
	fl.StringVar(&name, "pipeline", "", "YAML file of the feature pipeline, or the name of one that ships")
	fl.StringVar(&spec.Name, "name", "", "name, unique among jobs that run: 1 to 63 of a-z 0-9 - (default: made up)")
	fl.StringSliceVar(&partitions, "partitions", nil, "patterns of partitions' names, with * and ? (default: all)")
	fl.StringSliceVar(&exclude, "exclude", nil, "patterns of partitions that are not taken")
	fl.Uint64Var(&spec.Epochs, "epochs", 1, "how often to go over the partitions")
	fl.Uint32Var(&spec.Ranks, "ranks", 1, "consumers that share the mini-batches")
	cli.AddChoice(fl, &spec.RankTail, "rank-tail", "drop", "what becomes of mini-batches that cannot be shared out "+
		"equally: drop, or keep (the first ranks get one more)", "drop", "keep")
	fl.StringVar(&spec.Order, "order", "fastest",
		"fastest, or deterministic: each rank gets its mini-batches in the plan's order")
	addPlacement(fl, &spec.Placement, "")
	fl.StringVar(&spec.Offload, "offload", "", offloadUsage)
	fl.Float64Var(&spec.Weight, "weight", 1, "share of a drive among jobs that want it")
	fl.Var(quantity.RateFlag{To: &spec.TRowsPerSecond}, "t",
		"T: rows a second that the trainer takes, all ranks together; 0: not known, every drive runs")
	fl.Int32Var(&maxDrives, "max-drives", 0, "drives at once at most; 0: no bound")
	fl.StringVar(&resume, "resume", "",
		"file with a token to go on from, as train --checkpoint and jobs checkpoint write it")
	fl.DurationVar(&abandon, "abandon-after", 0,
		"end the job when no rank has called for so long; 0: as the control plane says (control run --abandon-after, "+
			"and --attach-within until a rank has attached)")
	fl.StringVar(&owner, "owner", "",
		"by an operator: whose launchers may see the job, attach to it and cancel it, by the name in their "+
			"certificates up to the first dot (default: every launcher may see it and attach)")
	files.addFlags(fl)
	cli.AddNativeTiming(fl, cli.ServiceTiming)
	addFollow(fl, &spec)
	plan.addFlags(fl)
	fl.BoolVar(&wait, "wait", false, "wait until the job runs")
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, _ []string) error {
		document, err := files.document(name)
		if err != nil {
			return err
		}
		if err := checkSpec(&spec, maxDrives, abandon); err != nil {
			return err
		}
		if spec.Plan, err = plan.message(); err != nil {
			return err
		}
		if err := refuseUnused(cmd, plan.mode(), planUses); err != nil {
			return err
		}
		spec.AbandonAfterSeconds = abandon.Seconds()
		spec.Pipeline, spec.Partitions, spec.Exclude, spec.MaxDrives = document, partitions, exclude, maxDrives
		if resume != "" {
			if spec.Resume, err = readSealed("resume", resume); err != nil {
				return err
			}
		}
		submitted, err := files.submitted()
		if err != nil {
			return err
		}
		job, err := client.SubmitWith(ctx, owner, &spec, submitted)
		if err != nil {
			return err
		}
		if wait {
			if job, err = client.AwaitRunning(ctx, job.Id); err != nil {
				return err
			}
		}
		v := viewJob(job)
		return c.Print(v, func(w io.Writer) { printJob(w, v) })
	})
}

// offloadUsage is the usage of --offload of jobs submit.
const offloadUsage = "share splits out between each rank's own CPUs (a worker that serves the rank alone) and all " +
	"other workers: extended, paper, fastflow-code, or the share of the others from 0 to 1 (default: the others come " +
	"first)"

// addPlacement adds the flag --placement, whose usage begins with when.
func addPlacement(f *pflag.FlagSet, to *string, when string) {
	cli.AddChoice(f, to, "placement", string(record.PlacementAuto), when+"which workers may make the mini-batches, whose "+
		"bytes are the same on all: "+strings.Join(record.Placements(), ", "), record.Placements()...)
}

// pipelineDocument returns the YAML of a pipeline. It is checked here so that an error names the file.
func pipelineDocument(name string) ([]byte, error) {
	if _, err := loadPipeline(name); err != nil {
		return nil, err
	}
	b, err := readDocument(name)
	if err != nil {
		return pipeline.Document(name)
	}
	return b, nil
}

// checkSpec refuses values of flags that no job has, before a control plane is asked.
func checkSpec(spec *apiv1.JobSpec, maxDrives int32, abandon time.Duration) error {
	if _, err := dataset.ParseOrder(spec.Order); err != nil {
		return cli.WrongUsage(err)
	}
	switch {
	case !(spec.Weight >= 0):
		return cli.Usagef("--weight %v: want more than 0", spec.Weight)
	case maxDrives < 0 || abandon < 0:
		return cli.Usagef("--max-drives %d, --abandon-after %v: want nothing below 0", maxDrives, abandon)
	}
	return nil
}

func (c jobCommands) list() *cobra.Command {
	var (
		f     remoteFlags
		watch bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs: those that run, then those that ended",
		Long: `Lists the jobs that the control plane knows; of those that ended, the last hundred or so. A job
whose ranks are all detached stays for whoever attaches, and gives its room on nodes to a job that
needs it; it ends by itself, abandoned, when nobody has for as long as it, or the control plane,
allows (control run --abandon-after and --attach-within).`,
		Example: "  millrace jobs list --watch",
		Args:    cli.NoArgs,
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print again every second until it is interrupted")
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, _ []string) error {
		return c.printRepeatedly(ctx, watch, func(c *console) error {
			jobs, err := client.List(ctx)
			if err != nil {
				return err
			}
			views := make([]jobView, len(jobs))
			for i, j := range jobs {
				views[i] = viewJob(j)
			}
			return printRows(c, views)
		})
	})
}

func (c jobCommands) show() *cobra.Command {
	var (
		f         remoteFlags
		decisions bool
	)
	cmd := &cobra.Command{
		Use:   "show JOB",
		Short: "Show a job",
		Long: "Shows a job, by its id or its name. With --decisions, instead, what its autoscaler decided last, " +
			"each decision with its inputs.",
		Example: "  millrace jobs show ads\n  millrace jobs show ads --decisions --output json",
		Args:    cli.ExactArgs("JOB"),
	}
	cmd.Flags().BoolVar(&decisions, "decisions", false, "show the autoscaler's last decisions")
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		if decisions {
			return c.showDecisions(ctx, client, args[0])
		}
		st, err := client.Get(ctx, args[0])
		if err != nil {
			return err
		}
		v := viewJob(st)
		return c.Print(v, func(w io.Writer) { printJob(w, v) })
	})
}

func (c jobCommands) showDecisions(ctx context.Context, client *remote.Client, id string) error {
	list, err := client.Decisions(ctx, id)
	if err != nil {
		return err
	}
	raw := make([]json.RawMessage, len(list))
	for i, d := range list {
		if !json.Valid([]byte(d)) {
			return fmt.Errorf("decisions of job %s: decision %d is not JSON", id, i)
		}
		raw[i] = json.RawMessage(d)
	}
	return c.Print(raw, func(w io.Writer) {
		fmt.Fprintf(w, "second\tdrives\trunning\tqueue\tstall\twhy\n")
		for _, d := range raw {
			var r struct {
				Inputs struct {
					Seconds float64 `json:"seconds"`
					Running int     `json:"running"`
					Queue   float64 `json:"queue_batches"`
					Stall   float64 `json:"stall_seconds"`
				} `json:"inputs"`
				Decision struct {
					Drives int    `json:"drives"`
					Why    string `json:"why"`
				} `json:"decision"`
			}
			if json.Unmarshal(d, &r) == nil {
				fmt.Fprintf(w, "%.1f\t%d\t%d\t%.1f\t%.1f s\t%s\n", r.Inputs.Seconds, r.Decision.Drives,
					r.Inputs.Running, r.Inputs.Queue, r.Inputs.Stall, r.Decision.Why)
			}
		}
	})
}

func (c jobCommands) cancel() *cobra.Command {
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "cancel JOB",
		Short: "Cancel a job",
		Long: "Ends a job for all its ranks. The trainer's token remains valid: a job submitted with it as " +
			"--resume goes on.",
		Example: "  millrace jobs cancel ads",
		Args:    cli.ExactArgs("JOB"),
	}
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		if err := client.Cancel(ctx, args[0]); err != nil {
			return err
		}
		st, err := client.Get(ctx, args[0])
		if err != nil {
			return err
		}
		v := viewJob(st)
		return c.Print(v, func(w io.Writer) { fmt.Fprintf(w, "job %s is %s\n", v.ID, v.State) })
	})
}
