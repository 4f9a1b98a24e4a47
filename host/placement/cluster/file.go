package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/placement"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// File is a local file that is to become a partition.
type File struct {
	dataset.Partition
	footerAt int64
	sha256   [sha256.Size]byte
	f        *os.File
}

// Format is the format of a file.
type Format struct {
	Source program.Source // 0: Parquet
	Text   text.Options   // of text
}

// OpenFile opens a local file as a partition of a name. It reads the file whole, for its SHA-256.
func OpenFile(ctx context.Context, path, name string, format Format) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p, err := describe(ctx, f, name, format)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// describe makes the File of an open file.
func describe(ctx context.Context, f *os.File, name string, format Format) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if format.Source == 0 {
		format.Source = program.Parquet
	}
	part, err := partition.Open(ctx, name, f, info.Size(), format.Source, partition.Options{Text: format.Text})
	if err != nil {
		return nil, err
	}
	p := &File{Partition: part.Describe(), f: f}
	if format.Source == program.Parquet {
		var end [8]byte
		if _, err := f.ReadAt(end[:], info.Size()-int64(len(end))); err != nil {
			return nil, err
		}
		p.footerAt = info.Size() - int64(len(end)) - int64(binary.LittleEndian.Uint32(end[:]))
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, info.Size())); err != nil {
		return nil, err
	}
	sum.Sum(p.sha256[:0])
	return p, nil
}

// Close closes the file.
func (p *File) Close() error { return p.f.Close() }

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
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, base+where, io.NewSectionReader(p.f, 0, p.Bytes))
		if err != nil {
			return err
		}
		r.ContentLength = p.Bytes
		r.Header.Set(apiv1.PartitionHeader, string(description))
		r.Header.Set(apiv1.FooterAtHeader, strconv.FormatInt(p.footerAt, 10))
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
