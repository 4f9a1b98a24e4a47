package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/guard"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// Bounds of the wanted copies.
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
	if err := l.copies.set(ctx, req.Partitions); err != nil {
		return nil, l.wireError(err)
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
		return fmt.Errorf("partition %s: %d bytes and %d rows: neither can be negative", name, p.GetBytes(),
			p.GetRows())
	}
	return nil
}

// wantedCopies holds the number of copies that each partition is to have. Its methods may be used from any
// goroutine.
type wantedCopies struct {
	commit  func(context.Context, ...store.Op) error
	setting sync.Mutex // held while numbers are stored and remembered; locked before mu
	mu      sync.Mutex
	list    map[string]*apiv1.PartitionCopies // by partition; records are replaced, never changed
	// version grows with every change of list. counted is the count for countedFor, the versions of list and fleet.
	version    uint64
	counted    fleet.CopyCount
	countedFor [2]uint64
}

// compare counts the partitions of which the fleet holds fewer copies than wanted. It counts again only after a change
// of either. The caller holds the lock of the fleet.
func (w *wantedCopies) compare(f *fleet.Fleet) fleet.CopyCount {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := [2]uint64{w.version + 1, f.Version()}; w.countedFor != now {
		w.counted, w.countedFor = f.CountCopies(slices.Collect(maps.Values(w.list))), now
	}
	return w.counted
}

// set stores the numbers and then keeps them in memory, one caller at a time, so that memory and etcd agree on the
// last number.
func (w *wantedCopies) set(ctx context.Context, list []*apiv1.PartitionCopies) error {
	w.setting.Lock()
	defer w.setting.Unlock()
	// store.Term takes at most 100 writes; a name and its record have about 2 KiB at most.
	for part := range slices.Chunk(list, 100) {
		ops, err := copiesOps(part)
		if err != nil {
			return err
		}
		if w.count()+len(part) > maxCopyPartitions {
			return limitReached(fmt.Errorf("the numbers of copies of %d partitions are kept at most: "+
				"drop those of partitions that are gone (millrace dataset replicate --replicas 0 PATTERN)",
				maxCopyPartitions))
		}
		if err := w.commit(ctx, ops...); err != nil {
			return err
		}
		w.remember(part)
	}
	return nil
}

// copiesOps renders the writes of numbers.
func copiesOps(list []*apiv1.PartitionCopies) ([]store.Op, error) {
	ops := make([]store.Op, 0, len(list))
	seen := map[string]bool{}
	for _, p := range list {
		if seen[p.Partition] {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("partition %s is named twice",
				p.Partition))
		}
		seen[p.Partition] = true
		if p.Copies == 0 {
			ops = append(ops, store.Delete(record.CopiesPrefix+p.Partition))
			continue
		}
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
		if err != nil {
			return nil, err
		}
		ops = append(ops, store.Put(record.CopiesPrefix+p.Partition, b))
	}
	return ops, nil
}

func (w *wantedCopies) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.list)
}

func (w *wantedCopies) remember(list []*apiv1.PartitionCopies) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	for _, p := range list {
		if p.Copies == 0 {
			delete(w.list, p.Partition)
		} else {
			w.list[p.Partition] = proto.CloneOf(p)
		}
	}
}

// sorted returns the numbers, sorted by partition.
func (w *wantedCopies) sorted() []*apiv1.PartitionCopies {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.list), func(a, b *apiv1.PartitionCopies) int {
		return strings.Compare(a.Partition, b.Partition)
	})
}

// ListCopies implements the service.
func (s *Server) ListCopies(context.Context, *apiv1.ListCopiesRequest) (*apiv1.ListCopiesResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	return &apiv1.ListCopiesResponse{Partitions: l.copies.sorted()}, nil
}

// load reads the numbers that earlier leaders stored. Nothing else runs yet.
func (w *wantedCopies) load(ctx context.Context, term *store.Term, logger *slog.Logger) error {
	return term.Scan(ctx, record.CopiesPrefix, func(key string, value []byte) error {
		p := &apiv1.PartitionCopies{}
		err := proto.Unmarshal(value, p)
		if err == nil {
			err = checkCopies(p)
		}
		if err == nil && record.CopiesPrefix+p.Partition != key {
			err = errors.New("it names another partition")
		}
		if err != nil {
			logger.Warn("a stored number of copies cannot be read and is passed over", "key", key, "error", err)
			return nil
		}
		w.list[p.Partition] = p
		return nil
	})
}
