package node

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/inventory"
	"github.com/millrace/millrace/host/machineload"
	"github.com/millrace/millrace/host/node/drives"
	"github.com/millrace/millrace/host/node/splits"
)

// statusReader assembles the node's status: its identity, inventory and work. It is safe for concurrent use.
type statusReader struct {
	name, incarnation, version string
	urls                       []string

	manager  *host.Manager
	splits   *splits.Table
	drives   func() []drives.Status
	draining func() bool
	given    *atomic.Pointer[host.Given] // partitions of a store; holds nil where there are none
	serves   *apiv1.RankName             // the only rank that the drive of reach any makes splits for, or nil
	load     *machineload.Meter
}

// read returns the node's status. With full, it has the node's partitions and their schemas, too.
func (s *statusReader) read(full bool) (*apiv1.NodeStatus, error) {
	inv, err := s.manager.Inventory()
	if err != nil {
		return nil, err
	}
	held := s.splits.Holding()
	status := &apiv1.NodeStatus{
		Name: s.name, Incarnation: s.incarnation, Urls: s.urls, Protocol: apiv1.Protocol, Version: s.version,
		Inventory: inv.Digest[:], ClockSeconds: float64(time.Now().UnixNano()) / 1e9, Draining: s.draining(),
		BufferedBatches: held.Fragments, BufferedBytes: held.Bytes, Load: s.readLoad(),
	}
	for _, job := range s.manager.Jobs() {
		status.Jobs = append(status.Jobs, job.String())
	}
	partitions := map[string][]string{}
	for _, h := range inv.Drives {
		partitions[h.Drive] = h.Partitions
	}
	for _, d := range s.drives() {
		// The inventory's digest stands for these lists, even that of a drive that the manager has and its supervisor has
		// not announced yet. A list that differs from the list under the digest would never be corrected.
		status.Drives = append(status.Drives, s.readDrive(&d, partitions[d.Name]))
	}
	given := s.given.Load()
	if given != nil {
		status.Inventory = digestWithGiven(inv, given)
	}
	if !full {
		return status, nil
	}
	if err := addInventory(status, inv); err != nil || given == nil {
		return status, err
	}
	for _, source := range given.Sources {
		status.Sources = append(status.Sources, &apiv1.PartitionSource{
			Partition: source.Partition, Url: source.URL, Identity: source.Identity,
		})
	}
	return status, addInventory(status, given.Inventory)
}

// digestWithGiven returns the digest of the drives' inventory and of the given partitions.
func digestWithGiven(inv *inventory.Inventory, given *host.Given) []byte {
	h := sha256.New()
	h.Write(inv.Digest[:])
	h.Write(given.Inventory.Digest[:])
	for _, source := range given.Sources {
		fmt.Fprintf(h, "%q %q %q\n", source.Partition, source.URL, source.Identity)
	}
	return h.Sum(nil)
}

// readLoad returns how much of the machine this process uses.
func (s *statusReader) readLoad() *apiv1.Load {
	load := s.load.Measure()
	return &apiv1.Load{Cpu: load.CPU, Memory: load.Memory, Network: load.Network,
		ReceivedBytesPerSecond: load.ReceivedBytesPerSecond, SentBytesPerSecond: load.SentBytesPerSecond}
}

// The words of a drive's status: the reach of a drive that makes splits of partitions which it does not hold, and the
// two processors that are not beside the drive's own flash: this machine's cores, and a card that the node feeds.
const (
	reachAny       = "any"
	computesOnCPU  = "cpu"
	computesOnCard = "card"
)

// readDrive returns the status of one drive.
func (s *statusReader) readDrive(d *drives.Status, partitions []string) *apiv1.Drive {
	status := &apiv1.Drive{Name: d.Name, State: d.State, Busy: d.Busy, Partitions: partitions}
	if d.Ready() && d.Drained {
		status.State = "draining"
	}
	if s.serves != nil { // also before the drive is open: a launcher may register nothing but a worker of its rank
		status.Reach, status.Serves = reachAny, s.serves
	}
	if d.Drive == nil {
		return status
	}
	if d.Drive.Fed() {
		status.ComputesOn = computesOnCard
	}
	if d.Drive.ReachesAny() {
		status.Reach, status.ComputesOn = reachAny, cmp.Or(status.ComputesOn, computesOnCPU)
		status.SourceFailures, status.SourceError = d.Drive.SourceFailures()
	}
	is := s.manager.Status(d.Drive)
	status.Uuid, status.Image, status.Computes = is.UUID, is.Image, is.Computes
	status.Region, status.Regions = uint32(is.Region), uint32(is.Regions)
	status.Threads, status.Streams, status.Running = int32(is.Threads), int32(is.Streams),
		int32(s.splits.Running(is.Name))
	status.FreeBytes, status.PRowsPerSecond = is.Free, is.Rates
	return status
}

// addInventory adds partitions and schemas to a status.
func addInventory(status *apiv1.NodeStatus, inv *inventory.Inventory) error {
	files, err := WireFiles(inv)
	if err != nil {
		return err
	}
	status.Partitions = append(status.Partitions, files.Partitions...)
	status.Schemas = append(status.Schemas, files.Schemas...)
	return nil
}

// WireFiles returns the partitions and the schemas of an inventory as messages describe them.
func WireFiles(inv *inventory.Inventory) (*apiv1.OwnFiles, error) {
	files := &apiv1.OwnFiles{}
	for i := range inv.Partitions {
		p := &inv.Partitions[i]
		files.Partitions = append(files.Partitions, &apiv1.Partition{
			Name: p.Name, Bytes: p.Bytes, Rows: p.Rows, RowGroups: p.RowGroups, ContentSha256: p.Content[:],
			Schema: p.Schema[:],
		})
	}
	for i := range inv.Schemas {
		schema := &inv.Schemas[i]
		columns, err := api.EncodeColumns(schema.Columns)
		if err != nil {
			return nil, err
		}
		files.Schemas = append(files.Schemas, &apiv1.Schema{
			Digest: schema.Digest[:], Columns: columns, MeanLength: schema.MeanLength,
			Malformed: uint32(schema.Malformed),
		})
	}
	return files, nil
}
