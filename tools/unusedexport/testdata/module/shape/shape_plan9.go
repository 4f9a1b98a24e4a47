package shape

// unused is called by nobody there, either.
func unused() int { return Elsewhere }
