package program

import "fmt"

// String returns the format's name as the command line writes it.
func (s Source) String() string {
	switch s {
	case Parquet:
		return "parquet"
	case CriteoTSV:
		return "criteo-tsv"
	case CriteoBinary:
		return "criteo-bin"
	}
	return fmt.Sprintf("source(%d)", uint8(s))
}

// String returns the policy's name as the command line writes it.
func (m Malformed) String() string {
	switch m {
	case MalformedFail:
		return "fail"
	case MalformedDrop:
		return "drop"
	case MalformedNull:
		return "null"
	}
	return fmt.Sprintf("malformed(%d)", uint8(m))
}

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Int64:
		return "int64"
	case Float32:
		return "float32"
	case Float64:
		return "float64"
	case Bytes:
		return "bytes"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// String returns the tensor's name.
func (d Dest) String() string {
	switch d {
	case ToLabel:
		return "label"
	case ToDense:
		return "dense"
	case ToSparse:
		return "sparse"
	}
	return fmt.Sprintf("dest(%d)", uint8(d))
}

// String returns the type's name.
func (i IDs) String() string {
	switch i {
	case IDs64:
		return "int64"
	case IDs32:
		return "int32"
	}
	return fmt.Sprintf("ids(%d)", uint8(i))
}

// String returns the type's name.
func (d DenseType) String() string {
	switch d {
	case DenseFloat32:
		return "float32"
	case DenseBFloat16:
		return "bfloat16"
	}
	return fmt.Sprintf("dense(%d)", uint8(d))
}

// String returns what is refused.
func (r Refusal) String() string {
	switch r {
	case RefusesNothing:
		return "nothing"
	case RefusesNaN:
		return "nan"
	case RefusesNonFinite:
		return "nan and infinities"
	}
	return fmt.Sprintf("refusal(%d)", uint8(r))
}

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Done:
		return "done"
	case Idle:
		return "idle"
	case MoreInput:
		return "more input"
	case MoreDict:
		return "more dictionary"
	case MoreScratch:
		return "more scratch"
	case MoreOutput:
		return "more output"
	case BadSlice:
		return "bad slice"
	case BadProgram:
		return "bad program"
	case BadData:
		return "bad data"
	case NoSupport:
		return "not supported"
	case BadTable:
		return "bad table"
	}
	return fmt.Sprintf("state(%d)", uint16(s))
}
