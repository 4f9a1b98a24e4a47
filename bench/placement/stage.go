package placement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/target"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/processor"
)

// stage holds the parts of one mode: the drive that holds the partitions, the part that preprocesses, and the way to
// the trainer.
type stage struct {
	o     *Options
	mode  Mode
	paths []string

	drive      *sdk.Device // holds the partitions
	card       *sdk.Device // computes on the bytes stored in it; nil: there is none
	web        *webStorage // serves the drive's partitions; nil: no part is elsewhere
	partitions []*partition.Partition
	processor  processor.Processor
	batch      int
	chunkBytes int64
	// digestReads is the number of bytes that the digests of the partitions read, in whole blocks of the flash.
	digestReads int64
	flashRead   atomic.Int64 // bytes of NVMe Reads
	engineTime  engineTime   // engineTime is that of the drive that computes.
	closers     []func() error
}

// opened notes how something is closed; the last that was opened is closed first.
func (s *stage) opened(closer func() error) { s.closers = append(s.closers, closer) }

func (s *stage) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}

// open opens the parts.
func (s *stage) open(ctx context.Context, spec *pipeline.Spec) error {
	trace := &sdk.Trace{Command: func(cmd *nvme.Command, admin bool, _ time.Duration, err error) {
		if !admin && err == nil && cmd.Opcode() == nvme.NVMRead {
			s.flashRead.Add(int64(cmd.DW(12)&0xffff+1) * csd.LBA512)
		}
	}}
	drive, extents, err := sdk.OpenFiles(ctx, s.paths, sdk.FilesOptions{
		LBA: csd.LBA512, SLM: s.o.SLM,
		// No views of the drive's memory: tensors cross the link to the node, and are counted there.
		DeviceOptions: sdk.DeviceOptions{
			Plain: s.mode != InStorage, NoMap: true, Trace: trace, WrapCompute: s.engineTime.wrap,
		},
	})
	if err != nil {
		return err
	}
	s.drive = drive
	s.opened(drive.Close)
	if err := s.openPartitions(ctx, extents); err != nil {
		return err
	}
	columns, _ := schema.Columns(s.partitions[0], text.Options{})
	resolved, err := resolve.Pipeline(spec, columns)
	if err != nil {
		return err
	}
	s.batch = resolved.Batch
	prog, schema, err := lowering.Lower(resolved)
	if err != nil {
		return err
	}
	s.countChunks(prog)
	o := processor.Options{SLM: uint64(s.o.SLM)}
	switch s.mode {
	case InStorage:
		s.processor, err = sdk.NewProcessor(ctx, drive, prog, schema, o)
	case Card:
		if err = s.openCard(ctx); err == nil {
			o.FromHost = true
			s.processor, err = sdk.NewProcessor(ctx, s.card, prog, schema, o)
		}
	default:
		s.processor, err = cpu.New(ctx, prog, schema, cpu.Options{})
	}
	if err != nil {
		return err
	}
	s.opened(s.processor.Close)
	return nil
}

// openPartitions opens the partitions as the part that preprocesses reads them.
func (s *stage) openPartitions(ctx context.Context, extents []partition.Extent) error {
	files := make([]*io.SectionReader, len(extents))
	for i, e := range extents {
		files[i] = io.NewSectionReader(s.drive, e.Device, e.Len)
	}
	var cache *source.Cache
	if s.mode == Pool || s.mode == Trainer {
		var err error
		if s.web, err = serveStorage(s.paths, files); err != nil {
			return err
		}
		s.opened(s.web.close)
		if cache, err = source.NewCache(source.Options{}); err != nil {
			return err
		}
	}
	for i, path := range s.paths {
		var reader io.ReaderAt = files[i]
		if s.web != nil {
			transport := source.NewTransport(nil)
			src, err := source.NewWeb(transport).Open(ctx, source.ParseLocation(s.web.url+filepath.Base(path)),
				source.Identity{})
			if err != nil {
				return err
			}
			remote := cache.NewReader(src)
			s.opened(func() error {
				err := errors.Join(remote.Close(), src.Close())
				transport.CloseIdleConnections()
				return err
			})
			reader = remote
		}
		p, err := partition.Open(ctx, filepath.Base(path), reader, extents[i].Len, program.Parquet,
			partition.Options{Extents: extents[i : i+1 : i+1]})
		if err != nil {
			return err
		}
		if remote, ok := reader.(*source.Reader); ok {
			remote.Describe(p)
		}
		for _, r := range p.DigestReads() {
			from, to := extents[i].Device+int64(r.From), extents[i].Device+int64(r.From+r.Len)
			s.digestReads += (to+csd.LBA512-1)/csd.LBA512*csd.LBA512 - from/csd.LBA512*csd.LBA512
		}
		s.partitions = append(s.partitions, p)
	}
	return nil
}

