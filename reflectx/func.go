package reflectx

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

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
	// Method is the method that the function is, bound to its value; nil for other functions. The
	// method is then called with the value as its first parameter, which saves an allocation per
	// call.
	Method *Method
	// Site is the function's name and place, for errors: "Notes.Search (notes.go:12)". "" means
	// none.
	Site string
	// Params is the params tag, "a,b?": the names of the plain parameters in order, with a '?'
	// after optional ones.
	Params string
	// HasParams distinguishes an empty params tag from none.
	HasParams bool
	// GiveNames is what names the plain parameters of a function, in errors: "ToolBuilder.Params".
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
	reuse    bool // the input is copied into the parameters, so its memory can be reused
	frames   sync.Pool
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

// A frame is the memory of one call.
type frame struct {
	all    []reflect.Value // all values passed to the call
	in     []reflect.Value // part of all: without the receiver
	input  reflect.Value   // addressable; invalid if nothing comes from the arguments
	ctx    context.Context
	ctxVal reflect.Value // ctx as a value of type context.Context, made once
	done   []func()
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
	fr := f.frame()
	defer f.release(fr)
	switch {
	case f.input != nil:
		if err := f.input.Decode(ctx, args, fr.input); err != nil {
			return nil, err
		}
	case f.schema != nil:
		if err := f.takeWhole(args, fr); err != nil {
			return nil, err
		}
	}
	return f.run(ctx, fr)
}

// takeWhole validates args by the schema and sets the parameter that receives all of them.
func (f *Func) takeWhole(args json.RawMessage, fr *frame) error {
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
	fr.in[f.whole.index] = v
	return nil
}

// CallText is like Call, for arguments that are text: the variables of a URI template or the
// arguments of a prompt. get returns the text of an argument and whether it was given.
func (f *Func) CallText(ctx context.Context, get func(name string) (string, bool)) ([]reflect.Value, error) {
	fr := f.frame()
	defer f.release(fr)
	if f.input != nil {
		if err := f.input.DecodeText(ctx, get, fr.input); err != nil {
			return nil, err
		}
	}
	return f.run(ctx, fr)
}

// run binds the parameters and calls the function. Arguments are decoded before any injector runs,
// so a bad argument does not open a connection.
func (f *Func) run(ctx context.Context, fr *frame) ([]reflect.Value, error) {
	for i := range f.decoded {
		p := &f.decoded[i]
		fr.in[p.index] = p.pick(fr.input)
	}
	for i := range f.injected {
		p := &f.injected[i]
		if p.inject == nil {
			fr.ctx = ctx
			fr.in[p.index] = fr.ctxVal
			continue
		}
		v, done, err := p.inject(ctx)
		if done != nil {
			fr.done = append(fr.done, done)
		}
		if err != nil {
			return nil, err
		}
		if fr.in[p.index], err = f.fit(p, v); err != nil {
			return nil, err
		}
	}
	out := f.calls.Call(fr.all)
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
func (f *Func) fit(p *injectedParam, v reflect.Value) (reflect.Value, error) {
	if !v.IsValid() {
		return reflect.Zero(p.typ), nil
	}
	if t := v.Type(); t != p.typ && !t.AssignableTo(p.typ) {
		return v, &Error{Site: f.site, Msg: fmt.Sprintf("parameter %d is a %s, but its provider gave a %s", p.index+1, p.typ, t)}
	}
	return v, nil
}

func (f *Func) frame() *frame {
	fr, _ := f.frames.Get().(*frame)
	if fr == nil {
		fr = &frame{all: make([]reflect.Value, f.calls.Type().NumIn())}
		fr.in = fr.all[copy(fr.all, f.receiver):]
		fr.ctxVal = reflect.ValueOf(&fr.ctx).Elem()
	}
	if f.input != nil && !fr.input.IsValid() {
		fr.input = reflect.New(f.input.Type()).Elem()
	}
	return fr
}

// release ends the call. It calls the done functions in reverse order, and clears the frame before
// it returns to the pool.
func (f *Func) release(fr *frame) {
	defer func() {
		clear(fr.in)
		clear(fr.done)
		fr.ctx = nil
		fr.done = fr.done[:0]
		switch {
		case !fr.input.IsValid():
		case f.reuse:
			fr.input.SetZero()
		default:
			fr.input = reflect.Value{}
		}
		f.frames.Put(fr)
	}()
	runAll(fr.done)
}

// runAll calls the functions in reverse order, all of them even if one panics.
func runAll(done []func()) {
	for _, d := range done {
		defer d()
	}
}

// String returns the function's name for messages.
func (f *Func) String() string {
	return strings.TrimSpace(f.site + " " + f.fn.Type().String())
}
