package interop

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/mcpkit/mcpkit-go/client"
)

// The TypeScript SDKs.
const (
	sdk1 = "@modelcontextprotocol/sdk" // legacy versions only
	sdk2 = "@modelcontextprotocol/client"
)

// A task is the argument of a script of ts.
type task struct {
	SDK       string  `json:"sdk,omitempty"`
	Version   string  `json:"version,omitempty"`
	Transport string  `json:"transport,omitempty"`
	Addr      string  `json:"addr,omitempty"`
	Server    *target `json:"server,omitempty"`
	Notes     *target `json:"notes,omitempty"`
	Browser   string  `json:"browser,omitempty"` // URL that leads to where the page in its query leads a user
}

func TestTypeScriptClientsAtOurServers(t *testing.T) {
	at := func(sdk, transport, version string) {
		row(t, func(t *testing.T) {
			ours := fixture(t, transport)
			job := task{SDK: sdk, Version: version, Transport: transport, Server: &ours}
			if transport != "sse" {
				other := notes(t, transport)
				job.Notes = &other
			}
			runNode(t, "client.mjs", job)
		}, sdk, "at mcpkit", transport, version)
	}
	for _, transport := range []string{"stdio", "http", "sse"} {
		at(sdk1, transport, latest)
	}
	for _, version := range versions {
		at(sdk2, "stdio", version)
		at(sdk2, "http", version)
	}
}

func TestInspectorAtOurServers(t *testing.T) {
	for version, transport := range map[string]string{latest: "stdio", modern: "http"} {
		row(t, func(t *testing.T) {
			ours, other := fixture(t, transport), notes(t, transport)
			runNode(t, "inspector.mjs", task{Version: version, Server: &ours, Notes: &other})
		}, "@modelcontextprotocol/inspector at mcpkit", transport, version)
	}
}

func TestHostOfAppsShowsThePageOfOurServer(t *testing.T) {
	for _, version := range []string{latest, modern} {
		row(t, func(t *testing.T) {
			board := target{Command: program(t, "examples/board")}
			runNode(t, "apps.mjs", task{Version: version, Server: &board})
		}, "@modelcontextprotocol/ext-apps at mcpkit stdio", version)
	}
}

func TestOurClientAtTypeScriptServers(t *testing.T) {
	cannot1 := map[string]string{
		"pages of tools": "McpServer has none",
		"an unknown resource has an error of its own": "the SDK reports -32602 without data, as for bad arguments",
	}
	cannot2 := map[string]string{"pages of tools": "McpServer has none"}
	at := func(sdk, transport, version string, cannot map[string]string) {
		row(t, func(t *testing.T) {
			job := task{SDK: sdk, Transport: transport}
			if transport == "stdio" {
				cmd := node(t, "serve.mjs", job)
				visit(t, client.Command(cmd.Path, cmd.Args[1:]...), transport, version, cannot)
				return
			}
			addr := serve(t, func(addr string) *exec.Cmd {
				job.Addr = addr
				return node(t, "serve.mjs", job)
			})
			url := "http://" + addr + "/mcp"
			if transport == "sse" {
				visit(t, client.HTTPSSE("http://"+addr+"/sse"), transport, version, cannot)
				return
			}
			visit(t, client.URL(url), transport, version, cannot)
		}, "mcpkit at", strings.Replace(sdk, "/client", "/server", 1), transport, version)
	}
	for _, version := range versions {
		for _, transport := range []string{"stdio", "http"} {
			if version != modern {
				at(sdk1, transport, version, cannot1)
			}
			at(sdk2, transport, version, cannot2)
		}
	}
	at(sdk1, "sse", latest, cannot1)
}
