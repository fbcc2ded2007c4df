package reflectx

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type addInput struct {
	A int `json:"a"`
	B int `json:"b,omitempty" default:"2"`
}

// An ownJSONValue counts its bytes.
type ownJSONValue struct{ n int }

func (o *ownJSONValue) UnmarshalJSON(b []byte) error { o.n = len(b); return nil }

// A handle is a type that tests inject.
type handle struct{ name string }

// injecting returns an injector of handles that records the handles.
func injecting(log *[]string) FuncOptions {
	return FuncOptions{
		Site: "Notes.Search (notes.go:12)",
		Give: "take a *handle",
		Inject: func(t reflect.Type) Injector {
			if t != reflect.TypeFor[*handle]() {
				return nil
			}
			return func(ctx context.Context) (reflect.Value, error) {
				n := "h" + string(rune('1'+len(*log)))
				*log = append(*log, n)
				return reflect.ValueOf(&handle{n}), nil
			}
		},
	}
}

// params returns the names in a params tag, or nil for "".
func params(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

func compile(t testing.TB, fn any, o FuncOptions) *Func {
	t.Helper()
	f, err := Compile(reflect.ValueOf(fn), o)
	require.NoError(t, err)
	return f
}

func interfaces(values []reflect.Value) []any {
	var list []any
	for _, v := range values {
		list = append(list, v.Interface())
	}
	return list
}

type key struct{}

func TestCallBindsParametersByType(t *testing.T) {
	day := time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name   string
		fn     any
		params string
		args   string
		want   []any
	}{
		{"nothing", func() {}, "", `{}`, nil},
		{"only a result", func() string { return "x" }, "", `{}`, []any{"x"}},
		{"struct", func(in addInput) int { return in.A + in.B }, "", `{"a":1}`, []any{3}},
		{"pointer to struct", func(in *addInput) int { return in.A + in.B }, "", `{"a":1,"b":5}`, []any{6}},
		{"empty struct", func(struct{}) int { return 1 }, "", `{}`, []any{1}},
		{"context last", func(in addInput, ctx context.Context) any { return ctx.Value(key{}) }, "", `{"a":1}`, []any{"from the context"}},
		{"injected between", func(h *handle, in addInput, ctx context.Context, g *handle) string { return h.name + g.name }, "", `{"a":1}`, []any{"h1h2"}},
		{"plain", func(a, b float64) float64 { return a - b }, "a,b", `{"b":1.5,"a":2}`, []any{0.5}},
		{"plain with context between", func(a int, ctx context.Context, b string) (string, int) { return b, a }, " a , b ", `{"a":1,"b":"x"}`, []any{"x", 1}},
		{"optional and absent", func(a int, b *int, c string) (bool, string) { return b == nil, c }, "a,b?,c?", `{"a":1}`, []any{true, ""}},
		{"optional and there", func(a int, b *int, c string) (int, string) { return *b, c }, "a,b?,c?", `{"a":1,"b":2,"c":"x"}`, []any{2, "x"}},
		{"a pointer is optional", func(a *int) bool { return a == nil }, "a", `{}`, []any{true}},
		{"slice and map", func(a []string, b map[string]int) (int, int) { return len(a), b["x"] }, "a,b", `{"a":["1","2"],"b":{"x":3}}`, []any{2, 3}},
		{"any", func(a any) any { return a }, "a", `{"a":"x"}`, []any{"x"}},
		{"time is plain", func(when time.Time) time.Time { return when }, "when", `{"when":"2026-07-28T00:00:00Z"}`, []any{day}},
		{"url is plain", func(u *url.URL) string { return u.Host }, "u", `{"u":"https://example.com/x"}`, []any{"example.com"}},
		{"raw is plain", func(raw json.RawMessage) string { return string(raw) }, "raw", `{"raw":[1,2]}`, []any{"[1,2]"}},
		{"what reads its JSON itself is plain", func(a *ownJSONValue) int { return a.n }, "a", `{"a":[1,2,3]}`, []any{7}},
		{"several results and an error", func(in addInput) (int, string, error) { return in.A, "x", nil }, "", `{"a":1}`, []any{1, "x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log []string
			o := injecting(&log)
			o.Names = params(test.params)
			f := compile(t, test.fn, o)
			ctx := context.WithValue(context.Background(), key{}, "from the context")
			for range 3 { // the memory of a call serves the next
				log = nil
				out, err := invoke(ctx, f, json.RawMessage(test.args))
				require.NoError(t, err)
				require.Equal(t, test.want, interfaces(out))
			}
		})
	}
}

