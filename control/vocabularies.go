package control

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/guard"
	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// unusedVocabulary is how long a member keeps a vocabulary that no running job names: submitters put the file before
// they submit the job, and the next job of a series often names the same one.
const unusedVocabulary = 10 * time.Minute

// errNoFolder says that a member keeps no vocabularies.
var errNoFolder = errors.New("this control plane keeps no vocabularies and modules: start it with --data, or name a " +
	"folder with --vocabularies")

// openVocabularies opens the folder of vocabularies, and begins to share it with the other members.
func (s *Server) openVocabularies(ctx context.Context) error {
	folder := s.vocabularyFolder()
	if folder == "" {
		return nil
	}
	files, err := jobfiles.Open(jobfiles.Options{Folder: folder, Most: s.o.VocabularyBytes,
		Grace: unusedVocabulary, Unused: unusedVocabulary, OwnerMost: int64(s.o.OwnerShare * float64(s.o.VocabularyBytes)),
		OwnerFiles: max(1, int(s.o.OwnerShare*maxShared)), Owners: s.fileOwners, Logger: s.logger})
	if err != nil {
		return err
	}
	s.jobFiles = newJobFileShare(s, files)
	if err := s.metrics.registerVocabularies(s.jobFiles); err != nil {
		return err
	}
	s.wg.Go(func() { s.jobFiles.run(ctx) })
	return nil
}

// vocabularyFolder returns the folder of vocabularies and selections; "": there is none.
func (s *Server) vocabularyFolder() string {
	if s.o.VocabularyFolder == "" && s.o.Data != "" {
		return filepath.Join(s.o.Data, "vocabularies")
	}
	return s.o.VocabularyFolder
}

// readJobFiles reads the files that a job names: it sets the descriptions of the vocabularies, and returns the modules.
// The leader fetches files that another member has. The error of files that no member has carries MissingVocabularies.
func (s *Server) readJobFiles(ctx context.Context, spec *apiv1.JobSpec) ([]pipeline.Module, error) {
	named, err := jobfiles.ReadModules(spec.Modules)
	if err != nil {
		return nil, err
	}
	if s.jobFiles == nil && len(spec.Vocabularies)+len(named) > 0 {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errNoFolder)
	}
	missing := missingFiles{}
	for _, v := range spec.Vocabularies {
		v.Description = nil
		file, err := record.VocabularyFile(v)
		if err != nil {
			return nil, err
		}
		if v.Description, err = s.jobFiles.describe(ctx, file); missing.add(file, err) != nil {
			return nil, fmt.Errorf("vocabulary %.80q: %w", v.Name, err)
		}
	}
	modules := make([]pipeline.Module, len(named))
	for i, m := range named {
		modules[i].Name = m.Name
		if modules[i].Bytes, err = s.jobFiles.module(ctx, m.File); missing.add(m.File, err) != nil {
			return nil, fmt.Errorf("module %.80q: %w", m.Name, err)
		}
	}
	return modules, missing.err()
}

// missingFiles are the files of a job that no member has.
type missingFiles []jobfiles.File

// add adds a file if the error says that no member has it, and returns every other error.
func (m *missingFiles) add(file jobfiles.File, err error) error {
	if !errors.Is(err, jobfiles.ErrMissing) {
		return err
	}
	*m = append(*m, file)
	return nil
}

// err returns the error of the files, which carries MissingVocabularies; nil if there are none.
func (m missingFiles) err() error {
	if len(m) == 0 {
		return nil
	}
	err := connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("the control plane does not have %v %v: put the "+
		"file there (PutVocabulary) before the job is submitted", m[0].Kind, m[0].Digest))
	missing := &apiv1.MissingVocabularies{}
	for i := range m {
		missing.Sha256 = append(missing.Sha256, m[i].Digest[:])
	}
	if d, detailErr := connect.NewErrorDetail(missing); detailErr == nil {
		err.AddDetail(d)
	}
	return err
}

// checkModules checks that the modules of a job have the functions that its pipeline calls.
func (j *job) checkModules(modules []pipeline.Module) error {
	for _, m := range modules {
		if _, err := j.pipeline.BindModule(m); err != nil {
			return fmt.Errorf("%w: pipeline: %w", record.ErrSpec, err)
		}
	}
	return nil
}

// PutVocabulary implements the service.
func (s *Server) PutVocabulary(
	ctx context.Context, req *apiv1.PutVocabularyRequest,
) (*apiv1.PutVocabularyResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	if s.jobFiles == nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errNoFolder)
	}
	file, err := record.VocabularyFile(&apiv1.JobVocabulary{Sha256: req.Sha256, Bytes: req.Bytes})
	if err != nil {
		return nil, l.wireError(err)
	}
	if req.Module {
		file.Kind = jobfiles.Module
	}
	have, err := s.jobFiles.files.Append(guard.Peer(ctx).Owner(), file, req.Offset, req.Piece)
	if err != nil {
		return nil, l.wireError(err)
	}
	if have == file.Bytes && len(req.Piece) > 0 {
		s.logger.Info("a "+file.Kind.String()+" was put", "digest", file.Digest.String(), "bytes", file.Bytes, "by",
			guard.Peer(ctx).String())
		s.jobFiles.wake()
	}
	return &apiv1.PutVocabularyResponse{Have: have}, nil
}

