package apiv1

import "github.com/millrace/millrace/host/api"

// ReadSources returns what messages say of where partitions lie. URLs and identities are checked when they are used.
func ReadSources(list []*PartitionSource) []api.Source {
	sources := make([]api.Source, len(list))
	for i, m := range list {
		s := &sources[i]
		s.Partition, s.URL, s.Identity = m.GetPartition(), m.GetUrl(), m.GetIdentity()
		for _, c := range m.GetCopies() {
			s.Copies = append(s.Copies, api.Copy{Node: c.GetNode(), URLs: c.GetUrls(), Drive: c.GetDrive()})
		}
	}
	return sources
}
