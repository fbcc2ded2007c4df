package reflectx

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// An Injector provides the value of a parameter that does not come from the arguments.
//
// If done is not nil, it is called when the call ends: after the function returned or panicked, or
// if it was not called because a later injector failed. It is called even if err is not nil. An
// invalid v stands for the zero value of the parameter's type. Injectors are called concurrently.
type Injector func(ctx context.Context) (v reflect.Value, done func(), err error)

// FuncOptions tells [Compile] what it cannot find out from the function. The zero value works for
// functions that take a context, an input struct, both or nothing.
type FuncOptions struct {
	// Method is the method that the function is, bound to its value; nil for other functions. It is
	// then called with the value as its first parameter, which saves an allocation per call.
	Method *Method
	// Site is the function's name and place, for errors: "Notes.Search (notes.go:12)". "" means
	// none.
	Site string
	// Params is the params tag, "a,b?": the names of the plain parameters in order, with a '?'
	// after optional ones.
	Params string
	// HasParams distinguishes an empty params tag from none.
	HasParams bool
	// GiveNames is what names the plain parameters of a function, in errors: "Builder.Params".
	// "" means the params tag of the annotation block.
	GiveNames string
	// Inject returns the injector for parameters of type t. Nil means there are none. A
	// context.Context needs no injector.
	Inject func(t reflect.Type) (Injector, bool)
	// Provide is the advice, in errors, on how to make a type known to Inject: "give it with
	// Provide". "" means none.
	Provide string
	// Refuse returns what to write in place of a parameter of type t, which is neither an argument
	// nor known to Inject, and "" for other types. Nil refuses none.
	Refuse func(t reflect.Type) string
	// Injectable lists the types that Inject knows, for errors.
	Injectable []string
	// Names are the names of the plain parameters in order if there is no params tag (the variables
	// of a URI template). Nil means none. An input struct ignores them.
	Names []string
	// Descriptions describe plain parameters by name; see [ParamDescriptions].
	Descriptions map[string]string
	// Tags are the tags of plain parameters by name: rules, defaults and so on. A name that is not
	// a parameter is an error.
	Tags map[string]reflect.StructTag
	// Schema is a schema written by hand. The arguments are validated by it instead of by the types
	// of the parameters, and at most one parameter, a map[string]any or a json.RawMessage, receives
	// all of them. Numbers in the map are float64. Nil means that the schema comes from the
	// parameters.
	Schema RawSchema
	// GiveSchema is the advice, in errors, on how to set a Schema. "" means none.
	GiveSchema string
	// Input is passed to NewInput or NewParams.
	Input InputOptions
}

// A RawSchema is a compiled JSON Schema that was written by hand. It is safe for concurrent use. See
// package rawschema.
type RawSchema interface {
	// Validate validates value, which is valid JSON, by the schema. The error is an *[ArgumentError]
	// with every violation.
	Validate(value json.RawMessage) error
}

// A Func is a compiled function: the source of each of its parameters is known. It is safe for
// concurrent use.
type Func struct {
	fn       reflect.Value
	calls    reflect.Value   // fn, or its method with the receiver as first parameter
	receiver []reflect.Value // the receiver that calls takes, if any
	site     string
	input    *Input
	schema   RawSchema   // nil if there is none
	whole    *wholeParam // takes all arguments; nil if there is none
	decoded  []decodedParam
	injected []injectedParam
	outputs  []reflect.Type
	fails    bool // the last result is an error
}

// A decodedParam is a parameter that comes from the arguments.
type decodedParam struct {
	index int                                     // index of the parameter
	pick  func(input reflect.Value) reflect.Value // returns its part of the decoded input
}

// A wholeParam is a parameter that takes all arguments.
type wholeParam struct {
	index int
	typ   reflect.Type
}

// An injectedParam is a parameter that an injector provides.
type injectedParam struct {
	index  int
	typ    reflect.Type
	inject Injector // nil means the context itself
}

// Input returns the input of f, or nil if nothing comes from the arguments.
func (f *Func) Input() *Input { return f.input }

// Outputs returns the types of the results without the trailing error. The caller may change the
// slice.
func (f *Func) Outputs() []reflect.Type { return slices.Clone(f.outputs) }

