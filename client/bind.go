package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Bind sets the function fields of the struct that dst points to. Each function calls a tool:
//
//	var shop struct {
//		Search func(ctx context.Context, in Query) ([]Hit, error) `mcp:"search"`
//		Ping   func(ctx context.Context) error                    `mcp:"ping"`
//	}
//	err := c.Bind(&shop)
//	hits, err := shop.Search(ctx, Query{Text: "tea"})
//
// Bind ignores fields without the tag mcp, or with mcp:"-". A function takes a context and
// optionally one input, which must encode as a JSON object. It returns the output, decoded as by
// [Call], and an error, or only an error.
//
// Bind lists the server's tools and checks that each tool exists and can be called. Arguments and
// outputs are checked with each call. The error lists all faults; Bind then sets no field.
func (c *Client) Bind(dst any) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("client: Bind(%T): want a pointer to a struct", dst)
	}
	v = v.Elem()
	tools := map[string]*protocol.Tool{}
	for t, err := range c.Tools(c.base) {
		if err != nil {
			return err
		}
		tools[t.Name] = t
	}
	var errs []error
	bound := map[int]reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, ok := f.Tag.Lookup("mcp")
		if !ok || name == "-" {
			continue
		}
		fn, err := c.bind(f, name, tools)
		if err != nil {
			errs = append(errs, fmt.Errorf("client: Bind: field %s: %w", f.Name, err))
		}
		bound[i] = fn
	}
	if errs != nil {
		return errors.Join(errs...)
	}
	if len(bound) == 0 {
		return fmt.Errorf("client: Bind: %s has no field with the tag mcp", v.Type())
	}
	for i, fn := range bound {
		v.Field(i).Set(fn)
	}
	return nil
}

var (
	typeContext = reflect.TypeFor[context.Context]()
	typeError   = reflect.TypeFor[error]()
)

// bind returns the function for one field.
func (c *Client) bind(f reflect.StructField, name string, tools map[string]*protocol.Tool) (fn reflect.Value, err error) {
	t := f.Type
	switch {
	case !f.IsExported():
		return fn, errors.New("it is not exported")
	case t.Kind() != reflect.Func || t.IsVariadic() || t.NumIn() < 1 || t.NumIn() > 2 || t.In(0) != typeContext ||
		t.NumOut() < 1 || t.NumOut() > 2 || t.Out(t.NumOut()-1) != typeError:
		return fn, fmt.Errorf("its type is %s; want func(context.Context, In) (Out, error), where In or Out may be missing", t)
	}
	tool, ok := tools[name]
	if !ok {
		return fn, fmt.Errorf("the server has no tool %q%s", name, naming.Hint(name, slices.Sorted(maps.Keys(tools))))
	}
	var in reflect.Type
	if t.NumIn() == 2 {
		in = t.In(1)
	}
	if err := c.Callable(tool); err != nil {
		return fn, fmt.Errorf("tool %q: %w", name, err)
	}
	var out reflect.Type
	if t.NumOut() == 2 {
		out = t.Out(0)
	}
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		ctx, _ := args[0].Interface().(context.Context)
		var input any
		if in != nil {
			input = args[1].Interface()
		}
		r, err := c.CallTool(ctx, name, input)
		if out == nil {
			return []reflect.Value{errorValue(err)}
		}
		value := reflect.New(out).Elem()
		if err == nil {
			err = c.output(name, r, value)
		}
		return []reflect.Value{value, errorValue(err)}
	}), nil
}

func errorValue(err error) reflect.Value {
	if err == nil {
		return reflect.Zero(typeError)
	}
	return reflect.ValueOf(&err).Elem()
}