func TestDecodeTextUsesTheNamesOfTheTemplate(t *testing.T) {
	f := compile(t, func(ctx context.Context, id string, page int) (string, int) { return id, page }, FuncOptions{Names: []string{"id", "page"}, URI: true})
	args, err := f.DecodeText(t.Context(), func(name string) (string, bool) {
		v, ok := map[string]string{"id": "7", "page": "2"}[name]
		return v, ok
	})
	require.NoError(t, err)
	require.Equal(t, []any{"7", 2}, []any{args.Field(0).Interface(), args.Field(1).Interface()})

	_, err = f.DecodeText(t.Context(), func(name string) (string, bool) { return "x", true })
	var arg *ArgumentError
	require.ErrorAs(t, err, &arg)

	// The fields of an input struct have the names of the variables.
	f = compile(t, func(in addInput) int { return in.A }, FuncOptions{Names: []string{"a"}, URI: true})
	args, err = f.DecodeText(t.Context(), func(name string) (string, bool) { return "9", name == "a" })
	require.NoError(t, err)
	require.Equal(t, addInput{A: 9, B: 2}, args.Interface())
}

// invoke calls f with the arguments.
func invoke(ctx context.Context, f *Func, args json.RawMessage) ([]reflect.Value, error) {
	v, err := f.Decode(ctx, args)
	if err != nil {
		return nil, err
	}
	return f.Call(ctx, v)
}

func TestCompileFindsInputAndOutputs(t *testing.T) {
	f := compile(t, func(context.Context) (int, error) { return 0, nil }, FuncOptions{})
	require.Equal(t, `{"type":"object","properties":{},"additionalProperties":false}`, string(f.Input().Schema()))
	require.Equal(t, []reflect.Type{reflect.TypeFor[int]()}, f.Outputs())
	f.Outputs()[0] = nil
	require.Equal(t, []reflect.Type{reflect.TypeFor[int]()}, f.Outputs())

	f = compile(t, func(addInput) error { return nil }, FuncOptions{})
	require.Equal(t, reflect.TypeFor[addInput](), f.Input().Type())
	require.Empty(t, f.Outputs())

	// A bound method has no parameter for its receiver.
	f = compile(t, (&handle{"x"}).hello, FuncOptions{Names: []string{"name"}})
	out, err := invoke(t.Context(), f, json.RawMessage(`{"name":"y"}`))
	require.NoError(t, err)
	require.Equal(t, []any{"xy"}, interfaces(out))
}

func (h *handle) hello(name string) string { return h.name + name }

