package main

import "github.com/mcpkit/mcpkit-go/mcpkit"

func main() {
	if err := mcpkit.Serve(&Shop{}); err != nil {
		panic(err)
	}
}
