package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/placement"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/openfiles"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// File is a file, of this machine or elsewhere, that is to become a partition.
type File struct {
	dataset.Partition
	runs    []partition.Run // The digest covers these runs.
	sha256  [sha256.Size]byte
	content io.ReaderAt
	close   func() error
}

// Format is the format of a file.
type Format struct {
	Source program.Source // 0: Parquet
	Text   text.Options   // Text describes a file of text.
	// Opener and Cache read files that are named by a URI; without an opener a URI is refused.
	Opener source.Opener
	Cache  *source.Cache
}

// OpenFile opens a file of this machine or of a store as a partition of a name. It reads the file whole, for its
// SHA-256.
func OpenFile(ctx context.Context, at source.Location, name string, format Format) (*File, error) {
	var (
		p   = &File{}
		err error
	)
	if at.InStore() {
		err = p.openFar(ctx, at, format)
	} else {
		err = p.openHere(at.Name())
	}
	if err != nil {
		return nil, err
	}
	if err := p.describe(ctx, name, format); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", at, err), p.close())
	}
	return p, nil
}

// openHere opens a file of this machine.
func (p *File) openHere(path string) error {
	f, state, err := openfiles.OpenRegular(path)
	if err != nil {
		return err
	}
	p.content, p.close, p.Bytes = f, f.Close, state.Size
	return nil
}

// openFar opens a file that lies elsewhere. Its bytes are those of one moment: every read demands the pinned
// identity. The reads end with ctx.
func (p *File) openFar(ctx context.Context, at source.Location, format Format) error {
	if format.Opener == nil || format.Cache == nil {
		return fmt.Errorf("%s: only files of this machine are read here", at)
	}
	src, err := format.Opener.Open(ctx, at, source.Identity{})
	if err != nil {
		return err
	}
	r := format.Cache.NewReader(src)
	r.ExpectAll()
	stop := context.AfterFunc(ctx, func() { r.End(context.Cause(ctx)) })
	p.content, p.Bytes = r, src.Size()
	p.close = func() error {
		stop()
		return errors.Join(r.Close(), src.Close())
	}
	return nil
}

// describe reads the description of the file, and its SHA-256.
func (p *File) describe(ctx context.Context, name string, format Format) error {
	size := p.Bytes
	if format.Source == 0 {
		format.Source = program.Parquet
	}
	part, err := partition.Open(ctx, name, p.content, size, format.Source, partition.Options{Text: format.Text})
	if err != nil {
		return err
	}
	p.Partition, p.runs = part.Describe(), part.DigestRuns()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(p.content, 0, size)); err != nil {
		return err
	}
	sum.Sum(p.sha256[:0])
	return nil
}

// Close closes the file.
func (p *File) Close() error { return p.close() }

// descriptionHeader returns a partition's description for the header of a PUT.
func descriptionHeader(p dataset.Partition) ([]byte, error) {
	b, err := json.Marshal(p)
	if err == nil && len(b) > apiv1.MaxPartitionHeader {
		p.RowGroups = nil
		b, err = json.Marshal(p)
	}
	return b, err
}

// put sends a file to a drive.
func (c *Cluster) put(ctx context.Context, to placement.Ref, p *File) error {
	description, err := descriptionHeader(p.Partition)
	if err != nil {
		return err
	}
	var path []string
	for part := range strings.SplitSeq(p.Name, "/") {
		path = append(path, url.PathEscape(part))
	}
	where := apiv1.PartitionPath + strings.Join(path, "/") + "?drive=" + url.QueryEscape(to.Drive)
	return c.atEachURL(ctx, to.Node, func(base string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, base+where, io.NewSectionReader(p.content, 0, p.Bytes))
		if err != nil {
			return err
		}
		r.ContentLength = p.Bytes
		r.Header.Set(apiv1.PartitionHeader, string(description))
		r.Header.Set(apiv1.DigestRunsHeader, partition.FormatRuns(p.runs))
		r.Header.Set(apiv1.DigestHeader, hex.EncodeToString(p.sha256[:]))
		resp, err := c.client.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
			return finalError{fmt.Errorf("the node answers %s: %s", resp.Status, answerText(resp.Body))}
		}
		return nil
	})
}
