package private

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// session is one rank: its connection, its position and its buffers.
type session struct {
	conn   *net.UnixConn
	reader *bufio.Reader
	open   *Open

	writing sync.Mutex // held while a message is written

	storage api.Storage
	options trainmgr.Options
	buffers *bufferPool

	selections *local.Selections // All ranks of this machine share them.
	passes     api.Storage       // Passes that make selections use it, and no other rank shares it.

	generation int // the number of the trainer's last Seek; the runner's goroutine uses the value at its start
}

// errTrainerLeft says that the trainer is through with its rank.
var errTrainerLeft = errors.New("the trainer has left")

// newSession reads the Open of a connection.
func newSession(conn *net.UnixConn) (*session, error) {
	s := &session{conn: conn, reader: bufio.NewReader(conn)}
	m, err := Read(s.reader)
	if err != nil {
		return s, err
	}
	open, ok := m.(*Open)
	if !ok {
		return s, fmt.Errorf("%w: the first message is %s, want open", ErrProtocol, m.kind())
	}
	s.open = open
	return s, open.validate()
}

// sendMessage writes a message, with a buffer's descriptor if it has one.
func (s *session) sendMessage(m Message, file *memoryFile) error {
	b, err := Encode(m)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if file != nil {
		n, _, err := s.conn.WriteMsgUnix(b, descriptorMessage(file.file), nil)
		if err != nil {
			return fmt.Errorf("send %s: %w", m.kind(), err)
		}
		b = b[n:]
	}
	if len(b) > 0 {
		if _, err := s.conn.Write(b); err != nil {
			return fmt.Errorf("send %s: %w", m.kind(), err)
		}
	}
	return nil
}

// sendFailure sends the trainer the error that ended its session. The trainer may be gone.
func (s *session) sendFailure(err error) { _ = s.sendMessage(describeFailure(err), nil) }

// serveRank serves the rank until the trainer leaves (errTrainerLeft), dies (io.EOF), or something fails. A failure is
// sent, and the connection is kept until the trainer ends it.
func (s *session) serveRank(ctx context.Context, threads int) (err error) {
	defer func() { err = errors.Join(err, s.buffers.close()) }()
	token, err := parseToken(s.open.Token)
	if err != nil {
		s.sendFailure(err)
		return s.awaitEnd()
	}
	job, err := s.submitJob(ctx, token, s.open.Stamps)
	if err != nil {
		s.sendFailure(err)
		return s.awaitEnd()
	}
	opened, err := s.describeJob(ctx, job, threads)
	if err != nil {
		s.sendFailure(err)
		return errors.Join(job.Close(), s.awaitEnd())
	}
	if err := s.sendMessage(opened, nil); err != nil {
		return errors.Join(err, job.Close())
	}
	for {
		next, ended, err := s.serveJob(ctx, job)
		if ended {
			return err
		}
		job = next
		s.generation++
	}
}

// serveJob makes the mini-batches of a job and reads the trainer's messages, until the trainer goes to another position
// or the session has ended. next is the job of the other position. The job is closed when it returns.
func (s *session) serveJob(ctx context.Context, job *trainmgr.Job) (next *trainmgr.Job, ended bool, err error) {
	making, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	generation := s.generation
	go func() {
		defer close(done)
		if err := s.makeMiniBatches(making, job, generation); err != nil && making.Err() == nil {
			s.sendFailure(err)
		}
	}()
	next, err = s.handleMessages(ctx)
	cancel(errTrainerLeft)
	<-done
	return next, err != nil, errors.Join(err, job.Close())
}

// submitJob makes the job of the session from a position on. stamps are those of the files from when the position was
// kept.
func (s *session) submitJob(
	ctx context.Context, token *dataset.Token, stamps map[string]api.Stamp,
) (*trainmgr.Job, error) {
	options := s.options
	options.Resume, options.ResumeStamps = token, stamps
	var err error
	// The other ranks of this machine, and other positions, find the selection that is made here.
	if options.Pipeline, _, err = s.selections.Bind(ctx, s.passes, options.Pipeline); err != nil {
		return nil, err
	}
	return trainmgr.Submit(ctx, s.storage, options)
}

// handleMessages handles the trainer's messages until one asks for another position, whose job it returns, or the
// session has ended.
func (s *session) handleMessages(ctx context.Context) (*trainmgr.Job, error) {
	for {
		m, err := Read(s.reader)
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *Free:
			if err := s.buffers.release(m.Buffer); err != nil {
				s.sendFailure(err)
				return nil, err
			}
		case *Seek:
			job, err := s.handleSeek(ctx, m)
			if job != nil || err != nil {
				return job, err
			}
		case *Leave:
			return nil, errTrainerLeft
		default:
			err := fmt.Errorf("%w: %s is not a message of a trainer that has opened", ErrProtocol, m.kind())
			s.sendFailure(err)
			return nil, err
		}
	}
}

