package format

type Number int

func Parse(b []byte) Number { return Number(b[0]) }
