package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/control/guard"
	"github.com/millrace/millrace/trainmgr/control/record"
	"github.com/millrace/millrace/trainmgr/control/store"
)

// Bounds of what is kept about copies.
const (
	maxCopies         = 1000    // of one partition
	maxCopyPartitions = 1 << 20 // partitions that a number is kept for
	maxCopyName       = 1 << 10 // bytes of a partition's name; etcd's keys are short
)

// SetCopies implements the service. The numbers are durable when it returns.
func (s *Server) SetCopies(ctx context.Context, req *apiv1.SetCopiesRequest) (*apiv1.SetCopiesResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	for _, p := range req.Partitions {
		if err := checkCopies(p); err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, err)
		}
	}
	if err := l.setCopies(ctx, req.Partitions); err != nil {
		return nil, l.wire(err)
	}
	s.logger.Info("wanted copies", "partitions", len(req.Partitions), "by", guard.Peer(ctx).String())
	return &apiv1.SetCopiesResponse{}, nil
}

func checkCopies(p *apiv1.PartitionCopies) error {
	switch name := p.GetPartition(); {
	case !fs.ValidPath(name) || len(name) > maxCopyName || strings.ContainsRune(name, 0):
		return fmt.Errorf("partition name %.80q: want a relative path of at most %d bytes", name, maxCopyName)
	case p.GetCopies() > maxCopies:
		return fmt.Errorf("partition %s: %d copies, want at most %d", name, p.GetCopies(), maxCopies)
	case p.GetBytes() < 0 || p.GetRows() < 0:
		return fmt.Errorf("partition %s: %d bytes and %d rows: neither can be negative", name, p.GetBytes(), p.GetRows())
	}
	return nil
}

// setCopies stores the numbers and then remembers them, one caller at a time, so that memory and etcd agree on which
// came last.
func (l *leader) setCopies(ctx context.Context, list []*apiv1.PartitionCopies) error {
	l.settingCopies.Lock()
	defer l.settingCopies.Unlock()
	// store.Term takes at most 100 writes; a name and its record have about 2 KiB at most.
	for part := range slices.Chunk(list, 100) {
		ops := make([]store.Op, 0, len(part))
		seen := map[string]bool{}
		for _, p := range part {
			if seen[p.Partition] {
				return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("partition %s is named twice", p.Partition))
			}
			seen[p.Partition] = true
			if p.Copies == 0 {
				ops = append(ops, store.Delete(record.CopiesPrefix+p.Partition))
				continue
			}
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
			if err != nil {
				return err
			}
			ops = append(ops, store.Put(record.CopiesPrefix+p.Partition, b))
		}
		l.mu.Lock()
		many := len(l.copies)+len(part) > maxCopyPartitions
		l.mu.Unlock()
		if many {
			return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the numbers of copies of %d partitions are kept at most: "+
				"drop those of partitions that are gone (millrace dataset replicate --replicas 0 PATTERN)", maxCopyPartitions))
		}
		if err := l.commit(ctx, ops...); err != nil {
			return err
		}
		l.mu.Lock()
		for _, p := range part {
			if p.Copies == 0 {
				delete(l.copies, p.Partition)
			} else {
				l.copies[p.Partition] = proto.CloneOf(p)
			}
		}
		l.mu.Unlock()
	}
	return nil
}

// ListCopies implements the service.
func (s *Server) ListCopies(context.Context, *apiv1.ListCopiesRequest) (*apiv1.ListCopiesResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	list := make([]*apiv1.PartitionCopies, 0, len(l.copies))
	for _, p := range l.copies {
		list = append(list, p) // records are replaced, never changed
	}
	l.mu.Unlock()
	slices.SortFunc(list, func(a, b *apiv1.PartitionCopies) int { return strings.Compare(a.Partition, b.Partition) })
	return &apiv1.ListCopiesResponse{Partitions: list}, nil
}

// loadCopies reads the numbers that earlier leaders stored.
func (l *leader) loadCopies(ctx context.Context) error {
	return l.term.Scan(ctx, record.CopiesPrefix, func(key string, value []byte) error {
		p := &apiv1.PartitionCopies{}
		err := proto.Unmarshal(value, p)
		if err == nil {
			err = checkCopies(p)
		}
		if err == nil && record.CopiesPrefix+p.Partition != key {
			err = errors.New("it names another partition")
		}
		if err != nil {
			l.logger.Warn("a stored number of copies cannot be read and is passed over", "key", key, "error", err)
			return nil
		}
		l.copies[p.Partition] = p
		return nil
	})
}
