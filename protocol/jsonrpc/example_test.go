package jsonrpc_test

import (
	"fmt"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Decode reads one message. What is not valid JSON-RPC becomes the response to send.
func ExampleDecode() {
	m, _ := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"add"}}`))
	fmt.Println(m.Request.ID, m.Request.Method, string(m.Request.Param("name")))
	_, bad := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`))
	fmt.Println(bad.Error.Code == jsonrpc.CodeInvalidRequest || bad.Error.Code == jsonrpc.CodeParseError)
	// Output:
	// "a" tools/call "add"
	// true
}

// Requests keep their IDs as they were sent.
func ExampleNewRequest() {
	req, err := jsonrpc.NewRequest(jsonrpc.NumberID(7), "ping", nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(jsonrpc.AppendRequest(nil, req)))
	// Output: {"jsonrpc":"2.0","id":7,"method":"ping"}
}