func TestCompileErrors(t *testing.T) {
	const site = "Notes.Search (notes.go:12): "
	const given = "which no argument can give; take a *handle"
	type other struct{ X int }
	type closed struct{ x int }
	type custom interface{ Custom() }
	for _, test := range []struct {
		name   string
		fn     any
		params string   // the params tag
		uri    []string // the variables of a URI
		err    []string
	}{
		{name: "no function", fn: 7, err: []string{"there is no function to call"}},
		{name: "nil function", fn: (func())(nil), err: []string{"there is no function to call"}},
		{name: "variadic", fn: func(ctx context.Context, tags ...string) {}, err: []string{"parameter 2 is variadic (...string); take a slice, []string, or hide the method with mcpkit.Skip or mcpkit.OptIn"}},
		{name: "two structs", fn: func(addInput, *other) {}, err: []string{
			"parameters 1 (reflectx.addInput) and 2 (*reflectx.other) both take all arguments; there can be one, so put the fields of both into it; if one of them should not come from the arguments, take a *handle"}},
		{name: "struct and plain", fn: func(ctx context.Context, limit int, in addInput) {}, params: "limit,in", err: []string{
			"parameter 3 (reflectx.addInput) is a struct of arguments, parameter 2 (int) a plain argument; write the one or the other: put int into the struct as a field"}},
		{name: "struct and tag", fn: func(in addInput) {}, params: "in", err: []string{
			"names and rules are for plain parameters, but the arguments are the fields of reflectx.addInput; write them in json and validate tags of the fields"}},
		{name: "plain parameters without names", fn: func(ctx context.Context, a int, b string) {}, err: []string{
			`Go does not keep the names of the parameters (int, string); write your names into the tag params or Builder.Params, such as "a,b?", or take one struct; if the method is not for clients, hide it with mcpkit.Skip or mcpkit.OptIn`}},
		{name: "empty tag", fn: func(a, b int) {}, params: " ", err: []string{"the names are \"\", but the parameters are (int, int); name each one, in order"}},
		{name: "too few names", fn: func(a, b int) {}, params: "a", err: []string{`the names are "a", but the parameters are (int, int); name each one, in order`}},
		{name: "too many names", fn: func(a int) {}, params: "a,b?", err: []string{`the names are "a", "b?", but the parameters are (int); name each one, in order`}},
		{name: "no names in the template", fn: func(a int) {}, uri: []string{}, err: []string{`the variables of the URI are none, but the parameters are (int); name each one, in order`}},
		{name: "too many variables", fn: func(a int) {}, uri: []string{"a", "b"}, err: []string{`the variables of the URI are "a", "b", but the parameters are (int); name each one, in order`}},
		{name: "variables without parameters", fn: func(ctx context.Context) {}, uri: []string{"a", "b"}, err: []string{`no parameter takes the arguments "a", "b"; add a parameter for each`}},
		{name: "tag without parameters", fn: func(ctx context.Context) {}, params: "a", err: []string{`no parameter takes the arguments "a"; add a parameter for each`}},
		{name: "name twice", fn: func(a, b int) {}, params: "a,a?", err: []string{`the name "a" is listed twice for the parameters; give each its own`}},
		{name: "empty and invalid names", fn: func(a, b int) {}, params: ",b c", err: []string{
			`"" is not a name of a parameter; write names with commas between, and a '?' after an optional one: "a,b?"`,
			`"b c" is not a name of a parameter; write names with commas between, and a '?' after an optional one: "a,b?"`}},
		{name: "question mark first", fn: func(a int) {}, params: "?a", err: []string{
			`"?a" is not a name of a parameter; write names with commas between, and a '?' after an optional one: "a,b?"`}},
		{name: "interfaces", fn: func(r io.Reader, c custom) {}, params: "r,c", err: []string{
			"parameter 1 is a io.Reader, " + given, "parameter 2 is a reflectx.custom, " + given}},
		{name: "services without a provider", fn: func(m *sync.Mutex, c closed) {}, err: []string{
			"parameter 1 is a *sync.Mutex, " + given, "parameter 2 is a reflectx.closed, " + given}},
		{name: "kinds without JSON", fn: func(a func(), b chan int, c complex64, d uintptr) {}, err: []string{
			"parameter 1 is a func(), " + given, "parameter 2 is a chan int, " + given, "parameter 3 is a complex64, " + given, "parameter 4 is a uintptr, " + given}},
		{name: "given as a pointer", fn: func(handle) {}, err: []string{"parameter 1 is a reflectx.handle, which is given as a pointer; write *reflectx.handle"}},
		{name: "error first", fn: func() (error, int) { return nil, 0 }, err: []string{"result 1 of 2 has the type error; return one error, as the last result and with the type error"}},
		{name: "two errors", fn: func() (int, error, error) { return 0, nil, nil }, err: []string{
			"result 2 of 3 has the type error; return one error, as the last result and with the type error"}},
		{name: "error by another type", fn: func() (int, *url.Error) { return 0, nil }, err: []string{"result 2 of 2 has the type *url.Error; return one error, as the last result and with the type error"}},
		{name: "everything at once", fn: func(c chan int, s ...int) (error, int) { return nil, 0 }, err: []string{
			"parameter 1 is a chan int, " + given,
			"parameter 2 is variadic (...int); take a slice, []int, or hide the method with mcpkit.Skip or mcpkit.OptIn",
			"result 1 of 2 has the type error; return one error, as the last result and with the type error"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := injecting(new([]string))
			o.Names = params(test.params)
			if test.uri != nil {
				o.Names, o.URI = test.uri, true
			}
			_, err := Compile(reflect.ValueOf(test.fn), o)
			var errs Errors
			require.ErrorAs(t, err, &errs)
			require.Equal(t, site+strings.Join(test.err, "\n"+site), err.Error())
		})
	}
	f, err := Compile(reflect.Value{}, FuncOptions{})
	require.EqualError(t, err, "there is no function to call")
	require.Empty(t, f.Outputs())
	f, err = Compile(reflect.ValueOf(func(chan int) (string, []int, error) { return "", nil, nil }), FuncOptions{})
	require.ErrorContains(t, err, "parameter 1 is a chan int")
	require.Equal(t, []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[[]int]()}, f.Outputs(), "they are known despite the error")
}

