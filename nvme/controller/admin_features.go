package controller

import (
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/features"
)

// checkFeature checks what Set and Get Features have in common.
func checkFeature(c *Controller, cmd *nvme.Command) nvme.Status {
	fid := uint8(cmd.DW(10))
	caps, ok := features.Capabilities[fid]
	nsid := cmd.NSID()
	switch {
	case !ok, c.sub.discovery != nil && !discoveryFeature(fid):
		return nvme.InvalidField
	case caps&features.PerNamespace != 0:
		if csi, ok := c.commandSet(nsid); nsid != nvme.AllNamespaces && nsid != 0 && (!ok || csi != nvme.CSINVM) {
			return nvme.InvalidNamespace
		}
	case nsid != 0 && nsid != nvme.AllNamespaces:
		return nvme.FeatureNotNamespaced
	}
	return nvme.Success
}

func checkSetFeatures(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	if st := checkFeature(c, cmd); !st.OK() {
		return 0, st
	}
	return features.CheckSet(cmd)
}

func runSetFeatures(r *request) nvme.Status {
	fid := uint8(r.cmd.DW(10))
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if fid == nvme.FeatureQueues && len(r.c.queues) > 0 {
		return nvme.CommandSequenceError
	}
	word, st := r.c.features.Set(fid, r.cmd.DW(11), r.data)
	if r.result = uint64(word); st.OK() && fid == nvme.FeatureCommandSets {
		r.result = r.c.sub.commandSets()
	}
	return st
}

func checkGetFeatures(c *Controller, _ *namespace, cmd *nvme.Command) (uint64, nvme.Status) {
	if st := checkFeature(c, cmd); !st.OK() {
		return 0, st
	}
	return features.CheckGet(cmd)
}

func runGetFeatures(r *request) nvme.Status {
	fid, sel := uint8(r.cmd.DW(10)), r.cmd.DW(10)>>8&7
	if sel == features.SelectCapabilities {
		r.result = uint64(features.Capabilities[fid])
		return nvme.Success
	}
	if fid == nvme.FeatureHostID {
		copy(r.data, r.c.host.ID[:])
		return nvme.Success
	}
	r.c.mu.Lock()
	f := r.c.features
	r.c.mu.Unlock()
	if sel == features.SelectDefault || sel == features.SelectSaved {
		f = features.Default(r.c.kato, MaxQueues)
	}
	word, st := f.Get(fid, r.cmd.DW(11), r.data)
	r.result = uint64(word)
	return st
}
