package main

import (
	"context"
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// schema2020 uses keywords of JSON Schema 2020-12 that have no Go counterpart.
const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
	`"$defs":{"address":{"$anchor":"addressDef","type":"object",` +
	`"properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
	`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},` +
	`"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},` +
	`"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
	`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},` +
	`"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

// addRaw adds a tool with a hand-written schema.
func addRaw(srv *mcpkit.Server) error {
	return srv.AddTool(protocol.Tool{
		Name:        "json_schema_2020_12_tool",
		Description: "Has an input schema with keywords of JSON Schema 2020-12.",
		InputSchema: json.RawMessage(schema2020),
	}, func(_ context.Context, call *mcpkit.Call) (any, error) {
		return "Called with " + string(call.Arguments()), nil
	})
}
