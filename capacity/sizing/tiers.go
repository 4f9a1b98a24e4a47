package sizing

import "fmt"

// Tier is a way to hold a data set on disks and SSDs, in watts of the disk nodes that capacity alone takes.
type Tier struct {
	Name  string  `json:"tier" table:"tiers by DPP's ratios"`
	Watts float64 `json:"watts_ratio" table:"watts (1: disks by capacity)|%.3g"`
	Binds string  `json:"binding_resource" table:"binds"`
	Why   string  `json:"reason" table:"why"`
}

// DPP, section VII: disk nodes need over 8 times the capacity that the data takes, to have its IOPS; a node of SSDs has
// 326 % of their IOPS a watt and 9 % of their capacity a watt.
const (
	dppGap             = 8
	ssdIOPSPerWatt     = 3.26
	ssdCapacityPerWatt = 0.09
	hotReads           = 0.8 // of the reads go to the hot bytes (DPP, figure 7, in words: section V-B)
)

// dppHotBytes are the bytes that serve 80 % of the reads (DPP, V-B).
var dppHotBytes = map[string]float64{"dpp-rm1": 0.39, "dpp-rm2": 0.37, "dpp-rm3": 0.18}

// Tiers returns the tiers of a DPP model by the ratios of the paper: disks alone, SSDs alone, and hot bytes on SSDs. It
// returns none for other models, of which no figure is published.
func Tiers(model string) []Tier {
	hot, ok := dppHotBytes[model]
	if !ok {
		return nil
	}
	tier := func(capacity, iops float64) (watts float64, binds string) {
		if iops > capacity {
			return iops, "IOPS"
		}
		return capacity, "capacity"
	}
	disks, disksBind := tier(1, dppGap)
	flash, flashBinds := tier(1/ssdCapacityPerWatt, dppGap/ssdIOPSPerWatt)
	top, topBinds := tier(hot/ssdCapacityPerWatt, hotReads*dppGap/ssdIOPSPerWatt)
	cold, coldBinds := tier(1, (1-hotReads)*dppGap)
	return []Tier{
		{"disks alone", disks, disksBind, "DPP VII: over 8 times the capacity for the IOPS; 8 is the least"},
		{"SSDs alone", flash, flashBinds, fmt.Sprintf("capacity 1 / %.2g, IOPS %d / %.3g", ssdCapacityPerWatt, dppGap,
			ssdIOPSPerWatt)},
		{"hot bytes on SSDs, all bytes on disks", top + cold, topBinds + " of SSDs, " + coldBinds + " of disks",
			fmt.Sprintf("SSDs: the larger of %.2g / %.2g and %.1g x %d / %.3g; disks: the larger of 1 and %.1g x %d", hot,
				ssdCapacityPerWatt, hotReads, dppGap, ssdIOPSPerWatt, 1-hotReads, dppGap)},
	}
}