// Call decodes args, the JSON object of the arguments, and calls the function.
//
// It returns the results without the trailing error. An *[ArgumentError] means that the arguments
// are not valid and the function was not called. Any other error was returned by an injector or by
// the function, and is not wrapped. If the function returns an error, Call also returns its other
// results. Call does not recover panics, but calls the done functions of the injectors first.
func (f *Func) Call(ctx context.Context, args json.RawMessage) ([]reflect.Value, error) {
	return f.run(ctx, func(in []reflect.Value) error {
		switch {
		case f.input != nil:
			return f.decode(in, func(v reflect.Value) error { return f.input.Decode(ctx, args, v) })
		case f.schema != nil:
			return f.takeWhole(args, in)
		}
		return nil
	})
}

// CallText is like Call, for arguments that are text: the variables of a URI template or the
// arguments of a prompt. get returns the text of an argument and whether it was given.
func (f *Func) CallText(ctx context.Context, get func(name string) (string, bool)) ([]reflect.Value, error) {
	return f.run(ctx, func(in []reflect.Value) error {
		if f.input == nil {
			return nil
		}
		return f.decode(in, func(v reflect.Value) error { return f.input.DecodeText(ctx, get, v) })
	})
}

// decode decodes the arguments into a new value and sets the parameters that come from it.
func (f *Func) decode(in []reflect.Value, into func(v reflect.Value) error) error {
	v := reflect.New(f.input.Type()).Elem()
	if err := into(v); err != nil {
		return err
	}
	for _, p := range f.decoded {
		in[p.index] = p.pick(v)
	}
	return nil
}

// takeWhole validates args by the schema and sets the parameter that receives all of them.
func (f *Func) takeWhole(args json.RawMessage, in []reflect.Value) error {
	if len(args) == 0 {
		args = emptyObject
	}
	if err := f.schema.Validate(args); err != nil {
		return err
	}
	if f.whole == nil {
		return nil
	}
	v := reflect.New(f.whole.typ).Elem()
	if f.whole.typ == rawType {
		v.SetBytes(slices.Clone(args)) // the request's buffer is reused
	} else if err := jsonx.Unmarshal(args, v.Addr().Interface()); err != nil {
		return fmt.Errorf("reflectx: arguments that fit their schema do not decode: %w", err)
	}
	in[f.whole.index] = v
	return nil
}

// run sets the parameters and calls the function. Arguments are decoded before any injector runs, so
// a bad argument does not open a connection. The done functions run in reverse order, all of them
// even if one panics.
func (f *Func) run(ctx context.Context, decode func(in []reflect.Value) error) ([]reflect.Value, error) {
	all := make([]reflect.Value, f.calls.Type().NumIn())
	in := all[copy(all, f.receiver):]
	if err := decode(in); err != nil {
		return nil, err
	}
	for _, p := range f.injected {
		if p.inject == nil {
			in[p.index] = reflect.ValueOf(&ctx).Elem()
			continue
		}
		v, done, err := p.inject(ctx)
		if done != nil {
			defer done()
		}
		if err != nil {
			return nil, err
		}
		if in[p.index], err = f.fit(p, v); err != nil {
			return nil, err
		}
	}
	out := f.calls.Call(all)
	if !f.fails {
		return out, nil
	}
	last := len(out) - 1
	if e := out[last]; !e.IsNil() {
		return out[:last], e.Interface().(error)
	}
	return out[:last], nil
}

// fit checks and converts an injected value, since reflect's Call would panic.
func (f *Func) fit(p injectedParam, v reflect.Value) (reflect.Value, error) {
	if !v.IsValid() {
		return reflect.Zero(p.typ), nil
	}
	if t := v.Type(); t != p.typ && !t.AssignableTo(p.typ) {
		return v, &Error{Site: f.site, Msg: fmt.Sprintf("parameter %d is a %s, but its provider gave a %s", p.index+1, p.typ, t)}
	}
	return v, nil
}

// String returns the function's name for messages.
func (f *Func) String() string {
	return strings.TrimSpace(f.site + " " + f.fn.Type().String())
}
