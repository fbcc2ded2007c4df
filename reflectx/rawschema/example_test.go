package rawschema_test

import (
	"encoding/json"
	"fmt"

	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
)

func Example() {
	schema, err := rawschema.Compile(json.RawMessage(`{"type":"object","properties":{"limit":{"type":"integer","minimum":1}},"required":["report"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema.Validate(json.RawMessage(`{"report":"sales","limit":0}`)))
	// Output:
	// 1 problem with the arguments:
	// /limit: got 0, want what the schema says: minimum: got 0, want 1
}
