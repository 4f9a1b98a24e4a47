package sizing

import "fmt"

// nodes counts storage nodes, cards and the nodes of a pool.
func (s *sizer) nodes(c *counts, m Mode, drives int64) {
	bays := s.value(figureBays)
	c.need("drive bays", Nodes, float64(drives)/bays, "%d drives / %.4g bays", drives, bays)
	sent, what := s.fromStorage(m)
	perNode := s.value(figureNodeNICs) * s.nic()
	c.need("network out", Nodes, s.t*sent/perNode, "%.4g rows/s x %.4g bytes of %s / %.4g bytes/s of a node's "+
		"interfaces", s.t, sent, what, perNode)
	switch m.site {
	case onNodes:
		cores, how, _ := s.cores(m.core)
		free := s.value(figureCPUCores) - s.value(figureServeCores)
		c.need("compute", Nodes, cores/max(free, 0), "%s / %.4g cores a node, less those that serve drives and network",
			how, free)
	case onCards:
		s.cards(c)
	case onPooled:
		rate, ratio := s.value(figurePreStoDrive), s.value(m.ratio)
		c.need("compute", Cards, s.t/(rate*ratio), "T %.4g rows/s / (%.4g rows/s of PreSto's drive x %.4g)", s.t, rate,
			ratio)
		s.poolNetwork(c, perNode)
	case inPool:
		cores, how, _ := s.cores(m.core)
		node := s.value(figureCPUCores)
		c.need("compute", Workers, cores/node, "%s / %.4g cores a node", how, node)
		s.poolNetwork(c, perNode)
	case inDrives, onTrainers: // nothing more computes
	}
}

// cards counts the cards of the storage nodes.
func (s *sizer) cards(c *counts) {
	p, link := s.value(figureCardP), s.value(figureCardLink)
	rowIn, rowOut := s.value(figureRowIn), s.value(figureRowOut)
	c.need("compute", Cards, s.t/p, "T %.4g rows/s / P %.4g rows/s", s.t, p)
	if memory := s.value(figureCardMemory); memory > 0 {
		c.need("device memory", Cards, s.t*s.memoryBytes()/memory, "%.4g rows/s x 2 x (%.4g + %.4g) bytes / %.4g "+
			"bytes/s", s.t, rowIn, rowOut, memory)
	}
	c.need("PCIe link", Cards, s.t*max(rowIn, rowOut)/link, "%.4g rows/s x %.4g bytes / %.4g bytes/s", s.t,
		max(rowIn, rowOut), link)
}

// slots counts the nodes that hold the cards.
func (s *sizer) slots(c *counts, m Mode, cards int64) {
	resource, figure := Nodes, figureCardsANode
	if m.site == onPooled {
		resource, figure = Workers, figurePoolCards
	}
	slots := s.value(figure)
	c.need("card slots", resource, float64(cards)/slots, "%d cards / %.4g a node", cards, slots)
}

// poolNetwork counts the nodes of a pool by what they receive and send. An interface does both at once.
func (s *sizer) poolNetwork(c *counts, perNode float64) {
	rowIn, rowOut := s.value(figureRowIn), s.value(figureRowOut)
	c.need("network in", Workers, s.t*rowIn/perNode, "%.4g rows/s x %.4g stored bytes / %.4g bytes/s", s.t, rowIn,
		perNode)
	c.need("network out", Workers, s.t*rowOut/perNode, "%.4g rows/s x %.4g bytes of tensors / %.4g bytes/s", s.t,
		rowOut, perNode)
}

// fromStorage returns the bytes of a row that leave the storage nodes.
func (s *sizer) fromStorage(m Mode) (bytes float64, what string) {
	switch m.site {
	case inPool, onPooled, onTrainers:
		return s.value(figureRowIn), "stored rows"
	default:
		return s.value(figureRowOut), "tensors"
	}
}

// toTrainers returns the bytes of a row that reach the trainers.
func (s *sizer) toTrainers(m Mode) (bytes float64, what string) {
	if m.site == onTrainers {
		return s.value(figureRowIn), "stored rows"
	}
	return s.value(figureRowOut), "tensors"
}

// interfaces counts the network interfaces of storage nodes and pool nodes: one a node at least.
func (s *sizer) interfaces(m Mode, nodes, workers int64) int64 {
	sent, _ := s.fromStorage(m)
	n := max(nodes, up(s.t*sent/s.nic()))
	if workers > 0 {
		n += max(workers, up(s.t*max(s.value(figureRowIn), s.value(figureRowOut))/s.nic()))
	}
	return n
}

// trainers counts the training nodes whose front ends take the rows in, and checks them against those that there are.
func (s *sizer) trainers(c *counts, m Mode, p *Placement) {
	received, what := s.toTrainers(m)
	perNode, load, cores := s.value(figureTrainerNICs)*s.nic(), s.value(figureTrainerLoad), s.value(figureTrainerCores)
	busy := s.t * received * load
	c.need("trainer network in", Trainers, s.t*received/perNode,
		"%.4g rows/s x %.4g bytes of %s / %.4g bytes/s of a node's interfaces", s.t, received, what, perNode)
	c.need("trainer CPU for loading", Trainers, busy/cores, "%.4g rows/s x %.4g bytes x %.4g cores a byte/s / %.4g "+
		"cores", s.t, received, load, cores)
	if m.site == onTrainers {
		needed, how, _ := s.cores(m.core)
		c.need("trainer CPU with preprocessing", Trainers, (needed+busy)/cores,
			"(%s + %.4g cores for loading) / %.4g cores", how, busy, cores)
	}
	p.TrainerNICs = up(s.t * received / s.nic())
	wanted, there := c.most(Trainers), s.trainingNodes()
	if p.Fits = wanted <= there; !p.Fits {
		p.Misfit = fmt.Sprintf("the front ends of %d training nodes are needed, and there are %d", wanted, there)
	}
}

// trainingNodes is the number of training nodes: the job's, or as few as take the tensors in.
func (s *sizer) trainingNodes() int64 {
	if n := s.value(figureTrainers); n > 0 {
		return int64(n)
	}
	bytes := s.t * s.value(figureRowOut)
	return max(up(bytes/(s.value(figureTrainerNICs)*s.nic())), up(bytes*s.value(figureTrainerLoad)/
		s.value(figureTrainerCores)))
}
