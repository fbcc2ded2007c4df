package mcpkit

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// Handle adds a method of the program to a Server, for clients of all versions. The params are
// decoded into Req, and Resp becomes the result, an object. Errors become protocol errors.
//
// If Req is a struct, its tags are enforced as in tool arguments, and unknown members other than
// _meta are refused. Any other Req, or one with a method UnmarshalJSON, gets all params. The error
// has all faults of Req's tags. The name should have a prefix, such as "example.com/reindex": names
// without a dot before the slash belong to the protocol.
func Handle[Req, Resp any](s *Server, method string, fn func(ctx context.Context, req Req) (Resp, error)) error {
	row, err := NewMethod(method, fn).row(s, nil)
	if err == nil {
		err = s.change(func(own *catalog) error { return own.addMethods(row) })
	}
	return prefixed("mcpkit: Handle: ", err)
}

// paramsDecoder returns the decoder for the params of the method.
func paramsDecoder[Req any](s *Server, method string) (func(context.Context, *jsonrpc.Request, *Req) error, error) {
	t := reflect.TypeFor[Req]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	p := reflect.PointerTo(t)
	if t.Kind() != reflect.Struct || p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return decodeParams, nil
	}
	o := s.inputOptions()
	o.What = "params"
	in, err := reflectx.NewInput(fmt.Sprintf("mcpkit: Handle(%q)", method), t, o)
	if err != nil {
		return nil, err
	}
	meta := slices.ContainsFunc(in.Fields(), func(f reflectx.Field) bool { return f.Name == "_meta" })
	return func(ctx context.Context, req *jsonrpc.Request, v *Req) error {
		params := req.Params
		if !meta && jsonx.Member(params, "_meta") != nil {
			params = jsonx.AppendWithout(nil, params, "_meta")
		}
		to := reflect.ValueOf(v).Elem()
		for to.Kind() == reflect.Pointer {
			to.Set(reflect.New(to.Type().Elem()))
			to = to.Elem()
		}
		return in.Decode(ctx, params, to)
	}, nil
}
