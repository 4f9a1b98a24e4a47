package main

import (
	"fmt"

	"example.net/module/shape"
)

func main() { fmt.Println(shape.Used()) }
