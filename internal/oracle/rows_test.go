package oracle

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

var (
	versions   = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}
	transports = []string{"stdio", "http", "websocket", "sse"}
)

const (
	modern     = "2026-07-28"
	everything = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`
)

// A row is an exchange on several transports and versions. Each step is a section of the client:
//
//	tools/call {"name":"add"}   a request, with the next ID and, if needed, _meta and header fields
//	!notifications/cancelled {} a notification
//	{"jsonrpc":...              a message as it is, as is "..." with Go's escapes
//	POST /mcp                   an HTTP request as it is
//	# wait 5s                   a pause; "# disconnect" and, over HTTP, "# disconnect 2" end a connection
//
// Lines such as "X-Scopes: a" before a message are header fields. $meta is the _meta of a modern
// request, $init the request initialize, $session the header fields of later requests.
type row struct {
	name    string
	at      string // patterns of transport/version; a * does not match sse
	shows   string
	options string // of the fixture
	caps    string // what the client declares; "" is everything
	bare    bool   // the client does not begin with initialize
	steps   []string
}

func (r row) is(transport, version string) bool {
	return slices.ContainsFunc(strings.Fields(r.at), func(pattern string) bool {
		ok, _ := path.Match(pattern, transport+"/"+version)
		return ok && (transport != "sse" || pattern[0] != '*')
	})
}

// meta is the _meta member of a modern request.
func meta(version, caps string) string {
	return fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s}`, version, caps)
}

func initialize(version, caps string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"client","version":"1"}}}`, version, caps)
}

// writeRows writes the sections of the client.
func writeRows(t *testing.T) {
	for _, r := range rows {
		for _, transport := range transports {
			for _, version := range versions {
				if !r.is(transport, version) {
					continue
				}
				file := filepath.Join("testdata", transport, version, r.name+".txtar")
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				archive := txtar.Archive{Comment: []byte(r.shows + "\n\n"), Files: r.render(transport, version)}
				require.NoError(t, os.WriteFile(file, txtar.Format(&archive), 0o644))
			}
		}
	}
}

func (r row) render(transport, version string) []txtar.File {
	var files []txtar.File
	section := func(name, text string) { files = append(files, txtar.File{Name: name, Data: []byte(text + "\n")}) }
	if r.options != "" {
		section("options", r.options)
	}
	caps := r.caps
	if caps == "" {
		caps = everything
	}
	session := ""
	if transport == "http" && version != modern && !strings.Contains(r.options, "stateless") {
		session = "Mcp-Session-Id: <session 1>\n"
	}
	if version >= "2025-06-18" {
		session += "Mcp-Protocol-Version: " + version + "\n"
	}
	wrap := func(message, fields string) string {
		if transport != "http" {
			return message
		}
		return "POST /mcp\nContent-Type: application/json\nAccept: application/json, text/event-stream\n" + fields + "\n" + message
	}
	if version != modern && !r.bare {
		section("open", wrap(initialize(version, caps), ""))
		section("open", wrap(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, session))
	}
	id := 0
	for _, step := range r.steps {
		if version == modern {
			step = strings.ReplaceAll(step, "$meta", meta(version, caps))
		} else {
			step = strings.ReplaceAll(strings.ReplaceAll(step, ",$meta", ""), "$meta", "")
		}
		step = strings.ReplaceAll(step, "$init", initialize(version, caps))
		if httpRequest.MatchString(step) || strings.HasPrefix(step, "# ") {
			section("client", strings.ReplaceAll(step, "$session\n", session))
			continue
		}
		fields := session
		if strings.Contains(step, `"method":"initialize"`) {
			fields = ""
		}
		for httpField.MatchString(step) {
			field, rest, _ := strings.Cut(step, "\n")
			fields, step = fields+field+"\n", rest
		}
		if !strings.ContainsAny(step[:1], `{["`) {
			method, params, _ := strings.Cut(strings.TrimPrefix(step, "!"), " ")
			message := `{"jsonrpc":"2.0"`
			if !strings.HasPrefix(step, "!") {
				id++
				message += fmt.Sprintf(`,"id":%d`, id)
			}
			message += fmt.Sprintf(`,"method":%q`, method)
			if version == modern {
				params = addMeta(params, meta(version, caps))
			}
			if params != "" {
				message += `,"params":` + params
			}
			step = message + "}"
		}
		if version == modern {
			fields += headers(step)
		}
		section("client", wrap(step, fields))
	}
	return files
}

var httpField = regexp.MustCompile(`^[A-Z][A-Za-z-]*: .*\n`)

var httpRequest = regexp.MustCompile(`^[A-Z]+ [/<]`)

// addMeta puts the modern _meta into params.
func addMeta(params, meta string) string {
	if before, after, ok := strings.Cut(params, `"_meta":{`); ok {
		return before + strings.TrimSuffix(meta, "}") + "," + after
	}
	if params == "" || params == "{}" {
		return "{" + meta + "}"
	}
	return strings.TrimSuffix(params, "}") + "," + meta + "}"
}

// headers are the header fields that repeat the body of a modern request.
func headers(message string) string {
	var m struct {
		Method string
		Params struct{ Name, URI string }
	}
	if json.Unmarshal([]byte(message), &m) != nil || m.Method == "" {
		return ""
	}
	fields := "Mcp-Method: " + m.Method + "\n"
	if name := m.Params.Name + m.Params.URI; name != "" && slices.Contains([]string{"tools/call", "prompts/get", "resources/read"}, m.Method) {
		fields += "Mcp-Name: " + name + "\n"
	}
	return fields
}

// call is a step that calls a tool.
func call(tool, args string) string {
	return fmt.Sprintf(`tools/call {"name":%q,"arguments":%s}`, tool, args)
}

// calls are steps that call a tool with several arguments.
func calls(tool string, args ...string) []string {
	var steps []string
	for _, a := range args {
		steps = append(steps, call(tool, a))
	}
	return steps
}
