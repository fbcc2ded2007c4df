package playground_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/playground"
	"github.com/mcpkit/mcpkit-go/proxy"
	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
)

type credential struct {
	User  string `json:"user,omitempty"`
	Token string `json:"token,omitempty" secret:"true" validate:"max=20" jsonschema:"pattern=^[a-z]"`
}

type vaultInput struct {
	credential
	Mode string                `json:"mode,omitempty" secret:"true" validate:"omitempty,oneof=a b" default:"a"`
	Keys map[string]string     `json:"keys,omitempty" secret:"true"`
	List []credential          `json:"list,omitempty"`
	Map  map[string]credential `json:"map,omitempty"`
	Ptr  *credential           `json:"ptr,omitempty"`
}

// No response, log, audit record or entry of the timeline has a part of a secret argument, however
// wrong the arguments are.
func TestSecretArgumentsAreRepeatedNowhere(t *testing.T) {
	var log, audit testkit.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	fail := func(context.Context, vaultInput) error { return errors.New("down") }
	inner, err := mcpkit.New(nil, mcpkit.Logger(logger), mcpkit.Lenient(mcpkit.LenientScalars, mcpkit.LenientJSON))
	require.NoError(t, err)
	require.NoError(t, inner.Add(mcpkit.NewTool("typed", fail)))
	srv, err := mcpkit.New(nil, mcpkit.Logger(logger), mcpkit.RawSchemas(rawschema.Compile))
	require.NoError(t, err)
	require.NoError(t, srv.Add(mcpkit.NewTool("typed", fail), mcpkit.NewPrompt("prompt", func(credential) (string, error) { return "", errors.New("down") }),
		mcpkit.NewTool("hand", func(_ context.Context, call *mcpkit.Call) (any, error) { return nil, call.Bind(&vaultInput{}) }).
			Input(`{"type":"object","additionalProperties":false,"properties":{"user":{"type":"string"},"token":{"type":"string","writeOnly":true,"maxLength":20,"pattern":"^[a-z]"},`+
				`"mode":{"enum":["a","b"],"format":"password"},"keys":{"type":"object","writeOnly":true,"additionalProperties":{"type":"string"}},"list":{"items":{"$ref":"#"}},`+
				`"map":{"additionalProperties":{"$ref":"#"}},"ptr":{"$ref":"#"}}}`)))
	srv.MustMount("far", proxy.MustNew(inner, proxy.Logger(logger)))
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	srv.Use(middleware.Audit(slog.NewJSONHandler(&audit, nil), middleware.AuditBegin(), middleware.AuditArguments()), middleware.Logging(logger, middleware.LogArguments(0)))
	s := newSite(t, srv, &playground.Options{Logger: logger})
	repeats := func(place, text string) {
		for line := range strings.Lines(strings.ToLower(text)) {
			assert.False(t, strings.Contains(line, "hunter2") || strings.Contains(line, "7755123"), "%s: %s", place, line)
		}
	}
	call := func(method, name, args string) string {
		_, text := s.do("POST", "mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":%q,"arguments":%s,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, method, name, args),
			"Content-Type: application/json", "Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: "+method, "Mcp-Name: "+name)
		return text
	}
	for what, args := range map[string]string{
		"wrong type":        `{"token":["hunter2"],"ptr":{"token":{"hunter2":1}},"keys":"hunter2"}`,
		"wrong nesting":     `{"ptr":"hunter2","list":{"token":"hunter2"},"map":["hunter2"]}`,
		"array for object":  `["hunter2"]`,
		"name":              `{"hunter2":"x","ptr":{"hunter2":{}},"list":[{"hunter2":null}]}`,
		"key of a map":      `{"keys":{"hunter2":1},"map":{"hunter2":1}}`,
		"unknown neighbour": `{"token":"a","tokne":"hunter2","mod":"hunter2"}`,
		"duplicate":         `{"token":"a","token":"hunter2"}`,
		"duplicate key":     `{"keys":{"hunter2":"a","hunter2":"b"}}`,
		"invalid UTF-8":     "{\"token\":\"hunter2\xff\"}",
		"not JSON":          `{"token":"hunter2"hunter2}`,
		"too long":          `{"token":"hunter2` + strings.Repeat("hunter2", 5000) + `"}`,
		"enum":              `{"mode":"hunter2"}`,
		"pattern":           `{"token":"HUNTER2"}`,
		"null":              `{"token":null,"mode":null,"keys":{"hunter2":null}}`,
		"number":            `{"token":7755123,"mode":7755123,"list":7755123,"ptr":7755123}`,
		"deep":              `{"list":[{"token":"HUNTER2"}],"map":{"a":{"token":"HUNTER2"}},"ptr":{"token":"HUNTER2"}}`,
		"text for object":   `{"list":"[{\"token\":\"HUNTER2\"}]","map":"{\"a\":{\"token\":\"HUNTER2\"}}","ptr":"{\"token\":\"HUNTER2\"}"}`,
		"right":             `{"token":"hunter2","keys":{"hunter2":"hunter2"}}`,
	} {
		for _, name := range []string{"typed", "hand", "prompt", "far_typed", "unknown"} {
			method := "tools/call"
			if name == "prompt" {
				method = "prompts/get"
			}
			repeats("response: "+what, call(method, name, args))
		}
	}
	call("tools/call", "last", "{}")
	w := s.watch(t.Context())
	w.until(ended("tools/call", "last", 0))
	require.Contains(t, audit.String(), "prompts/get")
	repeats("log", log.String())
	repeats("audit", audit.String())
	repeats("timeline", strings.ReplaceAll(w.raw.String(), `{"id"`, "\n"))
}
