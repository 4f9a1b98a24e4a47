package remote

import (
	"bytes"
	"context"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/selection"
)

// Dataset describes the partitions that a job of the same patterns would begin with.
func (c *Client) Dataset(ctx context.Context, partitions, exclude []string) (*passes.Data, error) {
	resp, err := invoke(ctx, c, attachTime, controlClient.DescribeData,
		&apiv1.DescribeDataRequest{Partitions: partitions, Exclude: exclude})
	if err != nil {
		return nil, fmt.Errorf("describe the data of the cluster: %w", err)
	}
	d := &passes.Data{Malformed: program.Malformed(resp.Malformed)}
	if d.Manifest, err = dataset.ReadManifest(resp.Manifest); err == nil {
		d.Columns, err = api.DecodeColumns(resp.Columns)
	}
	if err != nil {
		return nil, fmt.Errorf("describe the data of the cluster: %w", err)
	}
	return d, nil
}

// Selection fetches the selection of the job's filter: which rows the mini-batches are made of. It returns nil if the
// pipeline has no filter.
func (j *Job) Selection(ctx context.Context) (*selection.Selection, error) {
	digest := j.Status().GetSelection().GetSha256()
	if len(digest) == 0 {
		return nil, nil
	}
	fail := func(err error) (*selection.Selection, error) {
		return nil, fmt.Errorf("fetch the selection of the job's filter: %w", err)
	}
	most := int64(0)
	for _, p := range j.Manifest().Partitions {
		most += selection.MostBytes(p.Rows)
	}
	var file []byte
	for total := int64(1); int64(len(file)) < total; {
		have := int64(len(file))
		resp, err := invoke(ctx, j.rank.client, callTime, controlClient.ReadVocabulary,
			&apiv1.ReadVocabularyRequest{Sha256: digest, Offset: have})
		if err != nil {
			return fail(err)
		}
		size := int64(len(resp.Piece))
		if total = resp.Bytes; total > most || size == 0 || size > total-have {
			return fail(fmt.Errorf("a piece of %d bytes at byte %d of %d, want at most %d", size, have, total, most))
		}
		file = append(file, resp.Piece...)
	}
	s, err := selection.Decode(file)
	if err != nil {
		return fail(err)
	}
	if !bytes.Equal(s.Digest[:], digest) {
		return fail(fmt.Errorf("it is %v, want %x", s.Digest, digest))
	}
	return s, nil
}