// Mistakes of the input are reported with the others, with their own site.
func TestCompileReturnsErrorsOfTheInput(t *testing.T) {
	type bad struct {
		A int `json:"a" validate:"nonsense"`
	}
	f, err := Compile(reflect.ValueOf(func(bad) (error, int) { return nil, 0 }), FuncOptions{Site: "Notes.Search"})
	require.Empty(t, f.Outputs())
	var errs Errors
	require.ErrorAs(t, err, &errs)
	require.Len(t, errs, 2)
	require.Contains(t, errs[0].Site, "Notes.Search")
	require.Contains(t, errs[0].Error(), "nonsense")
	require.Equal(t, "result 1 of 2 has the type error; return one error, as the last result and with the type error", errs[1].Msg)
}

func TestCallErrors(t *testing.T) {
	own := errors.New("own")
	var log []string
	f := compile(t, func(h *handle, in addInput) (int, error) {
		if in.A == 0 {
			return 7, own
		}
		return in.A, nil
	}, injecting(&log))

	out, err := invoke(t.Context(), f, json.RawMessage(`{"a":"x"}`))
	var arg *ArgumentError
	require.ErrorAs(t, err, &arg)
	require.Nil(t, out)
	require.Empty(t, log, "nothing is injected for arguments that do not fit")

	out, err = invoke(t.Context(), f, json.RawMessage(`{"a":0}`))
	require.Same(t, own, err, "the error of the function is not wrapped")
	require.Equal(t, []any{7}, interfaces(out))
	require.Equal(t, []string{"h1"}, log)

	out, err = invoke(t.Context(), f, json.RawMessage(`{"a":1}`))
	require.NoError(t, err)
	require.Equal(t, []any{1}, interfaces(out))
}

func TestInjectedValues(t *testing.T) {
	f := compile(t, func(r io.Reader, n int) string { b, _ := io.ReadAll(r); return string(b) }, FuncOptions{
		Inject: func(t reflect.Type) Injector {
			return func(ctx context.Context) (reflect.Value, error) {
				if t.Kind() == reflect.Int {
					return reflect.ValueOf(1), ctx.Err()
				}
				return reflect.ValueOf(strings.NewReader("x")), nil // a concrete value for an interface
			}
		},
	})
	out, err := invoke(t.Context(), f, nil)
	require.NoError(t, err)
	require.Equal(t, []any{"x"}, interfaces(out))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = invoke(ctx, f, nil)
	require.Same(t, context.Canceled, err, "the error of an injector is not wrapped")
}

// A function may keep its input: later calls do not change it.
func TestCallsShareNoMemory(t *testing.T) {
	var structs []*addInput
	var lists [][]string
	pointer := compile(t, func(in *addInput) { structs = append(structs, in) }, FuncOptions{})
	plain := compile(t, func(tags []string) { lists = append(lists, tags) }, FuncOptions{Names: []string{"tags?"}})
	for _, a := range []string{"1", "2"} {
		_, err := invoke(t.Context(), pointer, json.RawMessage(`{"a":`+a+`}`))
		require.NoError(t, err)
		_, err = invoke(t.Context(), plain, json.RawMessage(`{"tags":["`+a+`"]}`))
		require.NoError(t, err)
	}
	require.Equal(t, []*addInput{{A: 1, B: 2}, {A: 2, B: 2}}, structs)
	require.Equal(t, [][]string{{"1"}, {"2"}}, lists)
}
