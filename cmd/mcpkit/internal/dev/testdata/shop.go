package main

import (
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Shop is the shop of version VERSION.
type Shop struct {
	_ mcpkit.Info `name:"shop" version:"VERSION"`
	_ struct {
		Version      mcpkit.Tool
		Ask          mcpkit.Tool
		Only_VERSION mcpkit.Tool
		Sell         mcpkit.Prompt
		Stock        mcpkit.Resource `uri:"shop://stock"`
	}
}

func (*Shop) Version() string { return "VERSION" }
func (*Shop) Sell() string    { return "VERSION" }
func (*Shop) Stock() string   { return "VERSION" }

// Only_VERSION is new.
func (*Shop) Only_VERSION() string { return "VERSION" }

// Ask asks the user.
func (*Shop) Ask() string { return "" }
