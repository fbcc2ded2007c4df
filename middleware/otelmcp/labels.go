package otelmcp

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// labels are the attributes of a metric: each has few values, whatever clients send.
type labels struct {
	method, target  string
	version         protocol.Version
	transport       string
	code, errorType string // "" where there is none
}

func labelsOf(call *mcpkit.Call, outcome middleware.Outcome, err error) labels {
	l := labels{method: call.Method(), target: targetOf(call), version: call.Version(), transport: transportOf(call)}
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		l.code = strconv.Itoa(rpc.Code)
	} else if coded, ok := errors.AsType[mcpkit.CodedError](err); ok {
		l.code = strconv.Itoa(coded.ErrorCode())
	}
	switch outcome {
	case middleware.OK, middleware.InputRequired:
	case middleware.Refused:
		l.errorType = l.code
	case middleware.ToolError:
		l.errorType = "tool_error"
	case middleware.Failed:
		l.errorType = "_OTHER"
		if l.method == protocol.MethodToolsCall {
			l.errorType = "tool_error" // it becomes a result with isError
		}
	default:
		l.errorType = string(outcome)
	}
	return l
}

// start are the attributes that are known when the call begins.
func (l labels) start() []attribute.KeyValue {
	set := append(make([]attribute.KeyValue, 0, 8), attribute.String("mcp.method.name", l.method))
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
	set := append(l.start(),
		attribute.String("mcp.protocol.version", string(l.version)),
		attribute.String("network.transport", l.transport),
	)
	if l.code != "" {
		set = append(set, attribute.String("rpc.response.status_code", l.code))
	}
	if l.errorType != "" {
		set = append(set, attribute.String("error.type", l.errorType))
	}
	return set
}

// maxLabels bounds the sets that are kept; programs that register and remove tools without end make the others anew.
const maxLabels = 4096

// labelTable keeps the sets of attributes that were made.
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

// targetOf is the tool or prompt that is called, as the conventions name spans for; "" for others and for unknown ones.
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

// transportOf tells HTTP, where every request has headers, from pipes.
func transportOf(call *mcpkit.Call) string {
	if call.Header("Content-Type") != "" {
		return "tcp"
	}
	return "pipe"
}

// requestID is the id as text: the conventions do not tell "1" from 1.
func requestID(call *mcpkit.Call) string {
	id := call.RequestID()
	if jsonx.Kind([]byte(id)) == '"' {
		return jsonx.String([]byte(id))
	}
	return id
}

// metaCarrier reads from, or writes to, a _meta object.
type metaCarrier struct {
	get func(key string) json.RawMessage
	set protocol.Meta
}

// Get returns a string member; "" when it is none.
func (c metaCarrier) Get(key string) string {
	raw := c.get(key)
	if jsonx.Kind(raw) != '"' {
		return ""
	}
	return jsonx.String(raw)
}

// Set sets a string member.
func (c metaCarrier) Set(key, value string) { c.set[key] = jsonx.AppendString(nil, value) }

// Keys is not asked for by W3C propagators.
func (c metaCarrier) Keys() []string {
	keys := make([]string, 0, len(c.set))
	for k := range c.set {
		keys = append(keys, k)
	}
	return keys
}
