package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Times of vocabularies.
const (
	// unusedVocabulary is how long a vocabulary that no job uses stays on the disk.
	unusedVocabulary = 24 * time.Hour
	// fetchWait is how long Prepare waits for vocabularies, which is less than the control plane waits for Prepare.
	fetchWait = 20 * time.Second
	// vocabularySweep is the time between two looks for vocabularies that are not used any more.
	vocabularySweep = 10 * time.Minute
)

// jobVocabularies are the vocabularies of a node's jobs: fetched from the control plane, kept on the disk, and in
// memory while a job uses them.
type jobVocabularies struct {
	files  *jobfiles.Store
	cache  *jobfiles.Cache
	folder *scratch.Folder // nil: the folder is kept

	mu       sync.Mutex
	releases map[dataset.Digest][]func() // by job
}

// openVocabularies opens the folder of vocabularies: one of the state folder, or a temporary one.
func openVocabularies(
	c *Config, client *http.Client, members func() []string, log *slog.Logger,
) (_ *jobVocabularies, err error) {
	v := &jobVocabularies{releases: map[dataset.Digest][]func(){}}
	folder := filepath.Join(c.StateDir, "vocabularies")
	if c.StateDir == "" {
		if v.folder, err = scratch.Make("", "millrace-vocabularies-"); err != nil {
			return nil, fmt.Errorf("vocabularies: %w", err)
		}
		folder = v.folder.Path
	}
	v.files, err = jobfiles.Open(jobfiles.Options{Folder: folder, Most: int64(c.Vocabularies.Disk),
		Unused: unusedVocabulary, Logger: log})
	if err != nil {
		return nil, errors.Join(err, v.removeFolder())
	}
	v.cache = jobfiles.NewCache(jobfiles.CacheOptions{
		Store: v.files, Memory: int64(c.Vocabularies.Memory), Wait: fetchWait, Logger: log,
		Sources: func(vocabulary.Digest) (list []jobfiles.Source) {
			for _, base := range members() {
				list = append(list, jobfiles.MemberSource(client, base))
			}
			return list
		},
	})
	return v, nil
}

// removeFolder removes a temporary folder.
func (v *jobVocabularies) removeFolder() error {
	if v.folder == nil {
		return nil
	}
	return v.folder.Close()
}

// close ends the fetches.
func (v *jobVocabularies) close() error {
	v.cache.Close()
	return v.removeFolder()
}

// sweep removes vocabularies that are not used any more, until ctx ends.
func (v *jobVocabularies) sweep(ctx context.Context) {
	ticker := time.NewTicker(vocabularySweep)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			v.files.Sweep()
		}
	}
}

// maxVocabularies bounds the vocabularies of one job, as package pipeline does.
const maxVocabularies = 1 << 10

// bind returns a pipeline with the vocabularies that a job names, which are kept until release is called.
func (v *jobVocabularies) bind(
	ctx context.Context, spec *pipeline.Spec, list []*apiv1.JobVocabulary,
) (_ *pipeline.Spec, release []func(), err error) {
	defer func() {
		if err != nil {
			callAll(release)
			release = nil
		}
	}()
	if len(list) > maxVocabularies {
		return nil, nil, fmt.Errorf("%w: %d vocabularies: want at most %d", errorcode.ErrRequest, len(list),
			maxVocabularies)
	}
	for _, named := range list {
		if len(named.GetSha256()) != len(vocabulary.Digest{}) {
			return nil, release, fmt.Errorf("%w: vocabulary %.80q: a digest of %d bytes, want %d", errorcode.ErrRequest,
				named.GetName(), len(named.GetSha256()), len(vocabulary.Digest{}))
		}
		file := jobfiles.File{Digest: vocabulary.Digest(named.GetSha256()), Bytes: named.GetBytes()}
		made, done, err := v.cache.Acquire(ctx, file)
		if err != nil {
			return nil, release, fmt.Errorf("vocabulary %.80q: %w", named.GetName(), err)
		}
		release = append(release, done)
		if spec, err = spec.Bind(named.GetName(), made); err != nil {
			return nil, release, err
		}
	}
	return spec, release, nil
}

// bindSelection returns a pipeline with the selection that a job names, which is kept until release is called.
func (v *jobVocabularies) bindSelection(
	ctx context.Context, spec *pipeline.Spec, named *apiv1.JobSelection,
) (_ *pipeline.Spec, release func(), err error) {
	file, err := readSelection(named)
	if err != nil {
		return nil, nil, err
	}
	made, release, err := v.cache.AcquireSelection(ctx, file)
	if err != nil {
		return nil, nil, err
	}
	with := *spec
	with.Selection = made
	return &with, release, nil
}

// keep keeps what bind returned until forget is called for the job.
func (v *jobVocabularies) keep(job dataset.Digest, release []func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.releases[job] = append(v.releases[job], release...)
}

// forget gives a job's vocabularies back.
func (v *jobVocabularies) forget(job dataset.Digest) {
	v.mu.Lock()
	release := v.releases[job]
	delete(v.releases, job)
	v.mu.Unlock()
	callAll(release)
}

func callAll(list []func()) {
	for _, f := range list {
		f()
	}
}
