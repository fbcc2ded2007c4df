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

// An Injector gives a parameter that does not come from the arguments.
//
// done, which may be nil, is called when the call is over: after the function returned, panicked,
// or was not run at all because a later injector had an error. It is called even when err is not
// nil, if it is given then. The zero v stands for the zero value of the parameter's type. Injectors
// are called concurrently.
type Injector func(ctx context.Context) (v reflect.Value, done func(), err error)

// FuncOptions says what [Compile] cannot see in the function. The zero value serves functions that
// take a context, an input struct, both or nothing.
type FuncOptions struct {
	// Method is the method that the function is, bound to its value; nil for other functions. It is
	// then called with the value for its first parameter, which takes an allocation less than a
	// bound method does.
	Method *Method
	// Site says where the function is, for errors: "Notes.Search (notes.go:12)". "" means no site.
	Site string
	// Params is the params tag, "a,b?": the names of the plain parameters in order, with a '?'
	// after the optional ones.
	Params string
	// HasParams tells an empty Params tag from none.
	HasParams bool
	// Inject finds the injector for parameters of type t. Nil means there are none. context.Context
	// is always given.
	Inject func(t reflect.Type) (Injector, bool)
	// Provide says how a type becomes one that Inject knows: "give it with Provide". "" says
	// nothing.
	Provide string
	// Injectable names the types that Inject knows, for the errors that list what is possible.
	Injectable []string
	// Names are the names of the plain parameters in order where there is no params tag (the
	// variables of a URI template). Nil means that there are none; an input struct ignores them.
	Names []string
	// Descriptions describe plain parameters by name; see [ParamDescriptions].
	Descriptions map[string]string
	// Tags are the tags of plain parameters by name: rules, defaults and so on. A name that is not
	// a parameter is a mistake.
	Tags map[string]reflect.StructTag
	// Schema is written by hand, and takes the place of what the parameters say: the arguments are
	// validated by it, and at most one parameter, a map[string]any or a json.RawMessage, takes all
	// of them. Numbers in the map are float64. Nil means that the parameters say what the arguments
	// are.
	Schema *RawSchema
	// GiveSchema says how a program gives a Schema, for errors. "" says nothing.
	GiveSchema string
	// Input is handed to NewInput or NewParams.
	Input InputOptions
}

// A Func is a function that was looked at once and can be called often: where each parameter comes
// from is decided. It is safe for concurrent use.
type Func struct {
	fn       reflect.Value
	calls    reflect.Value   // fn, or the method that fn is, which takes its receiver first
	receiver []reflect.Value // of calls; none where it is fn
	site     string
	input    *Input
	schema   *RawSchema
	whole    *wholeParam // takes all arguments that fit schema; nil where none does
	decoded  []decodedParam
	injected []injectedParam
	outputs  []reflect.Type
	fails    bool // the last result is an error
	reuse    bool // the input is copied into the parameters, so that its memory serves the next call
	frames   sync.Pool
}

// A decodedParam is a parameter that comes from the arguments.
type decodedParam struct {
	index int                                     // among the parameters
	pick  func(input reflect.Value) reflect.Value // out of the decoded input
}

// A wholeParam is a parameter that takes all arguments.
type wholeParam struct {
	index int
	typ   reflect.Type
}

// An injectedParam is a parameter that does not.
type injectedParam struct {
	index  int
	typ    reflect.Type
	inject Injector // nil means the context itself
}

// A frame is the memory of one call.
type frame struct {
	all    []reflect.Value // what is called with
	in     []reflect.Value // of all: without the receiver
	input  reflect.Value   // addressable; invalid where nothing comes from the arguments
	ctx    context.Context
	ctxVal reflect.Value // of ctx, as an interface: no conversion per call
	done   []func()
}

// Input is where the arguments of f are decoded to, nil when nothing comes from the arguments.
func (f *Func) Input() *Input { return f.input }

// Outputs are the types of the results without the trailing error. The slice is the caller's.
func (f *Func) Outputs() []reflect.Type { return slices.Clone(f.outputs) }

// Call decodes args, the JSON object of the arguments, and calls the function.
//
// It returns the results without the trailing error. An *[ArgumentError] says that the arguments do
// not fit and the function was not called; any other error is an injector's or the function's own,
// as it is. When the function returns an error, the results beside it are returned too. Panics are
// the caller's to recover; what the injectors gave is released first.
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

// takeWhole validates args by the schema and gives them to the parameter that takes all of them.
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
		v.SetBytes(slices.Clone(args)) // the request's buffer is used again
	} else if err := jsonx.Unmarshal(args, v.Addr().Interface()); err != nil {
		return fmt.Errorf("reflectx: arguments that fit their schema do not decode: %w", err)
	}
	fr.in[f.whole.index] = v
	return nil
}

// CallText is Call with arguments that are texts, the values of a URI template's variables or a
// prompt's arguments: get returns the text of the named one and whether there is one.
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

// run binds the parameters and calls the function. Arguments were decoded before any injector runs,
// so that a bad argument never opens a connection.
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

// fit makes what an injector gave acceptable to reflect's Call, which would panic.
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

// release ends the call: what was given last is given back first, and nothing of this call stays in
// the pool.
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

// runAll calls the functions from the last to the first, all of them even if one panics.
func runAll(done []func()) {
	for _, d := range done {
		defer d()
	}
}

// String names the function for messages.
func (f *Func) String() string {
	return strings.TrimSpace(f.site + " " + f.fn.Type().String())
}
