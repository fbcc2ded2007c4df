package main

import (
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/mcpkit"
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
	return srv.Add(mcpkit.NewTool("json_schema_2020_12_tool", func(args json.RawMessage) string {
		return "Called with " + string(args)
	}).Desc("Has an input schema with keywords of JSON Schema 2020-12.").Input(schema2020))
}
