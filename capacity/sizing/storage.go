package sizing

// storage counts drives.
func (s *sizer) storage(c *counts, m Medium) {
	drive, fill := s.of(m, ofBytes), s.value(figureFill)
	rowIn, rowOut := s.value(figureRowIn), s.value(figureRowOut)
	c.need("capacity", Drives, s.bytes/(drive*fill), "%.4g bytes with copies / (%.4g bytes x %.2g full)", s.bytes, drive,
		fill)
	if m == CSD {
		p := s.value(figureDriveP)
		c.need("compute", Drives, s.t/p, "T %.4g rows/s / P %.4g rows/s", s.t, p)
		if memory := s.value(figureDriveMemory); memory > 0 {
			c.need("device memory", Drives, s.t*s.memoryBytes()/memory, "%.4g rows/s x 2 x (%.4g + %.4g) bytes / %.4g bytes/s",
				s.t, rowIn, rowOut, memory)
		}
		link := s.value(figureDriveLink)
		c.need("PCIe link", Drives, s.t*rowOut/link, "%.4g rows/s x %.4g bytes of tensors / %.4g bytes/s", s.t, rowOut, link)
	}
	read := s.of(m, ofRead)
	c.need("flash bandwidth", Drives, s.t*rowIn/read, "%.4g rows/s x %.4g bytes / %.4g bytes/s", s.t, rowIn, read)
	size, iops := s.value(figureReadSize), s.of(m, ofIOPS)
	c.need("IOPS", Drives, s.t*rowIn/size/iops, "%.4g rows/s x %.4g bytes / reads of %.4g bytes / %.4g reads/s", s.t,
		rowIn, size, iops)
	s.wear(c, m)
	share, write, hours := s.value(figureRebuildShare), s.of(m, ofWrite), s.value(figureRebuildHours)
	c.need("rebuild time", Drives, s.bytes/(share*write*hours*3600),
		"%.4g bytes / (%.2g x %.4g bytes/s x %.4g h), so that a failed drive's part is written in time", s.bytes, share,
		write, hours)
}

// wear counts the drives whose rating the daily writes need.
func (s *sizer) wear(c *counts, m Medium) {
	daily := s.bytes * s.value(figureGrowth) / 365
	if days := s.value(figureRetention); days > 0 {
		daily += s.bytes / days
	}
	if daily == 0 {
		c.need("endurance", Drives, 0, "data is written once: no retention and no growth are given")
		return
	}
	drive, rating := s.of(m, ofBytes), s.of(m, ofDWPD)
	c.need("endurance", Drives, daily/(drive*rating),
		"%.4g bytes written a day / (%.4g bytes x %.3g writes of the drive a day)", daily, drive, rating)
}
