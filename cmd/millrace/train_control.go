package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/trainmgr/remote"
	"github.com/millrace/millrace/trainmgr/standin"
)

// serviceFlags are the flags of train for a job of a control plane.
type serviceFlags struct {
	addressFlags
	job      string
	name     string
	rank     uint32
	ranks    uint32
	rankTail string
	run      string
	resume   bool
	weight   float64

	placement string
	ownWorker string

	files remote.Files
}

func (s *serviceFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	s.addressFlags.addFlags(cmd, "for a job of the service: ")
	f.StringVar(&s.job, "job", "",
		"for a job of the service: attach to this job, by id or name, instead of submitting one")
	f.StringVar(&s.name, "name", "",
		"for a job of the service: name of the job that is submitted (default: one is made up)")
	f.Uint32Var(&s.rank, "rank", 0, "for a job of the service: which rank of the job this is")
	f.Uint32Var(&s.ranks, "ranks", 1,
		"for a job of the service: ranks of the job that is submitted; each gets an equal number of mini-batches")
	cli.AddChoice(f, &s.rankTail, "rank-tail", "drop",
		"for a job of the service: mini-batches that cannot be shared out equally: drop or keep", "drop", "keep")
	f.StringVar(&s.run, "run", "",
		"for a job of the service: name of the training run, the same for all of its ranks and for no other run "+
			"(default: $MILLRACE_RUN, else one is made up)")
	f.BoolVar(&s.resume, "resume", false,
		"for a job of the service: go on where another run stopped, without the mini-batches that it acknowledged")
	addPlacement(f, &s.placement, "for a job of the service: ")
	f.StringVar(&s.ownWorker, "own-worker", "",
		"for a job of the service with --offload: configuration of the worker that this rank's own CPUs are, a YAML "+
			"file (default: one core less than there are, on a port of this machine; with --cert, at a host of that "+
			"certificate)")
	f.Float64Var(&s.weight, "weight", 1, "for a job of the service: share of a drive among jobs")
}

// isService reports whether the job runs on a control plane's nodes, and refuses flags that contradict each other. It
// does if --control or --context is given, or if neither --in nor --drive names data of this machine and the
// environment or a context names a control plane.
func (s *serviceFlags) isService(cmd *cobra.Command) (service bool, err error) {
	if len(s.control) == 0 && s.context == "" {
		here := cmd.Flags().Changed("in") || cmd.Flags().Changed("drive")
		if !here {
			t, err := s.target()
			if err != nil {
				return false, err
			}
			here = len(t.Control) == 0
		}
		if here {
			return false, refuseUnused(cmd, modeOfFlags(cmd), trainUses)
		}
	}
	mode := onService
	if s.job != "" {
		mode = onJob
	}
	if err := refuseUnused(cmd, mode, trainUses, hereUses); err != nil || mode == onJob {
		return true, err
	}
	switch {
	case s.ranks < 1 || s.rank >= s.ranks:
		return true, cli.Usagef("--rank %d of --ranks %d: ranks count from 0", s.rank, s.ranks)
	case !(s.weight > 0):
		return true, cli.Usagef("--weight %v: want more than 0", s.weight)
	}
	return true, nil
}

// jobSpec returns the job that is submitted.
func (s *serviceFlags) jobSpec(jf *jobFlags, document []byte, offload string, token []byte) (*apiv1.JobSpec, error) {
	plan, err := jf.plan.message()
	if err != nil {
		return nil, err
	}
	return &apiv1.JobSpec{
		Name: s.name, Pipeline: document, Epochs: uint64(jf.epochs), Ranks: s.ranks, RankTail: s.rankTail,
		Order: jf.order, Weight: s.weight, Placement: s.placement, Offload: offload,
		MaxDrives: int32(jf.maxDrives), TRowsPerSecond: jf.trainer * float64(s.ranks), Resume: token,
		Plan: plan,
	}, nil
}

