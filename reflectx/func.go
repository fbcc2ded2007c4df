package reflectx

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
)

// An Injector provides the value of a parameter that does not come from the arguments, for one call.
// Injectors are called concurrently, and only after the arguments have been decoded, so that bad
// arguments do not open a connection.
type Injector func(ctx context.Context) (reflect.Value, error)

// FuncOptions tells [Compile] what it cannot find out from the function. The zero value works for
// functions that take a context, an input struct, both or nothing.
type FuncOptions struct {
	// Site is the function's name and place, for errors: "Notes.Search (notes.go:12)". "" means
	// none.
	Site string
	// Names are the names of the plain parameters in order, with a '?' after optional ones. Nil means
	// that nothing names them.
	Names []string
	// URI means that Names are the variables of a URI template. Fields of an input struct may then
	// take them, too. Otherwise they come from a params tag, which only names plain parameters.
	URI bool
	// Inject returns the injector for parameters of type t, and nil if they come from the arguments. Nil
	// means that nothing is injected. A context.Context needs no injector.
	Inject func(t reflect.Type) Injector
	// Give is the advice, in errors, on parameters that no argument can give: "take one of
	// context.Context, *slog.Logger".
	Give string
	// Doc is the doc comment of the function. A list in it describes plain parameters, with an item for
	// each: the name that clients see, a colon, and the text.
	//
	//	// Add adds two numbers.
	//	//
	//	//   - a: the first one
	//	//   - b: the other one, which
	//	//     may be negative
	Doc string
	// Tags are the tags of plain parameters by name: rules, defaults and so on. A name that is not
	// a parameter is an error.
	Tags map[string]reflect.StructTag
	// Input is passed to NewInput. If it has a schema written by hand, at most one parameter takes
	// arguments: a struct, a map[string]any or a json.RawMessage.
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
	fn      reflect.Value
	params  []param
	input   *Input
	doc     string
	outputs []reflect.Type
	fails   bool // the last result is an error
}

// A param is a parameter, which is either injected or a part of the decoded arguments.
type param struct {
	inject Injector
	pick   func(args reflect.Value) reflect.Value
}

// Input returns the input of f, without fields if nothing comes from the arguments or one parameter
// takes all of them.
func (f *Func) Input() *Input { return f.input }

// Doc returns the doc comment of f without the descriptions of its parameters.
func (f *Func) Doc() string { return f.doc }

// Outputs returns the types of the results without the trailing error. The caller may change the
// slice.
func (f *Func) Outputs() []reflect.Type { return slices.Clone(f.outputs) }

// Decode checks and decodes args, the JSON object of the arguments, for [Func.Call]. An
// *[ArgumentError] means that they are not valid.
func (f *Func) Decode(ctx context.Context, args json.RawMessage) (reflect.Value, error) {
	v := reflect.New(f.input.Type()).Elem()
	return v, f.input.Decode(ctx, args, v)
}

// DecodeText is like Decode, for arguments that are text: the variables of a URI template or the
// arguments of a prompt. get returns the text of an argument and whether it was given.
func (f *Func) DecodeText(ctx context.Context, get func(name string) (string, bool)) (reflect.Value, error) {
	v := reflect.New(f.input.Type()).Elem()
	return v, f.input.DecodeText(ctx, get, v)
}

// Call calls the function with arguments that Decode or DecodeText returned.
//
// It returns the results without the trailing error. The error is that of an injector or of the
// function, and is not wrapped. If the function returns an error, Call also returns its other results.
// Call does not recover panics.
func (f *Func) Call(ctx context.Context, args reflect.Value) (_ []reflect.Value, err error) {
	in := make([]reflect.Value, len(f.params))
	for i, p := range f.params {
		if p.inject == nil {
			in[i] = p.pick(args)
		} else if in[i], err = p.inject(ctx); err != nil {
			return nil, err
		}
	}
	out := f.fn.Call(in)
	if !f.fails {
		return out, nil
	}
	last := len(out) - 1
	err, _ = out[last].Interface().(error)
	return out[:last], err
}