// ReadVocabulary implements the service.
func (s *Server) ReadVocabulary(
	ctx context.Context, req *apiv1.ReadVocabularyRequest,
) (*apiv1.ReadVocabularyResponse, error) {
	if len(req.Sha256) != len(vocabulary.Digest{}) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("file: a digest of %d bytes, want %d",
			len(req.Sha256), len(vocabulary.Digest{})))
	}
	digest := vocabulary.Digest(req.Sha256)
	if guard.Peer(ctx).Role == identity.Launcher {
		l, err := s.leader()
		if err != nil {
			return nil, err
		}
		if !l.launcherNames(ctx, digest) {
			return nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("file %v: no running job of %s "+
				"names it", digest, guard.Peer(ctx)))
		}
	}
	if s.jobFiles == nil {
		return nil, connect.NewError(connect.CodeNotFound, errNoFolder)
	}
	piece, total, err := s.jobFiles.files.ReadAt(digest, req.Offset)
	if err != nil {
		return nil, connect.NewError(vocabularyCode(err), err)
	}
	return &apiv1.ReadVocabularyResponse{Piece: piece, Bytes: total}, nil
}

// ShareVocabularies implements the service.
func (s *Server) ShareVocabularies(
	_ context.Context, req *apiv1.ShareVocabulariesRequest,
) (*apiv1.ShareVocabulariesResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	have := make([]vocabulary.Digest, 0, min(len(req.Have), maxShared))
	for _, digest := range req.Have[:min(len(req.Have), maxShared)] {
		if len(digest) == len(vocabulary.Digest{}) {
			have = append(have, vocabulary.Digest(digest))
		}
	}
	if s.jobFiles != nil {
		if base, err := identity.BaseURL(req.Url); err == nil {
			s.jobFiles.note(base, have, time.Now())
		}
	}
	response := &apiv1.ShareVocabulariesResponse{}
	for _, file := range l.namedVocabularies() {
		shared := &apiv1.SharedVocabulary{Sha256: file.Digest[:], Bytes: file.Bytes,
			Selection: file.Kind == jobfiles.Selection, Module: file.Kind == jobfiles.Module}
		if s.jobFiles != nil {
			shared.Urls = s.jobFiles.holders(file.Digest)
		}
		response.Vocabularies = append(response.Vocabularies, shared)
	}
	return response, nil
}

// isVocabularyError reports whether an error is one of a store of vocabularies.
func isVocabularyError(err error) bool { return vocabularyCode(err) != connect.CodeInternal }

// vocabularyCode returns the code of an error of a store of vocabularies.
func vocabularyCode(err error) connect.Code {
	switch {
	case errors.Is(err, jobfiles.ErrRoom):
		return connect.CodeResourceExhausted
	case errors.Is(err, jobfiles.ErrMissing):
		return connect.CodeNotFound
	case errors.Is(err, jobfiles.ErrDigest):
		return connect.CodeDataLoss
	case errors.Is(err, jobfiles.ErrFetching):
		return connect.CodeUnavailable
	case errors.Is(err, jobfiles.ErrRequest), errors.Is(err, vocabulary.ErrVersion),
		errors.Is(err, vocabulary.ErrRules):
		return connect.CodeInvalidArgument
	}
	return connect.CodeInternal
}

// files returns the files that a job names: vocabularies, modules and selections.
func (j *job) files() (list []jobfiles.File) {
	for _, v := range j.spec.Vocabularies {
		if file, err := record.VocabularyFile(v); err == nil {
			list = append(list, file)
		}
	}
	if modules, err := jobfiles.ReadModules(j.spec.Modules); err == nil {
		for _, m := range modules {
			list = append(list, m.File)
		}
	}
	for _, g := range j.editions {
		if g.Selection != nil {
			list = append(list, g.Selection.File())
		}
	}
	return list
}

// namedFile is a file that a running job names.
type namedFile struct {
	jobfiles.File
	jobOwner string
}

// namedFiles returns the files that running jobs name, once for each job.
func (l *leader) namedFiles() (list []namedFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.mu.jobs {
		if j.Phase().Ended() {
			continue
		}
		for _, file := range j.files() {
			list = append(list, namedFile{file, j.Owner})
		}
	}
	return list
}

// namedVocabularies returns the files that running jobs name, sorted by their digests.
func (l *leader) namedVocabularies() (list []jobfiles.File) {
	for _, named := range l.namedFiles() {
		list = append(list, named.File)
	}
	slices.SortFunc(list, func(a, b jobfiles.File) int { return slices.Compare(a.Digest[:], b.Digest[:]) })
	return slices.Compact(list)
}

// fileOwners returns the owners of the running jobs that name each file. Only the leader knows jobs, and only it takes
// files of submitters.
func (s *Server) fileOwners() map[vocabulary.Digest][]string {
	owners := map[vocabulary.Digest][]string{}
	if l := s.leading.Load(); l != nil {
		for _, named := range l.namedFiles() {
			owners[named.Digest] = append(owners[named.Digest], named.jobOwner)
		}
	}
	return owners
}

// launcherNames reports whether a running job that the calling launcher may use names a file.
func (l *leader) launcherNames(ctx context.Context, digest vocabulary.Digest) bool {
	return slices.ContainsFunc(l.namedFiles(), func(f namedFile) bool {
		return f.Digest == digest && guard.MayUse(ctx, f.jobOwner) == nil
	})
}

// wireVocabularies returns what a node is to fetch for a job.
func (j *job) wireVocabularies() []*apiv1.JobVocabulary {
	var list []*apiv1.JobVocabulary
	for _, v := range j.spec.Vocabularies {
		list = append(list, &apiv1.JobVocabulary{Name: v.Name, Sha256: v.Sha256, Bytes: v.Bytes})
	}
	return list
}