// runRank runs one rank of a job of a control plane.
func (c *trainCommand) runRank(cmd *cobra.Command, share *ownFlags, logger *slog.Logger) (err error) {
	ctx, s := cmd.Context(), &c.service
	o, trainer, err := c.job.options(nil)
	if err != nil {
		return err
	}
	if err := refuseUnused(cmd, c.job.plan.mode(), planUses); err != nil {
		return err
	}
	token, err := readSealed("checkpoint", c.checkpoint)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // the rank begins without a token
		return err
	}
	if err := checkCheckpoint(c.checkpoint); err != nil {
		return err
	}
	store, err := share.metricStore()
	if err != nil {
		return err
	}
	var spec *apiv1.JobSpec
	if s.job == "" {
		document, err := c.files.document(c.pipeline)
		if err != nil {
			return err
		}
		if spec, err = s.jobSpec(&c.job, document, share.offload, token); err != nil {
			return err
		}
	}
	to, err := s.target()
	if err != nil {
		return err
	}
	client, err := remote.Dial(remote.Options{
		Control: to.Control, Identity: to.Identity, Contact: contactTime, Logger: logger,
	})
	if errors.Is(err, remote.ErrOptions) {
		return cli.WrongUsage(err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	id := s.job
	if id == "" {
		if id, err = c.submit(ctx, client, spec, share); err != nil {
			return err
		}
		token = nil // the job that was submitted resumes from it
	}
	closeOwn, ownStarted, err := c.startOwnWorker(ctx, client, share, to, id, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeOwn()) }()
	job, err := client.Attach(ctx, id, remote.AttachOptions{Rank: s.rank, Token: token,
		Run: cmp.Or(s.run, os.Getenv("MILLRACE_RUN")), Resume: s.resume, QueueBytes: o.QueueBytes,
		Recording: o.Recording, Step: &o.Ranks[0], Throughput: o.Throughput, Profile: ownStarted,
		Model: share.model, Store: store, OwnReads: share.reads()})
	if other := (*remote.PartlyConsumedError)(nil); errors.As(err, &other) {
		return fmt.Errorf("%w (here: --checkpoint FILE, --resume, --name OTHER, millrace jobs cancel %s, --run NAME)",
			err, other.Job)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	if c.checkpoint != "" {
		defer func() { err = errors.Join(err, keepToken(ctx, c.checkpoint, job)) }()
	}
	c.Announce(fmt.Sprintf("control plane %s (%s)", strings.Join(to.Control, ", "), to.ControlFrom))
	return c.trainRank(ctx, job, trainer)
}

// submit submits the job and returns its id.
func (c *trainCommand) submit(ctx context.Context, client *remote.Client, spec *apiv1.JobSpec,
	share *ownFlags) (string, error) {
	if len(share.files) > 0 {
		c.service.files.Own = func(ctx context.Context) (*apiv1.OwnFiles, error) {
			return worker.DescribeFiles(ctx, share.files)
		}
	}
	status, err := client.SubmitWith(ctx, "", spec, c.service.files)
	if err != nil {
		return "", err
	}
	c.Announce(fmt.Sprintf("job %s is %s, with id %s", status.Spec.GetName(), status.State, status.Id))
	return status.Id, nil
}

// trainRank trains on the mini-batches of a rank and prints its report.
func (c *trainCommand) trainRank(ctx context.Context, job *remote.Job, trainer *standin.Trainer) error {
	a := job.Allocation()
	c.Announce(fmt.Sprintf("rank %d: T %.0f rows/s, %d drives at once: %s", c.service.rank, a.RowsPerSecond, a.Drives,
		a.Note))
	if profile := job.Profile(); profile.From == apiv1.ProfileStored {
		c.Announce(fmt.Sprintf("the profile of model %s is that of an earlier job with the same pipeline and workers: "+
			"nothing is measured", c.share.model))
	}
	at := job.Token().Epoch
	left := max(job.Status().GetSpec().GetEpochs(), at+1) - at // a job that follows its data set has later epochs
	p := c.newProgress("train", "rows", job.Rows()*int64(left))
	err := c.takeMiniBatches(ctx, job, trainer, p)
	p.finish()
	if err != nil {
		return err
	}
	r, err := job.Report(ctx)
	if err != nil {
		return err
	}
	shared, err := job.SplitShares(ctx)
	if err != nil {
		return err
	}
	looked := viewVocabularies(job.Status())
	native := nativeReport(r)
	return c.Report(rankReport{native, shared, looked}, func(w io.Writer) {
		printReport(w, native)
		printVocabularies(w, looked, nil)
		printSplitShares(w, shared)
	})
}

// rankReport is the report of a rank of a control plane's job.
type rankReport struct {
	timedReport
	SplitShares *remote.SplitShares `json:"split_shares,omitempty"`

	Vocabularies []appliedVocabulary `json:"vocabularies,omitempty"`
}

// printSplitShares prints how the splits of a rank were shared.
func printSplitShares(w io.Writer, s *remote.SplitShares) {
	if s == nil {
		return
	}
	if s.Elsewhere >= 0 {
		fmt.Fprintf(w, "share of the other workers\t%.1f%% of the splits: %s\n", 100*s.Elsewhere, dash(s.Why))
	}
	fmt.Fprintf(w, "made\t%s by the own CPUs, %s by all other workers\n", quantity.Of(s.OwnRows, "row"),
		quantity.Of(s.OthersRows, "row"))
	if s.ProfileFrom != "" {
		fmt.Fprintf(w, "profile\t%s, %.2f s, %.1f%% of the whole\n", s.ProfileFrom, s.Profile, 100*s.ProfileShare)
	}
}

// keepToken writes the rank's token, also after the command was interrupted.
func keepToken(ctx context.Context, path string, job *remote.Job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	token, err := job.Checkpoint(ctx)
	if err != nil {
		return err
	}
	return writeSealed(path, token)
}
