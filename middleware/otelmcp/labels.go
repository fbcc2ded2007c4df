package otelmcp

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// labels are the attributes of a metric. Clients cannot add values to any of them.
type labels struct {
	method, target  string
	version         protocol.Version
	network         network
	code, errorType string // "" if there is none
}

// network is how messages are transported.
type network struct{ transport, protocol string } // "" if unknown

func labelsOf(call *mcpkit.Call, outcome middleware.Outcome, err error) labels {
	l := labels{method: call.Method(), target: targetOf(call), version: call.Version(), network: networkOf(call), code: codeOf(call, err)}
	switch {
	case outcome == middleware.OK || outcome == middleware.InputRequired:
	case l.code != "":
		l.errorType = l.code
	case outcome == middleware.Failed:
		l.errorType = "tool_error" // it becomes a result with isError
	default:
		l.errorType = string(outcome)
	}
	return l
}

// codeOf returns the code of the error that the client gets, or "" if it gets a result.
func codeOf(call *mcpkit.Call, err error) string {
	if err == nil || errors.Is(err, mcpkit.ErrAsked) {
		return ""
	}
	code := jsonrpc.CodeInternalError
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok && rpc != nil {
		code = rpc.Code
	} else if coded, ok := errors.AsType[mcpkit.CodedError](err); ok {
		code = coded.ErrorCode()
	} else if call.Method() == protocol.MethodToolsCall {
		return ""
	} else if _, ok := errors.AsType[*reflectx.ArgumentError](err); ok {
		code = jsonrpc.CodeInvalidParams
	} else if call.Method() == protocol.MethodResourcesRead && (errors.Is(err, mcpkit.ErrNotFound) || errors.Is(err, fs.ErrNotExist)) {
		code = protocol.ResourceNotFound(call.Version(), "").Code
	}
	return strconv.Itoa(code)
}

// start returns the attributes that are known when the call begins.
func (l labels) start() []attribute.KeyValue {
	set := make([]attribute.KeyValue, 0, 8)
	if l.method != "" {
		set = append(set, attribute.String("mcp.method.name", l.method))
	}
	if l.target == "" {
		return set
	}
	switch l.method {
	case protocol.MethodToolsCall:
		set = append(set, attribute.String("gen_ai.tool.name", l.target), attribute.String("gen_ai.operation.name", "execute_tool"))
	case protocol.MethodPromptsGet:
		set = append(set, attribute.String("gen_ai.prompt.name", l.target))
	}
	return set
}

func (l labels) all() []attribute.KeyValue {
	set := append(l.start(), attribute.String("mcp.protocol.version", string(l.version)))
	set = l.network.append(set)
	if l.code != "" {
		set = append(set, attribute.String("rpc.response.status_code", l.code))
	}
	if l.errorType != "" {
		set = append(set, attribute.String("error.type", l.errorType))
	}
	return set
}

// maxLabels is the most attribute sets that are kept. Further ones are built anew for each call;
// only programs that keep adding and removing tools need them.
const maxLabels = 4096

// labelTable keeps attribute sets.
type labelTable struct {
	mu   sync.RWMutex
	sets map[labels]metric.MeasurementOption
}

func (t *labelTable) option(l labels) metric.MeasurementOption {
	t.mu.RLock()
	option, ok := t.sets[l]
	t.mu.RUnlock()
	if ok {
		return option
	}
	option = metric.WithAttributeSet(attribute.NewSet(l.all()...))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sets == nil {
		t.sets = map[labels]metric.MeasurementOption{}
	}
	if len(t.sets) < maxLabels {
		t.sets[l] = option
	}
	return option
}

// targetOf returns the called tool or prompt, which the conventions put into the span's name. It
// returns "" for other methods and for unknown names.
func targetOf(call *mcpkit.Call) string {
	switch call.Method() {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet:
		return call.Target()
	}
	return ""
}

func isResource(call *mcpkit.Call) bool {
	return strings.HasPrefix(call.Method(), "resources/") && call.Name() != ""
}

// networkOf distinguishes HTTP, where every request has headers, and WebSockets, which begin as an
// HTTP request, from pipes.
func networkOf(call *mcpkit.Call) network {
	switch {
	case call.Header("Sec-Websocket-Key") != "":
		return network{"tcp", "websocket"}
	case call.Header("Content-Type") != "":
		return network{"tcp", "http"}
	}
	return network{transport: "pipe"}
}

func (n network) append(set []attribute.KeyValue) []attribute.KeyValue {
	set = append(set, attribute.String("network.transport", n.transport))
	if n.protocol != "" {
		set = append(set, attribute.String("network.protocol.name", n.protocol))
	}
	return set
}

// idText returns an ID as text. The conventions do not distinguish "1" from 1.
func idText(id string) string {
	if jsonx.Kind([]byte(id)) == '"' {
		return jsonx.String([]byte(id))
	}
	return id
}

// metaCarrier reads and writes a _meta object.
type metaCarrier struct {
	get func(key string) json.RawMessage
	set protocol.Meta
}

// Get returns a string member, or "" if it is not a string.
func (c metaCarrier) Get(key string) string {
	raw := c.get(key)
	if jsonx.Kind(raw) != '"' {
		return ""
	}
	return jsonx.String(raw)
}

// Set sets a string member.
func (c metaCarrier) Set(key, value string) { c.set[key] = jsonx.AppendString(nil, value) }

// Keys is not used by the W3C propagators.
func (c metaCarrier) Keys() []string {
	keys := make([]string, 0, len(c.set))
	for k := range c.set {
		keys = append(keys, k)
	}
	return keys
}
