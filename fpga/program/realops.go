package program

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
