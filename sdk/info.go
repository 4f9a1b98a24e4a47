package sdk

// Info is a drive's description of itself. Sizes are in bytes.
type Info struct {
	URI       string `json:"uri"`
	Model     string `json:"model"`
	Serial    string `json:"serial"`
	Firmware  string `json:"firmware"`
	NQN       string `json:"nqn"`
	Size      int64  `json:"size_bytes"`
	BlockSize int    `json:"lba_bytes"`
	ReadOnly  bool   `json:"read_only"`
	Diskless  bool   `json:"diskless"` // it has no namespace 1: windows are stored in its memory by hosts
	MDTS      int    `json:"mdts_bytes"`

	Namespaces []Namespace `json:"namespaces"`

	// The rest is zero for a plain drive.
	SLM     SLMInfo `json:"slm"`
	Region  int     `json:"region"`  // in which the device computes; slm and engine_threads are the region's
	Regions int     `json:"regions"` // The number of the drive's regions.
	Threads int     `json:"engine_threads"`
	// HostIOShare is how much of the time, in percent, ordinary reads and writes may use the flash while regions compute:
	// controller.NoHostIOLimit if there is no limit.
	HostIOShare int `json:"host_io_share_percent"`

	Backend  string    `json:"backend"`
	Commands string    `json:"commands"` // the command set in use: vendor or standard
	Programs []Program `json:"programs"`
}

// Namespace is one active namespace.
type Namespace struct {
	ID   uint32 `json:"nsid"`
	CSI  uint8  `json:"csi"` // 0 NVM, 3 subsystem local memory, 4 computational programs
	UUID string `json:"uuid"`
	Size uint64 `json:"size_bytes"`
}

// SLMInfo describes the subsystem local memory.
type SLMInfo struct {
	Size uint64 `json:"size_bytes"`
}

// Program is one program slot.
type Program struct {
	Slot      int    `json:"slot"`
	Occupancy string `json:"occupancy"`
	Active    bool   `json:"active"`
	PUID      string `json:"puid"` // first 8 bytes of the image id, in hexadecimal
	Bytes     uint64 `json:"bytes"`
}