// handleSeek makes the job of another position and answers. A position that is refused leaves the session as it was.
func (s *session) handleSeek(ctx context.Context, m *Seek) (*trainmgr.Job, error) {
	if m.Generation != s.generation+1 {
		err := fmt.Errorf("%w: seek of generation %d after %d", ErrProtocol, m.Generation, s.generation)
		s.sendFailure(err)
		return nil, err
	}
	token, err := parseToken(m.Token)
	var job *trainmgr.Job
	if err == nil {
		job, err = s.submitJob(ctx, token, m.Stamps)
	}
	if err != nil {
		refused := describeFailure(err)
		refused.Generation = m.Generation
		return nil, s.sendMessage(refused, nil)
	}
	position := job.Checkpoint()
	text, err := position.MarshalText()
	if err != nil {
		return nil, errors.Join(err, job.Close())
	}
	if err := s.sendMessage(&Sought{Generation: m.Generation, Token: string(text)}, nil); err != nil {
		return nil, errors.Join(err, job.Close())
	}
	return job, nil
}

// describeJob describes the job to the trainer.
func (s *session) describeJob(ctx context.Context, job *trainmgr.Job, threads int) (*Opened, error) {
	schema, err := json.Marshal(job.Schema())
	if err != nil {
		return nil, err
	}
	data, err := s.storage.Dataset(ctx)
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(data.Manifest)
	if err != nil {
		return nil, err
	}
	position := job.Checkpoint()
	token, err := position.MarshalText()
	if err != nil {
		return nil, err
	}
	plan := job.Plan()
	owned := s.options.Share.Numbers(plan.MiniBatches())
	leftOut, err := s.options.Share.LeftOut(plan)
	if err != nil {
		return nil, err
	}
	return &Opened{
		Version: Version, Digest: job.Digest().String(), Schema: schema, Manifest: manifest,
		MeanLength: data.MeanLength, Batch: plan.Options().Batch, Epochs: uint64(s.options.Epochs),
		Order: s.options.Order.String(), MiniBatches: plan.MiniBatches(), From: owned.From, To: owned.To,
		LeftOutRows: leftOut, ShortMiniBatches: plan.ShortMiniBatches(),
		Token: string(token), Threads: threads, PID: processID(), Stamps: data.Stamps,
	}, nil
}

// makeMiniBatches sends every mini-batch that the job still owes, epoch after epoch, as fast as buffers come back.
func (s *session) makeMiniBatches(ctx context.Context, job *trainmgr.Job, generation int) error {
	for mb, err := range job.MiniBatches(ctx) {
		if errors.Is(err, trainmgr.ErrNothingLeft) {
			return nil // the trainer knows from the token
		}
		if err != nil {
			return err
		}
		leftOut, err := s.options.Share.LeftOut(job.Plan()) // epochs differ: a shuffle puts other mini-batches at the end
		if err != nil {
			return err
		}
		if err := s.sendMiniBatch(ctx, mb, generation, leftOut); err != nil {
			return err
		}
	}
	return nil
}

// sendMiniBatch copies a mini-batch into a buffer and names the buffer to the trainer. leftOut is how many rows of its
// epoch no rank gets.
func (s *session) sendMiniBatch(ctx context.Context, mb *tensor.MiniBatch, generation int, leftOut int64) error {
	frame, err := tensor.EncodeFrame(mb)
	if err != nil {
		return err
	}
	b, retired, err := s.buffers.acquire(ctx, frame.Len())
	for _, id := range retired {
		if err := s.sendMessage(&Retired{Buffer: id}, nil); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	at := copy(b.file.data, frame.Header)
	for _, part := range frame.Data {
		at += copy(b.file.data[at:], part)
	}
	if !b.passed {
		b.passed = true
		passed := &Buffer{Buffer: b.id, Bytes: b.file.size(), Limit: s.buffers.limit}
		if err := s.sendMessage(passed, b.file); err != nil {
			return err
		}
	}
	return s.sendMessage(&MiniBatch{Generation: generation, Buffer: b.id, Bytes: int64(at), Epoch: mb.Name.Epoch,
		Number: mb.Name.Number, LeftOutRows: leftOut}, nil)
}

// awaitEnd reads until the trainer ends the connection, so that everything that was sent to the trainer arrives.
func (s *session) awaitEnd() error {
	for {
		m, err := Read(s.reader)
		if err != nil {
			return err
		}
		if _, left := m.(*Leave); left {
			return errTrainerLeft
		}
	}
}

// trainerLeft reports whether an error of serveRank says that the trainer has left or died, so that this process did
// not fail.
func trainerLeft(err error) bool { return errors.Is(err, errTrainerLeft) || errors.Is(err, io.EOF) }
