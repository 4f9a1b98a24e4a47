package sizing

// The names of figures. Those of drives have a medium before the point.
const (
	figureT         = "job.t"
	figureBytes     = "job.bytes"
	figureRowIn     = "job.row_in"
	figureRowOut    = "job.row_out"
	figureReadSize  = "job.read_size"
	figureReplicas  = "job.replicas"
	figureGrowth    = "job.growth"
	figureTGrowth   = "job.t_growth"
	figureRetention = "job.retention"
	figureTrainers  = "job.trainers"

	figureDriveP      = "csd.p"
	figureDriveMemory = "csd.memory"
	figureDriveLink   = "csd.link"
	figureFill        = "drive.fill"

	figureCardP      = "card.p"
	figureCardMemory = "card.memory"
	figureCardLink   = "card.link"
	figureCardUSD    = "card.usd"
	figureCardWatts  = "card.watts"
	figureCardsANode = "card.per_node"
	figurePoolCards  = "pool.cards"
	figureA100Ratio  = "a100.ratio"
	figureA100USD    = "a100.usd"
	figureA100Watts  = "a100.watts"
	figureU280Ratio  = "u280.ratio"

	figurePreStoDrive = "presto.drive" // rows/s of PreSto's SmartSSD; the ratios of cards refer to it
	figurePreStoCore  = "core.presto"  // rows/s of a core of PreSto's TorchArrow workers
	figureDPPCore     = "core.dpp"     // rows/s of a core of DPP's workers
	figureLoopsCore   = "core.loops"   // rows/s of a core that runs TorchArrow's loops
	figureKernelCore  = "core.kernels" // rows/s of a core that runs our kernels

	figureBays       = "host.bays"
	figureHostUSD    = "host.usd"
	figureHostWatts  = "host.watts"
	figureServeCores = "host.serve_cores"
	figureUnits      = "server.units"
	figureCPUCores   = "cpu.cores"
	figureCPUUSD     = "cpu.usd"
	figureCPUWatts   = "cpu.watts"

	figureNICRate       = "nic.rate"
	figureUsableNetwork = "nic.usable"
	figureNICUSD        = "nic.usd"
	figureNICWatts      = "nic.watts"
	figureNodeNICs      = "node.nics"
	figureTrainerNICs   = "trainer.nics"
	figureTrainerCores  = "trainer.cores"
	figureTrainerLoad   = "trainer.load"

	figureRebuildShare = "rebuild.share"
	figureRebuildHours = "rebuild.hours"
	figureRackWatts    = "rack.watts"
	figureRackUnits    = "rack.units"
	figureRackUSD      = "rack.usd"
	figureYears        = "money.years"
	figureElectricity  = "money.electricity"
)

// Medium is what the data lies on. Its figures are named by it: ssd.bytes, ssd.read.
type Medium string

// The media. A placement in storage has CSDs; the others have the job's.
const (
	CSD Medium = "csd" // a drive that computes
	SSD Medium = "ssd"
	HDD Medium = "hdd"
)

// Figures of a medium.
const (
	ofBytes = ".bytes"
	ofRead  = ".read"
	ofIOPS  = ".iops"
	ofWrite = ".write"
	ofDWPD  = ".dwpd"
	ofAFR   = ".afr"
	ofWatts = ".watts"
	ofUSD   = ".usd"
)
