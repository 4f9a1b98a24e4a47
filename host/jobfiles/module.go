package jobfiles

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/millrace/millrace/fpga/unit/wasm/format"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// NamedModule is a module that a job names.
type NamedModule struct {
	Name string // in the job's pipeline
	File File
}

// Limits of the modules of a job: those of an image, so that an image can hold all of a job's modules. A launcher,
// which needs these two numbers, does not link package image for them.
const (
	maxModules      = 16
	maxModulesBytes = 4 << 20
)

// ReadModules reads the modules that a job names. The error wraps ErrRequest.
func ReadModules(list []*apiv1.JobModule) ([]NamedModule, error) {
	if len(list) > maxModules {
		return nil, fmt.Errorf("%w: %d modules of a job, at most %d", ErrRequest, len(list), maxModules)
	}
	modules, total, seen := make([]NamedModule, len(list)), int64(0), map[string]bool{}
	for i, m := range list {
		if len(m.GetSha256()) != len(vocabulary.Digest{}) {
			return nil, fmt.Errorf("%w: module %.80q: a digest of %d bytes, want %d", ErrRequest, m.GetName(),
				len(m.GetSha256()), len(vocabulary.Digest{}))
		}
		modules[i] = NamedModule{m.GetName(), File{Digest: vocabulary.Digest(m.GetSha256()), Bytes: m.GetBytes(),
			Kind: Module}}
		if err := modules[i].File.check(); err != nil {
			return nil, fmt.Errorf("module %.80q: %w", m.GetName(), err)
		}
		if seen[m.GetName()] {
			return nil, fmt.Errorf("%w: module %.80q is named twice", ErrRequest, m.GetName())
		}
		seen[m.GetName()] = true
		if total += m.GetBytes(); total > maxModulesBytes {
			return nil, fmt.Errorf("%w: more than %d bytes of modules of a job", ErrRequest, maxModulesBytes)
		}
	}
	return modules, nil
}

// AcquireModule does for the bytes of a module what Acquire does for a vocabulary. Their memory counts until they are
// given back.
func (c *Cache) AcquireModule(ctx context.Context, want File) ([]byte, func(), error) {
	want.Kind = Module
	return acquireContent(ctx, c, want, c.o.Store.LoadModule)
}

// LoadModule reads the whole file of a module. A file that has changed on the disk is removed.
func (s *Store) LoadModule(want File) ([]byte, error) {
	if _, ok := s.Size(want.Digest); !ok {
		return nil, fmt.Errorf("module %v: %w", want.Digest, ErrMissing)
	}
	module, err := readModule(s.path(want.Digest), want.Digest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.forget(want.Digest)
		return nil, fmt.Errorf("module %v: %w: its file was removed", want.Digest, ErrMissing)
	case !errors.Is(err, ErrDigest):
		return module, err
	}
	s.o.Logger.Warn("a module changed on the disk and is removed", "digest", want.Digest.String(), "error", err)
	return nil, errors.Join(err, s.remove(want.Digest))
}

// readModule reads the bytes of a module. The error wraps ErrDigest if they are others.
func readModule(path string, digest vocabulary.Digest) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	module, err := io.ReadAll(io.LimitReader(f, format.MaxModule+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read module %v: %w", digest, err)
	}
	if sum := vocabulary.Digest(sha256.Sum256(module)); sum != digest {
		return nil, fmt.Errorf("%w: module %v: the SHA-256 of its first %d bytes is %v", ErrDigest, digest, len(module), sum)
	}
	return module, nil
}

// checkModule does what check does for a module.
func (u *upload) checkModule() error {
	module, err := readModule(u.path, u.want.Digest)
	if err != nil {
		return err
	}
	if _, err := format.Parse(module); err != nil {
		return fmt.Errorf("%w: module %v: %w", ErrRequest, u.want.Digest, err)
	}
	return nil
}
