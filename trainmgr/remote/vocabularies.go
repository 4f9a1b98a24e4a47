package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Bounds of a submission with files.
const (
	putTime  = time.Minute // of one piece; with the last one the member checks the whole file
	putTries = 3           // submissions of which the leader lacked a file, which it had before it changed
)

// Files are what a job uses beside its specification. The zero value is nothing.
type Files struct {
	Vocabularies map[string]string // paths of the files, by name
	// Modules are the WebAssembly modules that the pipeline's operators name, with their bytes. Nodes run them only where
	// their images hold them, or their configurations let them run modules of submitters.
	Modules []pipeline.Module
	// Own describes the files of this machine that the rank's own worker reads (worker.DescribeFiles). It is called if the
	// control plane cannot choose the job's partitions, because no live node holds them: the job is then over these files.
	// nil: there are none.
	Own func(context.Context) (*apiv1.OwnFiles, error)
}

// putFile is a file that is put to the control plane.
type putFile struct {
	what    string // for errors
	request *apiv1.PutVocabularyRequest
	open    func() (io.ReaderAt, io.Closer, error)
}

// SubmitWith is SubmitFor of a job whose pipeline uses files. It puts the files that the control plane lacks there,
// piece by piece; a repeated call goes on where an earlier one ended.
func (c *Client) SubmitWith(
	ctx context.Context, owner string, spec *apiv1.JobSpec, files Files,
) (*apiv1.JobStatus, error) {
	if len(files.Vocabularies)+len(files.Modules) == 0 {
		return c.submit(ctx, owner, spec, files.Own)
	}
	if spec == nil || len(spec.Pipeline) == 0 {
		return nil, fmt.Errorf("submit job: %w: no pipeline", ErrOptions)
	}
	if err := files.check(spec.Pipeline); err != nil {
		return nil, fmt.Errorf("submit job %s: %w", spec.Name, err)
	}
	spec = proto.CloneOf(spec)
	list, err := files.describe(spec)
	if err != nil {
		return nil, fmt.Errorf("submit job %s: %w", spec.Name, err)
	}
	for try := 1; ; try++ {
		for i := range list {
			if err := c.put(ctx, &list[i]); err != nil {
				return nil, fmt.Errorf("submit job %s: put %s: %w", spec.Name, list[i].what, err)
			}
		}
		job, err := c.submit(ctx, owner, spec, files.Own)
		if err == nil || try == putTries || !lacksFiles(err) {
			return job, err
		}
	}
}

// describe names the files in a job's specification, and returns them as they are put.
func (f *Files) describe(spec *apiv1.JobSpec) (list []putFile, err error) {
	spec.Vocabularies, spec.Modules = nil, nil
	for _, name := range slices.Sorted(maps.Keys(f.Vocabularies)) {
		file, err := vocabularyFile("vocabulary "+name, f.Vocabularies[name])
		if err != nil {
			return nil, err
		}
		list = append(list, file)
		spec.Vocabularies = append(spec.Vocabularies, &apiv1.JobVocabulary{Name: name, Sha256: file.request.Sha256,
			Bytes: file.request.Bytes})
	}
	for _, m := range f.Modules {
		file := moduleFile(&m)
		list = append(list, file)
		spec.Modules = append(spec.Modules, &apiv1.JobModule{Name: m.Name, Sha256: file.request.Sha256,
			Bytes: file.request.Bytes})
	}
	slices.SortFunc(spec.Modules, func(a, b *apiv1.JobModule) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// vocabularyFile describes a vocabulary that is put.
func vocabularyFile(what, path string) (putFile, error) {
	d, err := vocabulary.DescribeFile(path)
	if err != nil {
		return putFile{}, fmt.Errorf("%s: %w", what, err)
	}
	return putFile{what: what, request: &apiv1.PutVocabularyRequest{Sha256: d.Digest[:], Bytes: d.Bytes()},
		open: func() (io.ReaderAt, io.Closer, error) {
			f, err := os.Open(path)
			return f, f, err
		}}, nil
}

// moduleFile describes a module that is put.
func moduleFile(m *pipeline.Module) putFile {
	digest, b := sha256.Sum256(m.Bytes), m.Bytes
	return putFile{what: "module " + m.Name,
		request: &apiv1.PutVocabularyRequest{Sha256: digest[:], Bytes: int64(len(b)), Module: true},
		open: func() (io.ReaderAt, io.Closer, error) {
			return bytes.NewReader(b), io.NopCloser(nil), nil
		}}
}

// PutVocabulary puts a vocabulary's file to the control plane, unless it is there. A submission that names the file
// within minutes does not put it again; after that the control plane may have removed it.
func (c *Client) PutVocabulary(ctx context.Context, path string) error {
	file, err := vocabularyFile("vocabulary", path)
	if err == nil {
		err = c.put(ctx, &file)
	}
	if err != nil {
		return fmt.Errorf("put vocabulary %s: %w", path, err)
	}
	return nil
}

// check returns an error unless the pipeline names the files, and the modules have the functions that it calls.
func (f *Files) check(document []byte) error {
	if shipped, err := pipeline.Document(string(document)); err == nil {
		document = shipped
	}
	p, err := pipeline.Parse(document)
	if err != nil {
		return err
	}
	for name := range f.Vocabularies {
		if _, err := p.Bind(name, nil); err != nil {
			return err
		}
	}
	for _, m := range f.Modules {
		if m.Bytes == nil {
			return fmt.Errorf("%w: module %q: its bytes are wanted", ErrOptions, m.Name)
		}
		if _, err := p.BindModule(m); err != nil {
			return err
		}
	}
	return nil
}

// put puts a file to the leader, unless it is there.
func (c *Client) put(ctx context.Context, file *putFile) (err error) {
	from, closer, err := file.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	request := proto.CloneOf(file.request)
	piece := make([]byte, min(request.Bytes, jobfiles.MaxPiece))
	for {
		answer, err := invoke(ctx, c, putTime, controlClient.PutVocabulary, request)
		switch {
		case err != nil:
			return err
		case answer.Have == request.Bytes:
			return nil
		case answer.Have < 0 || answer.Have > request.Bytes:
			return fmt.Errorf("the control plane says that it has %d of %d bytes", answer.Have, request.Bytes)
		}
		n, err := from.ReadAt(piece[:min(int64(len(piece)), request.Bytes-answer.Have)], answer.Have)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return errors.New("its file was cut while it was put")
		}
		request.Offset, request.Piece = answer.Have, piece[:n]
	}
}

// lacksFiles reports whether the leader refused a job since it lacks a file.
func lacksFiles(err error) bool {
	_, lacks := detailOf[*apiv1.MissingVocabularies](err)
	return lacks
}
