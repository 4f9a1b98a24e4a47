package nvme

// Admin opcodes that the controller of this module implements, and further ones that hosts are known to send.
const (
	AdminGetLogPage           = 0x02
	AdminIdentify             = 0x06
	AdminAbort                = 0x08
	AdminSetFeatures          = 0x09
	AdminGetFeatures          = 0x0a
	AdminAsyncEventRequest    = 0x0c
	AdminKeepAlive            = 0x18
	AdminLoadProgram          = 0x85
	AdminProgramActivation    = 0x88
	AdminMemoryRangeSetManage = 0x89
)

// I/O opcodes of the NVM command set.
const (
	NVMFlush       = 0x00
	NVMWrite       = 0x01
	NVMRead        = 0x02
	NVMCompare     = 0x05
	NVMWriteZeroes = 0x08
	NVMDataset     = 0x09 // Dataset Management
)

// Command set identifiers (Base Specification 2.1, figure 311).
const (
	CSINVM     = 0x00
	CSISLM     = 0x03 // Subsystem Local Memory
	CSICompute = 0x04 // Computational Programs
)

// AllNamespaces is the namespace identifier that means every namespace.
const AllNamespaces = 0xffffffff

// Feature identifiers.
const (
	FeatureArbitration      = 0x01
	FeaturePowerManagement  = 0x02
	FeatureTemperature      = 0x04
	FeatureErrorRecovery    = 0x05
	FeatureWriteCache       = 0x06
	FeatureQueues           = 0x07
	FeatureWriteAtomicity   = 0x0a
	FeatureAsyncEvents      = 0x0b
	FeatureKeepAlive        = 0x0f
	FeatureHostBehavior     = 0x16
	FeatureCommandSets      = 0x19 // I/O Command Set Profile
	FeatureSoftwareProgress = 0x80
	FeatureHostID           = 0x81
)

// Identify CNS values.
const (
	CNSNamespace            = 0x00
	CNSController           = 0x01
	CNSActiveNamespaces     = 0x02
	CNSNamespaceDescriptors = 0x03
	CNSSetNamespace         = 0x05 // I/O command set specific namespace
	CNSSetController        = 0x06 // I/O command set specific controller
	CNSSetActiveNamespaces  = 0x07 // active namespaces of one command set
	CNSIndependentNamespace = 0x08 // command set independent namespace
	CNSCommandSets          = 0x1c
)

// IdentifySize is the size in bytes of every Identify data structure.
const IdentifySize = 4096

// Log page identifiers.
const (
	LogSupported         = 0x00
	LogErrors            = 0x01
	LogSMART             = 0x02
	LogFirmware          = 0x03
	LogChangedNamespaces = 0x04
	LogEffects           = 0x05
	LogPrograms          = 0x82
	LogProgramTypes      = 0x83
	LogMemoryRangeSets   = 0x84
	LogVendor            = 0xc0
	LogLost              = 0xc2 // vendor: blocks of namespace 1 that the drive has lost
	LogImages            = 0xc1 // vendor: the drive's report on its images, in the drive's own words
)

// VersionSpec is the version of the base specification that controllers here report: 2.0.
const VersionSpec = 0x20000
