package program

import "math"

// Logit is the correctly rounded float32 of ln(t / (1 - t)), t a value clamped to [Eps, 1-Eps]; an Eps below 0 clamps
// nothing. Takes and yields Float32.
type Logit struct{ Eps float32 }

// BoxCoxMode says which number BoxCox transforms.
type BoxCoxMode uint8

// The modes. The numbers are part of the wire form.
const (
	BoxCoxCaffe2 BoxCoxMode = 0 // max(x + Lambda2, 1e-6)
	BoxCoxRAP    BoxCoxMode = 1 // x where it is above 0; other values stay, and Lambda2 is 0
)

// BoxCox is the correctly rounded float32 of (t^Lambda1 - 1) / Lambda1, or of ln t where Lambda1 is 0. Takes and yields
// Float32.
type BoxCox struct {
	Lambda1, Lambda2 float32
	Mode             BoxCoxMode
}

// Unit implements [Op].
func (Logit) Unit() Unit { return UnitLogit }

// Unit implements [Op].
func (BoxCox) Unit() Unit { return UnitBoxCox }

// Out implements [Op].
func (Logit) Out(in Kind) Kind { return kindIf(in, Float32, Float32) }

// Out implements [Op].
func (BoxCox) Out(in Kind) Kind { return kindIf(in, Float32, Float32) }

// Normalize is the correctly rounded float32 of (x - Mean) / Deviation, or of x - Mean where Deviation is 0. Takes and
// yields Float32.
type Normalize struct{ Mean, Deviation float64 }

// MinMax is the correctly rounded float32 of (x - Min) / (Max - Min), or of x / 2x where both are one number. Takes and
// yields Float32.
type MinMax struct{ Min, Max float64 }

// Unit implements [Op].
func (Normalize) Unit() Unit { return UnitNormalize }

// Unit implements [Op].
func (MinMax) Unit() Unit { return UnitMinMax }

// Out implements [Op].
func (Normalize) Out(in Kind) Kind { return kindIf(in, Float32, Float32) }

// Out implements [Op].
func (MinMax) Out(in Kind) Kind { return kindIf(in, Float32, Float32) }

// FillNaN replaces a NaN by a finite constant, which is a float32 for Float32. Takes and yields Float32 or Float64.
type FillNaN struct{ Value float64 }

// Unit implements [Op].
func (FillNaN) Unit() Unit { return UnitFillNaN }

// Out implements [Op].
func (FillNaN) Out(in Kind) Kind {
	if in == Int64 {
		return 0
	}
	return numericKind(in)
}

// InNormalRange reports whether a constant is 0 or in the range of normal float32 numbers, as those of Normalize and
// MinMax must be.
func InNormalRange(x float64) bool {
	return x == 0 || math.Abs(x) >= 0x1p-126 && math.Abs(x) <= math.MaxFloat32
}
