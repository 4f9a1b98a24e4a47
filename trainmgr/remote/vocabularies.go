package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/vocabularies"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Bounds of a submission with vocabularies.
const (
	putTime  = time.Minute // of one piece; with the last one the member checks the whole file
	putTries = 3           // submissions of which the leader lacked a file, which it had before it changed
)

// SubmitWith is SubmitFor of a job whose pipeline uses vocabularies. files are their paths by name. It puts the files
// that the control plane lacks there, piece by piece; a repeated call goes on where an earlier one ended.
func (c *Client) SubmitWith(
	ctx context.Context, owner string, spec *apiv1.JobSpec, files map[string]string,
) (*apiv1.JobStatus, error) {
	if len(files) == 0 {
		return c.SubmitFor(ctx, owner, spec)
	}
	if spec == nil || len(spec.Pipeline) == 0 {
		return nil, fmt.Errorf("submit job: %w: no pipeline", ErrOptions)
	}
	names := slices.Sorted(maps.Keys(files))
	if err := checkVocabularyNames(spec.Pipeline, names); err != nil {
		return nil, fmt.Errorf("submit job %s: %w", spec.Name, err)
	}
	spec = proto.CloneOf(spec)
	spec.Vocabularies = nil
	for _, name := range names {
		d, err := vocabulary.DescribeFile(files[name])
		if err != nil {
			return nil, fmt.Errorf("submit job %s: vocabulary %s: %w", spec.Name, name, err)
		}
		spec.Vocabularies = append(spec.Vocabularies, &apiv1.JobVocabulary{Name: name, Sha256: d.Digest[:],
			Bytes: d.Bytes()})
	}
	for try := 1; ; try++ {
		for _, v := range spec.Vocabularies {
			if err := c.putVocabulary(ctx, v, files[v.Name]); err != nil {
				return nil, fmt.Errorf("submit job %s: put vocabulary %s: %w", spec.Name, v.Name, err)
			}
		}
		job, err := c.SubmitFor(ctx, owner, spec)
		if err == nil || try == putTries || !lacksVocabularies(err) {
			return job, err
		}
	}
}

// PutVocabulary puts a vocabulary's file to the control plane, unless it is there. A submission that names the file
// within minutes does not put it again; after that the control plane may have removed it.
func (c *Client) PutVocabulary(ctx context.Context, path string) error {
	d, err := vocabulary.DescribeFile(path)
	if err == nil {
		err = c.putVocabulary(ctx, &apiv1.JobVocabulary{Sha256: d.Digest[:], Bytes: d.Bytes()}, path)
	}
	if err != nil {
		return fmt.Errorf("put vocabulary %s: %w", path, err)
	}
	return nil
}

// checkVocabularyNames returns an error unless the pipeline declares the vocabularies.
func checkVocabularyNames(document []byte, names []string) error {
	if shipped, err := pipeline.Document(string(document)); err == nil {
		document = shipped
	}
	p, err := pipeline.Parse(document)
	for i := 0; i < len(names) && err == nil; i++ {
		_, err = p.Bind(names[i], nil)
	}
	return err
}

// putVocabulary puts a file to the leader, unless it is there.
func (c *Client) putVocabulary(ctx context.Context, v *apiv1.JobVocabulary, path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	piece := make([]byte, min(v.Bytes, vocabularies.MaxPiece))
	request := &apiv1.PutVocabularyRequest{Sha256: v.Sha256, Bytes: v.Bytes}
	for {
		answer, err := invoke(ctx, c, putTime, controlClient.PutVocabulary, request)
		switch {
		case err != nil:
			return err
		case answer.Have == v.Bytes:
			return nil
		case answer.Have < 0 || answer.Have > v.Bytes:
			return fmt.Errorf("the control plane says that it has %d of %d bytes", answer.Have, v.Bytes)
		}
		n, err := f.ReadAt(piece[:min(int64(len(piece)), v.Bytes-answer.Have)], answer.Have)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%s: it was cut while it was put", path)
		}
		request.Offset, request.Piece = answer.Have, piece[:n]
	}
}

// lacksVocabularies reports whether the leader refused a job since it lacks a file.
func lacksVocabularies(err error) bool {
	var refused *connect.Error
	if !errors.As(err, &refused) {
		return false
	}
	for _, detail := range refused.Details() {
		if value, err := detail.Value(); err == nil {
			if _, ok := value.(*apiv1.MissingVocabularies); ok {
				return true
			}
		}
	}
	return false
}
