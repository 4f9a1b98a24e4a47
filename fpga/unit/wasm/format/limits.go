package format

// Limits of modules. A module that passes one is refused before anything is made of it.
const (
	MaxModule    = 1 << 20 // bytes of a module
	MaxPages     = 16      // pages of memory: 1 MiB
	MaxFunctions = 4096
	MaxTypes     = 1024
	MaxGlobals   = 256
	MaxExports   = 4096
	MaxSegments  = 1024     // of data
	MaxCode      = 64 << 10 // bytes of the functions that an operator reaches
	MaxLocals    = 2048     // locals of a function that an operator reaches
	MaxNesting   = 256      // blocks in blocks
	MaxCalls     = 64       // functions that call each other in a chain
	MaxInputs    = 8        // parameters of an operator
	MaxName      = 64       // bytes of an operator's name
)

// Fuel is how much work a call may do for one row, about the number of its instructions.
const Fuel = 1 << 17

// BlockRows is how many rows lie in a rewritten module's memory at a time.
const BlockRows = 256

// pageBytes is the size of a page of memory.
const pageBytes = 1 << 16
