package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

//go:embed host.html
var hostHTML []byte

// host is the host's side of MCP Apps: it answers the requests of a page, and notifies it.
type host struct {
	client  *client.Client
	tool    *protocol.Tool
	args    json.RawMessage
	result  json.RawMessage // of the tool
	page    protocol.ResourceContents
	ui      pageUI
	context map[string]any
	refused []string // methods that the host refuses
	frame   string   // the address of the page

	ctx   context.Context // ends with the test
	calls sync.WaitGroup  // requests of the page that are answered

	mu       sync.Mutex
	received []message       // guarded by mu: from the page
	blocked  []string        // guarded by mu: what the policy blocked
	outbox   []any           // guarded by mu: for the page
	answers  map[int]message // guarded by mu: of the page, by id of the request
	lastID   int             // guarded by mu
	changed  chan struct{}   // guarded by mu: closed at each change of the above
}

// pageUI is the member ui in the _meta of a page.
type pageUI struct {
	CSP struct {
		Connect   []string `json:"connectDomains"`
		Resources []string `json:"resourceDomains"`
		Frames    []string `json:"frameDomains"`
		BaseURIs  []string `json:"baseUriDomains"`
	} `json:"csp"`
	Permissions map[string]struct{} `json:"permissions"`
}

// message is a message of JSON-RPC.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// load reads the tool, its page and its result from the server.
func (h *host) load(name string) (err error) {
	for tool, err := range h.client.Tools(h.ctx) {
		if err != nil {
			return err
		}
		if tool.Name == name {
			h.tool = tool
		}
	}
	if h.tool == nil {
		return fmt.Errorf("the server has no tool %q", name)
	}
	var ui struct {
		ResourceURI string `json:"resourceUri"`
	}
	if _, err := h.tool.Meta.Decode("ui", &ui); err != nil {
		return err
	}
	if ui.ResourceURI == "" {
		return fmt.Errorf("the tool %q has no page", name)
	}
	read, err := h.client.ReadResource(h.ctx, ui.ResourceURI)
	if err != nil {
		return err
	}
	if len(read.Contents) != 1 || read.Contents[0].Text == nil || read.Contents[0].MIMEType != apps.MIMEType {
		return fmt.Errorf("the resource %s is not one page of the type %s", ui.ResourceURI, apps.MIMEType)
	}
	h.page = read.Contents[0]
	if _, err := h.page.Meta.Decode("ui", &h.ui); err != nil {
		return err
	}
	return h.client.Request(h.ctx, protocol.MethodToolsCall, map[string]any{"name": name, "arguments": h.args}, &h.result, client.Name(name))
}

// policy returns the content security policy of the page, as the specification builds it.
func (h *host) policy() string {
	list := func(without string, origins []string) string {
		if len(origins) == 0 {
			return without
		}
		return strings.Join(origins, " ")
	}
	csp := h.ui.CSP
	resources := list("", csp.Resources)
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self' 'unsafe-inline' " + resources,
		"style-src 'self' 'unsafe-inline' " + resources,
		"img-src 'self' data: " + resources,
		"media-src 'self' data: " + resources,
		"font-src 'self' " + resources,
		"connect-src " + list("'none'", csp.Connect),
		"frame-src " + list("'none'", csp.Frames),
		"base-uri " + list("'self'", csp.BaseURIs),
		"object-src 'none'",
		"report-uri /violations",
	}, "; ")
}

// permissions returns the value of the frame's attribute allow.
func (h *host) permissions() string {
	var allow []string
	for name := range h.ui.Permissions {
		if name == "clipboardWrite" {
			name = "clipboard-write"
		}
		allow = append(allow, name)
	}
	slices.Sort(allow)
	return strings.Join(allow, "; ")
}

