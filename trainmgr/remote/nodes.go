package remote

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// Nodes lists the storage nodes that the control plane knows.
func (c *Client) Nodes(ctx context.Context) ([]*apiv1.NodeRecord, error) {
	resp, err := invoke(ctx, c, callTime, controlClient.ListNodes, &apiv1.ListNodesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return resp.Nodes, nil
}

// Drain keeps new splits away from a node, or, with drain false, allows them again. It returns how many leases the node
// still has.
func (c *Client) Drain(ctx context.Context, node string, drain bool) (int, error) {
	resp, err := invoke(ctx, c, callTime, controlClient.DrainNode, &apiv1.DrainNodeRequest{Node: node, Drain: drain})
	if refused := (*connect.Error)(nil); errors.Is(err, ErrNoJob) && errors.As(err, &refused) {
		err = refused // the node is what the control plane does not have
	}
	if err != nil {
		return 0, fmt.Errorf("drain node %s: %w", node, err)
	}
	return int(resp.Leases), nil
}

// Copies lists how many copies of each partition are wanted, for the partitions for which SetCopies set it.
func (c *Client) Copies(ctx context.Context) ([]*apiv1.PartitionCopies, error) {
	resp, err := invoke(ctx, c, callTime, controlClient.ListCopies, &apiv1.ListCopiesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list wanted copies: %w", err)
	}
	return resp.Partitions, nil
}

// SetCopies sets how many copies of partitions are wanted; 0 forgets a partition. A long list is sent in several calls,
// so SetCopies may have set the first partitions when it fails.
func (c *Client) SetCopies(ctx context.Context, list []*apiv1.PartitionCopies) error {
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && size < copiesRequestBytes {
			size += proto.Size(list[n]) + 8
			n++
		}
		_, err := invoke(ctx, c, 2*callTime, controlClient.SetCopies, &apiv1.SetCopiesRequest{Partitions: list[:n]})
		if err != nil {
			return fmt.Errorf("keep the wanted number of copies: %w", err)
		}
		list = list[n:]
	}
	return nil
}

// copiesRequestBytes is the size of one request of SetCopies, well below the control plane's limit.
const copiesRequestBytes = 128 << 10

// Decisions returns the last decisions of a job's autoscaler, each a JSON document.
func (c *Client) Decisions(ctx context.Context, id string) ([]string, error) {
	resp, err := invoke(ctx, c, callTime, controlClient.Decisions, &apiv1.DecisionsRequest{Id: id})
	if err != nil {
		return nil, fmt.Errorf("decisions of job %s: %w", id, err)
	}
	return resp.Decisions, nil
}

// Members lists the members of the control plane.
func (c *Client) Members(ctx context.Context) ([]*apiv1.Member, error) {
	resp, err := invoke(ctx, c, 2*callTime, controlClient.ListMembers, &apiv1.ListMembersRequest{})
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	return resp.Members, nil
}

// AddMember makes room for a member of the control plane that the other members will reach at the URL. Start the member
// after AddMember has returned, and have it join.
func (c *Client) AddMember(ctx context.Context, peerURL string) (*apiv1.Member, error) {
	resp, err := invoke(ctx, c, 5*callTime, controlClient.AddMember, &apiv1.AddMemberRequest{PeerUrl: peerURL})
	if err != nil {
		return nil, err // the error names the URL
	}
	return resp.GetMember(), nil
}

// RemoveMember takes a member out of the control plane for good. member is its name, its id, or the URL at which the
// other members reach it.
func (c *Client) RemoveMember(ctx context.Context, member string) error {
	_, err := invoke(ctx, c, 2*callTime, controlClient.RemoveMember, &apiv1.RemoveMemberRequest{Member: member})
	return err // the error names the member
}
