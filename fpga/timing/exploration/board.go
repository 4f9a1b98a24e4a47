package exploration

import "github.com/millrace/millrace/fpga/timing"

// Area is what a design takes of an FPGA.
type Area struct {
	LUT    int `json:"lut"`         // as logic, shift registers and memories
	BRAM18 int `json:"block_ram18"` // half a RAMB36 each
	URAM   int `json:"ultra_ram"`
	DSP    int `json:"dsp"`
}

// plus returns the sum of an area and n others.
func (a Area) plus(n int, b Area) Area {
	return Area{a.LUT + n*b.LUT, a.BRAM18 + n*b.BRAM18, a.URAM + n*b.URAM, a.DSP + n*b.DSP}
}

// within reports whether no resource of the area is above the limit's.
func (a Area) within(limit Area) bool {
	return a.LUT <= limit.LUT && a.BRAM18 <= limit.BRAM18 && a.URAM <= limit.URAM && a.DSP <= limit.DSP
}

// Board is a drive's board: its FPGA, and what its platform takes of it.
type Board struct {
	Name     string
	Device   timing.Device // bandwidths; clock and elements are those of PreSto's design
	FPGA     Area
	Platform Area // Platform is the area of the shell, beside which a design lies.
}

// Resources of the SmartSSD's FPGA, with their sources.
const (
	ku15pLUT    = 522_720 // published: AMD, UltraScale+ FPGAs product table: KU15P
	ku15pRAMB36 = 984     // published: the same
	ku15pURAM   = 128     // published: the same
	ku15pDSP    = 1968    // published: the same

	// published: ZF_MilestoneEFG_CSD_Final_Report.md, a routed SmartSSD design: the whole chip less the kernel.
	platformLUT    = 260_315 - 151_243
	platformRAMB36 = 357 - 59
	platformURAM   = 12
	platformDSP    = 11 - 2
)

// Percent of an FPGA's resources that a design and its platform may take: above them, placing becomes hard.
const (
	guideLUT = 70 // published: AMD, report_failfast: guide lines of utilisation
	guideRAM = 80 // published: the same, for block RAM; taken for UltraRAM, too
	guideDSP = 80 // published: the same
)

// SmartSSD is the board of a SmartSSD.
func SmartSSD() Board {
	return Board{
		Name: "SmartSSD (KU15P)", Device: timing.SmartSSD(),
		FPGA:     Area{ku15pLUT, 2 * ku15pRAMB36, ku15pURAM, ku15pDSP},
		Platform: Area{platformLUT, 2 * platformRAMB36, platformURAM, platformDSP},
	}
}

// Limit is the area that a design may take.
func (b Board) Limit() Area {
	return Area{b.FPGA.LUT*guideLUT/100 - b.Platform.LUT, b.FPGA.BRAM18*guideRAM/100 - b.Platform.BRAM18,
		b.FPGA.URAM*guideRAM/100 - b.Platform.URAM, b.FPGA.DSP*guideDSP/100 - b.Platform.DSP}
}

// Shares are parts of what the platform leaves of the FPGA.
type Shares struct {
	LUT  float64 `json:"lut_share"`
	BRAM float64 `json:"block_ram_share"`
	URAM float64 `json:"ultra_ram_share"`
	DSP  float64 `json:"dsp_share"`
}

// shares returns which parts of what the platform leaves an area is.
func (b Board) shares(a Area) Shares {
	part := func(n, whole, platform int) float64 { return float64(n) / float64(whole-platform) }
	return Shares{part(a.LUT, b.FPGA.LUT, b.Platform.LUT), part(a.BRAM18, b.FPGA.BRAM18, b.Platform.BRAM18),
		part(a.URAM, b.FPGA.URAM, b.Platform.URAM), part(a.DSP, b.FPGA.DSP, b.Platform.DSP)}
}

// largest returns the largest share.
func (s Shares) largest() float64 { return max(s.LUT, s.BRAM, s.URAM, s.DSP) }

// prestoShares are the totals of PreSto's Table II: of the part of the FPGA that a design may use, memory ports
// included.
var prestoShares = Shares{LUT: 0.5402, BRAM: 0.4805, URAM: 0.2759, DSP: 0.2981}