// hostSite is the host's page.
func (h *host) hostSite() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(hostHTML)
	})
	mux.HandleFunc("GET /frame", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"src": h.frame, "allow": h.permissions()})
	})
	mux.HandleFunc("GET /events", h.events)
	mux.HandleFunc("POST /message", func(w http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		h.receive(m)
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// frameSite is the origin of the page, with its content security policy.
func (h *host) frameSite() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", h.policy())
		_, _ = io.WriteString(w, *h.page.Text)
	})
	mux.HandleFunc("POST /violations", func(w http.ResponseWriter, r *http.Request) {
		var report struct {
			Report struct {
				Directive string `json:"effective-directive"`
				URI       string `json:"blocked-uri"`
			} `json:"csp-report"`
		}
		if err := json.NewDecoder(r.Body).Decode(&report); err == nil {
			h.note(func() { h.blocked = append(h.blocked, report.Report.Directive+" "+report.Report.URI) })
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// events sends the messages for the page, until the test ends.
func (h *host) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	_ = flush()
	for sent := 0; ; {
		h.mu.Lock()
		due, changed := h.outbox[sent:], h.changed
		h.mu.Unlock()
		for _, m := range due {
			text, err := json.Marshal(m)
			if err != nil {
				panic(err) // messages are made of what was decoded
			}
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
				return
			}
			sent++
		}
		_ = flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-h.ctx.Done():
			return
		}
	}
}

// note changes the state, and wakes who waits for it.
func (h *host) note(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	close(h.changed)
	h.changed = make(chan struct{})
}

// await waits until done returns true, which is called with mu held.
func (h *host) await(ctx context.Context, done func() bool) error {
	for {
		h.mu.Lock()
		ok, changed := done(), h.changed
		h.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *host) send(m any) { h.note(func() { h.outbox = append(h.outbox, m) }) }

func (h *host) notify(method string, params any) {
	raw, err := json.Marshal(params)
	if err != nil {
		panic(err) // of the test
	}
	h.send(message{JSONRPC: "2.0", Method: method, Params: raw})
}

// receive takes a message of the page.
func (h *host) receive(m message) {
	h.note(func() {
		h.received = append(h.received, m)
		var id int
		if m.Method == "" && json.Unmarshal(m.ID, &id) == nil {
			h.answers[id] = m
		}
	})
	switch {
	case m.Method == "ui/notifications/initialized":
		h.notify("ui/notifications/tool-input", map[string]any{"arguments": h.args})
		h.notify("ui/notifications/tool-result", h.result)
	case m.Method != "" && m.ID != nil:
		// Ends when the server has answered, or with the test.
		h.calls.Go(func() {
			result, err := h.answer(m)
			reply := map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result}
			if err != nil {
				fault, ok := errors.AsType[*jsonrpc.Error](err)
				if !ok {
					fault = jsonrpc.Errorf(jsonrpc.CodeInternalError, "%v", err)
				}
				reply = map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": fault}
			}
			h.send(reply)
		})
	}
}

// answer answers a request of the page.
func (h *host) answer(m message) (any, error) {
	if slices.Contains(h.refused, m.Method) {
		return map[string]any{"isError": true}, nil
	}
	switch m.Method {
	case "ui/initialize":
		return map[string]any{
			"protocolVersion": "2026-01-26",
			"hostInfo":        map[string]string{"name": "mcptest/browser", "version": "1.0.0"},
			"hostCapabilities": map[string]any{
				"openLinks": struct{}{}, "downloadFile": struct{}{}, "serverTools": struct{}{}, "serverResources": struct{}{}, "logging": struct{}{},
				"message": map[string]any{"text": struct{}{}}, "updateModelContext": map[string]any{"text": struct{}{}, "structuredContent": struct{}{}},
			},
			"hostContext": h.context,
		}, nil
	case "ui/open-link", "ui/message", "ui/update-model-context", "ui/download-file", "ping":
		return struct{}{}, nil
	case "ui/request-display-mode":
		return map[string]string{"mode": "inline"}, nil
	case protocol.MethodToolsCall:
		return h.callTool(m.Params)
	case protocol.MethodResourcesRead:
		var p struct {
			URI string `json:"uri"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return nil, err
		}
		return h.client.ReadResource(h.ctx, p.URI)
	default:
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the host has no method %s", m.Method)
	}
}

// callTool calls a tool for the page, if it is for pages.
func (h *host) callTool(params json.RawMessage) (any, error) {
	var p struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	for tool, err := range h.client.Tools(h.ctx) {
		if err != nil {
			return nil, err
		}
		var ui struct {
			Visibility []string `json:"visibility"`
		}
		if _, err := tool.Meta.Decode("ui", &ui); err != nil {
			return nil, err
		}
		if tool.Name == p.Name && ui.Visibility != nil && !slices.Contains(ui.Visibility, "app") {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the tool %s is not for pages", p.Name)
		}
	}
	var result json.RawMessage
	err := h.client.Request(h.ctx, protocol.MethodToolsCall, params, &result, client.Name(p.Name))
	return result, err
}
