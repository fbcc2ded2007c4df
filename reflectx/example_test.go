package reflectx_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
)

// One set of tags makes the schema and the check, so the two always agree.
func ExampleNewInput() {
	type search struct {
		Query string `json:"query" validate:"min=2"`
		Limit int    `json:"limit,omitempty" default:"10" validate:"min=1,max=50"`
	}
	in, err := reflectx.NewInput("Notes.Search", reflect.TypeFor[search](), reflectx.InputOptions{})
	if err != nil {
		panic(err)
	}
	var args search
	err = in.Decode(context.Background(), json.RawMessage(`{"query":"tea"}`), reflect.ValueOf(&args).Elem())
	fmt.Println(args, err)
	err = in.Decode(context.Background(), json.RawMessage(`{"querry":"tea","limit":99}`), reflect.ValueOf(&args).Elem())
	fmt.Println(err)
	// Output:
	// {tea 10} <nil>
	// 3 problems with the arguments:
	// /querry: unknown; did you mean "query"?
	// /limit: got 99, want an integer between 1 and 50
	// /query: missing, want a string of at least 2 characters
}

func ExampleSnakeCase() {
	fmt.Println(reflectx.SnakeCase("GetURLByID"))
	// Output: get_url_by_id
}

func ExampleRawSchema() {
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
