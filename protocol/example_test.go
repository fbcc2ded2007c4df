package protocol_test

import (
	"encoding/json"
	"fmt"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// Content is decoded by its type.
func ExampleUnmarshalContent() {
	c, err := protocol.UnmarshalContent([]byte(`{"type":"text","text":"Hello"}`))
	fmt.Println(protocol.ContentType(c), c.(*protocol.TextContent).Text, err)
	// Output: text Hello <nil>
}

// Modern versions have no sessions.
func ExampleVersion_Modern() {
	for _, v := range protocol.Supported {
		fmt.Println(v, v.Modern())
	}
	// Output:
	// 2026-07-28 true
	// 2025-11-25 false
	// 2025-06-18 false
	// 2025-03-26 false
	// 2024-11-05 false
}

// A tool without an input schema takes no arguments.
func ExampleTool() {
	text, err := json.Marshal(&protocol.Tool{Name: "now"})
	fmt.Println(string(text), err)
	// Output: {"name":"now","inputSchema":{"type":"object","properties":{}}} <nil>
}