// openCard serves a drive without flash over NVMe/TCP, and opens it.
func (s *stage) openCard(ctx context.Context) error {
	served, err := target.Start(target.Options{
		Drive:  csd.Options{Diskless: true, SLMBytes: s.o.SLM, WrapCompute: s.engineTime.wrap},
		Listen: "127.0.0.1:0",
	})
	if err != nil {
		return err
	}
	s.opened(served.Close)
	if s.card, err = sdk.Open(ctx, served.URI(), sdk.DeviceOptions{}); err != nil {
		return err
	}
	s.opened(s.card.Close)
	return nil
}

// countChunks counts the bytes of the column chunks that a program reads.
func (s *stage) countChunks(prog *program.Program) {
	for _, p := range s.partitions {
		for i := range prog.Columns {
			leaf, ok := p.File.Leaf(prog.Columns[i].Name)
			if !ok {
				continue
			}
			for g := range p.File.RowGroups {
				s.chunkBytes += p.File.RowGroups[g].Columns[leaf.Index].Compressed
			}
		}
	}
}

// computer returns the drive that computes, or nil.
func (s *stage) computer() *sdk.Device {
	switch s.mode {
	case InStorage:
		return s.drive
	case Card:
		return s.card
	}
	return nil
}

// engine names the part that computes.
func (s *stage) engine() string {
	switch s.mode {
	case InStorage:
		return "the drive that holds the partitions"
	case Card:
		return "a drive without flash, fed by the node"
	case Pool:
		return "a worker's CPU"
	case Trainer:
		return "the trainer's CPU"
	}
	return "the storage node's CPU"
}

// notes lists the parts that are software, and the values that are modelled.
func (s *stage) notes() []string {
	list := []string{"every part runs on this machine's cores, and HTTP and NVMe/TCP go over loopback"}
	if s.computer() != nil {
		list = append(list, "the drive is software: cpu_rows_per_second leaves out its engine's CPU seconds, as a "+
			"drive has processors of its own, but not those of its copies; rows_per_second is not a drive's")
	}
	return list
}

// webStorage is a storage node that serves the partitions of its drive by range requests.
type webStorage struct {
	url    string
	server *http.Server
	done   chan error
	sent   atomic.Int64 // bytes of bodies
}

func serveStorage(paths []string, files []*io.SectionReader) (*webStorage, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &webStorage{url: "http://" + l.Addr().String() + "/", done: make(chan error, 1)}
	mux := http.NewServeMux()
	for i, path := range paths {
		name, size := filepath.Base(path), files[i].Size()
		mux.HandleFunc("/"+name, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprintf("%s-%d", name, size)))
			http.ServeContent(&countedWriter{rw, &w.sent}, r, "", time.Time{}, io.NewSectionReader(files[i], 0, size))
		})
	}
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { w.done <- w.server.Serve(l) }()
	return w, nil
}

func (w *webStorage) close() error {
	err := w.server.Close()
	if serr := <-w.done; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}

// countedWriter counts the bytes of bodies.
type countedWriter struct {
	http.ResponseWriter
	sent *atomic.Int64
}

// Write implements http.ResponseWriter.
func (c *countedWriter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.sent.Add(int64(n))
	return n, err
}
