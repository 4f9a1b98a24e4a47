package summaries

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/remote"
)

// cancelTime bounds the cancellation of a job that ended early.
const cancelTime = 5 * time.Second

// submission submits the jobs of a pass, one for each call that goes on with it.
type submission struct {
	client     *remote.Client
	folder     *folder
	document   []byte        // document is the job's pipeline
	order      dataset.Order // order is that of the job's mini-batches
	placement  string
	queueBytes int64
	logger     *slog.Logger
}

// newJobName makes a name for the jobs of a pass.
func newJobName(kind string) string {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	return kind + "-" + hex.EncodeToString(random[:])
}

// cancel cancels the job of an earlier call, if there is one that has not ended.
func (s *submission) cancel(ctx context.Context) error {
	err := s.client.Cancel(ctx, s.folder.description.JobName)
	if errors.Is(err, remote.ErrNoJob) || errors.Is(err, remote.ErrEnded) {
		return nil
	}
	return err
}

// submit submits the job without the mini-batches that the work folder covers, and attaches to it.
func (s *submission) submit(ctx context.Context, covered []dataset.Range) (*remote.Job, error) {
	d := &s.folder.description
	spec := &apiv1.JobSpec{
		Name: d.JobName, Pipeline: s.document, Partitions: d.Partitions, Exclude: d.Exclude, Epochs: 1, Ranks: 1,
		RankTail: "keep", Order: s.order.String(), Placement: s.placement,
		Plan: &apiv1.PlanOptions{Shuffle: dataset.ShuffleNone.String(), Tail: dataset.KeepTail.String()},
	}
	if d.Job != "" {
		if err := s.cancel(ctx); err != nil {
			return nil, err
		}
		var err error
		if spec.Resume, err = s.folder.token(covered); err != nil {
			return nil, err
		}
	}
	status, err := s.client.Submit(ctx, spec)
	if err != nil {
		return nil, s.otherData(err)
	}
	s.logger.Info("submitted the job of a pass", "job", status.GetId(), "file", s.folder.path, "bytes", s.folder.bytes())
	job, err := s.client.Attach(ctx, status.GetId(), remote.AttachOptions{QueueBytes: s.queueBytes, Resume: true})
	if err != nil {
		return nil, errors.Join(s.otherData(err), s.cancel(context.WithoutCancel(ctx)))
	}
	return job, nil
}

// end closes the job of a call, and cancels it if the call ended early, with an error.
func (s *submission) end(ctx context.Context, job *remote.Job, err error) error {
	if err = errors.Join(err, job.Close()); err == nil {
		return nil
	}
	// The next call submits another job. A job that cannot be cancelled now is abandoned, or cancelled by that call.
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	if err := s.cancel(within); err != nil {
		s.logger.Warn("cancel the job of a pass that ended early", "job", job.ID(), "error", err)
	}
	return err
}

// sameData returns an error if the job is of other data than the jobs of earlier calls.
func (s *submission) sameData(job *remote.Job) error {
	if d := &s.folder.description; d.Job != "" && job.Digest() != d.job {
		return s.otherData(fmt.Errorf("%w: it is of %v, and this is %v", dataset.ErrOtherJob, d.job, job.Digest()))
	}
	return nil
}

// otherData adds to the error of a job over other data what to do.
func (s *submission) otherData(err error) error {
	if errors.Is(err, dataset.ErrOtherJob) {
		return fmt.Errorf("%s: the data or the columns of the cluster are no longer those that the pass began with: name "+
			"its partitions (--partitions), or remove the folder to begin again: %w", s.folder.path, err)
	}
	return err
}
