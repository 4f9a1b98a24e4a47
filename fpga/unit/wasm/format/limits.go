package format

// Limits of modules. A module that passes one is refused before anything is made of it.
const (
	MaxModule       = 1 << 20 // bytes of a module
	MaxPages        = 16      // pages of memory: 1 MiB
	MaxFunctions    = 4096
	MaxTypes        = 1024
	MaxGlobals      = 256
	MaxExports      = 4096
	MaxSegments     = 1024     // of data
	MaxLocals       = 2048     // parameters and locals of a function
	MaxModuleLocals = 64 << 10 // locals of all functions of a module
	MaxNesting      = 256      // blocks in blocks
)

// Limits of an operator, with the functions that it calls.
const (
	MaxCode   = 64 << 10 // bytes of their bodies
	MaxWork   = 2 << 20  // steps of compiling them, as effort estimates them
	MaxCalls  = 64       // functions that call each other in a chain
	MaxInputs = 8        // parameters of an operator
	MaxName   = 64       // bytes of an operator's name
)

// Limits of the operators of a program, each of which is compiled when the program is.
const (
	MaxProgramFunctions = 64
	MaxProgramWork      = 4 * MaxWork // steps of compiling them
	MaxProgramBytes     = 64 << 20    // that they hold for each thread
)

// Fuel is how much work a call may do for one row, about the number of its instructions.
const Fuel = 1 << 17

// BlockRows is how many rows lie in a rewritten module's memory at a time.
const BlockRows = 256

// pageBytes is the size of a page of memory.
const pageBytes = 1 << 16
