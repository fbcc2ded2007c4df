// Package load sends requests to a server in a child process and reads the server's CPU time from
// the kernel. Its clients do as little as possible: they send prepared bytes and search for the end
// of the response.
package load

import (
	"bytes"
	"fmt"
	"strconv"
)

// A Job is a request that is sent repeatedly, each time with a new ID.
type Job struct {
	Name   string
	Method string // "tools/call"
	Tool   string // "" if the method has no name
	Args   string // JSON
	Want   string // a text that occurs in each response
}

// Jobs lists the measured requests.
var Jobs = []Job{
	{Name: "add", Method: "tools/call", Tool: "add", Args: `{"a":19,"b":23}`, Want: `"sum":42`},
	{Name: "search", Method: "tools/call", Tool: "search",
		Args: `{"query":"fast servers","limit":10,"tags":["go","mcp"],"filter":{"field":"year","op":"gt","value":"2024"}}`, Want: `"id":1009`},
	{Name: "echo 100", Method: "tools/call", Tool: "echo", Args: `{"text":"` + string(bytes.Repeat([]byte("0123456789"), 10)) + `"}`, Want: `123456789"`},
	{Name: "blob 1M", Method: "tools/call", Tool: "blob", Args: `{"n":1048576}`, Want: `All work`},
	{Name: "tools/list", Method: "tools/list", Want: `"minLength":1`},
}

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
	meta   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
)

// The messages that open a session.
const (
	Initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacy +
		`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	Initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// firstID has as many digits as each later ID, so all requests have the same length.
const firstID = 1_000_000_000

// Body returns the JSON of j and the position of its ID.
func (j *Job) Body(isModern bool) (body []byte, idAt int) {
	body = append(body, `{"jsonrpc":"2.0","id":`...)
	idAt = len(body)
	body = strconv.AppendInt(body, firstID, 10)
	body = append(body, `,"method":"`+j.Method+`","params":{`...)
	if j.Tool != "" {
		body = append(body, `"name":"`+j.Tool+`","arguments":`+j.Args+`,`...)
	}
	if isModern {
		body = append(body, meta...)
	} else {
		body = bytes.TrimSuffix(body, []byte(","))
	}
	return append(body, "}}"...), idAt
}

// Check checks a response to j.
func (j *Job) Check(answer []byte) error {
	if !bytes.Contains(answer, []byte(j.Want)) && !bytes.Contains(answer, bytes.ReplaceAll([]byte(j.Want), []byte(`"`), []byte(`\"`))) ||
		bytes.Contains(answer, []byte(`"isError":true`)) {
		return fmt.Errorf("%s: unexpected response %.300s", j.Name, answer)
	}
	return nil
}
