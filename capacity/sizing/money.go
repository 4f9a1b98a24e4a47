package sizing

const hoursAYear = 365 * 24

// spend counts watts, racks, spares and dollars.
func (s *sizer) spend(c *counts, m Mode, medium Medium, p *Placement) {
	years := s.value(figureYears)
	p.Spares = up(float64(p.Drives) * s.of(medium, ofAFR) * years)
	p.RebuildHours = s.bytes / float64(max(p.Drives, 1)) / (s.value(figureRebuildShare) * s.of(medium, ofWrite)) / 3600

	drives, nodes, cards := float64(p.Drives), float64(p.Nodes), float64(p.Cards)
	workers, nics := float64(p.Workers), float64(p.NICs)
	hostUSD, hostWatts := figureHostUSD, figureHostWatts
	if m.site == onNodes {
		hostUSD, hostWatts = figureCPUUSD, figureCPUWatts
	}
	p.Watts = drives*s.of(medium, ofWatts) + nodes*s.value(hostWatts) + nics*s.value(figureNICWatts)
	p.CapEx = (drives+float64(p.Spares))*s.of(medium, ofUSD) + nodes*s.value(hostUSD) + nics*s.value(figureNICUSD)
	if p.Workers > 0 {
		p.Watts += workers * s.value(figureCPUWatts)
		p.CapEx += workers * s.value(figureCPUUSD)
	}
	cardUSD, cardWatts := figureCardUSD, figureCardWatts
	if m.site == onPooled {
		cardUSD, cardWatts = m.usd, m.watts
	}
	if p.Cards > 0 {
		p.Watts += cards * s.value(cardWatts)
		p.CapEx += cards * s.value(cardUSD)
	}
	power, units := s.value(figureRackWatts), s.value(figureRackUnits)
	space := float64(p.Nodes+p.Workers) * s.value(figureUnits)
	c.need("rack power", Racks, p.Watts/power, "%.4g W / %.4g W", p.Watts, power)
	c.need("rack space", Racks, space/units, "%.4g rack units / %.4g", space, units)
	p.Racks = c.most(Racks)
	p.CapEx += float64(p.Racks) * s.value(figureRackUSD)
	p.OpEx = p.Watts / 1000 * years * hoursAYear * s.value(figureElectricity)
	p.Total = p.CapEx + p.OpEx
	if p.Total > 0 {
		p.RowsPerUSD = s.t * years * hoursAYear * 3600 / p.Total
	}
}
