package reflectx

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
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

// injecting returns an injector of handles that records when they are given and done.
func injecting(log *[]string) FuncOptions {
	return FuncOptions{
		Site:       "Notes.Search (notes.go:12)",
		Injectable: []string{"*mcpkit.Call", "*slog.Logger"},
		Inject: func(t reflect.Type) (Injector, bool) {
			if t != reflect.TypeFor[*handle]() {
				return nil, false
			}
			return func(ctx context.Context) (reflect.Value, func(), error) {
				n := "h" + string(rune('1'+len(*log)))
				*log = append(*log, n)
				return reflect.ValueOf(&handle{n}), func() { *log = append(*log, "done "+n) }, nil
			}, true
		},
	}
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
			o.Params, o.HasParams = test.params, test.params != ""
			f := compile(t, test.fn, o)
			ctx := context.WithValue(context.Background(), key{}, "from the context")
			for range 3 { // the memory of a call serves the next
				log = nil
				out, err := f.Call(ctx, json.RawMessage(test.args))
				require.NoError(t, err)
				require.Equal(t, test.want, interfaces(out))
			}
		})
	}
}

func TestCallTextUsesTheNamesOfTheTemplate(t *testing.T) {
	f := compile(t, func(ctx context.Context, id string, page int) (string, int) { return id, page }, FuncOptions{Names: []string{"id", "page"}})
	out, err := f.CallText(t.Context(), func(name string) (string, bool) {
		v, ok := map[string]string{"id": "7", "page": "2"}[name]
		return v, ok
	})
	require.NoError(t, err)
	require.Equal(t, []any{"7", 2}, interfaces(out))

	_, err = f.CallText(t.Context(), func(name string) (string, bool) { return "x", true })
	var arg *ArgumentError
	require.ErrorAs(t, err, &arg)

	// The fields of an input struct have the names of the variables.
	f = compile(t, func(in addInput) int { return in.A }, FuncOptions{Names: []string{"a"}})
	out, err = f.CallText(t.Context(), func(name string) (string, bool) { return "9", name == "a" })
	require.NoError(t, err)
	require.Equal(t, []any{9}, interfaces(out))
}

func TestCompileFindsInputAndOutputs(t *testing.T) {
	f := compile(t, func(context.Context) (int, error) { return 0, nil }, FuncOptions{})
	require.Nil(t, f.Input())
	require.Equal(t, []reflect.Type{reflect.TypeFor[int]()}, f.Outputs())
	f.Outputs()[0] = nil
	require.Equal(t, []reflect.Type{reflect.TypeFor[int]()}, f.Outputs())

	f = compile(t, func(addInput) error { return nil }, FuncOptions{Site: "Calc.Add"})
	require.Equal(t, reflect.TypeFor[addInput](), f.Input().Type())
	require.Empty(t, f.Outputs())
	require.Equal(t, "Calc.Add func(reflectx.addInput) error", f.String())

	// A bound method has no parameter for its receiver.
	f = compile(t, (&handle{"x"}).hello, FuncOptions{HasParams: true, Params: "name"})
	out, err := f.Call(t.Context(), json.RawMessage(`{"name":"y"}`))
	require.NoError(t, err)
	require.Equal(t, []any{"xy"}, interfaces(out))
}

func (h *handle) hello(name string) string { return h.name + name }

func TestCompileErrors(t *testing.T) {
	const site = "Notes.Search (notes.go:12): "
	const given = "take one of context.Context, *mcpkit.Call, *slog.Logger"
	type other struct{ X int }
	type closed struct{ x int }
	type custom interface{ Custom() }
	for _, test := range []struct {
		name   string
		fn     any
		params any // string, or nil for no tag
		names  []string
		err    []string
	}{
		{name: "no function", fn: 7, err: []string{"there is no function to call"}},
		{name: "nil function", fn: (func())(nil), err: []string{"there is no function to call"}},
		{name: "variadic", fn: func(ctx context.Context, tags ...string) {}, err: []string{"parameter 2 is variadic (...string); take a slice, []string"}},
		{name: "two structs", fn: func(addInput, *other) {}, err: []string{
			"parameters 1 (reflectx.addInput) and 2 (*reflectx.other) are both structs of arguments; there can be one, so put the fields of both into it; if one of them should not come from the arguments, " + given}},
		{name: "struct and plain", fn: func(ctx context.Context, limit int, in addInput) {}, params: "limit,in", err: []string{
			"parameter 3 (reflectx.addInput) is a struct of arguments, parameter 2 (int) a plain argument; write the one or the other: put int into the struct as a field"}},
		{name: "struct and tag", fn: func(in addInput) {}, params: "in", err: []string{
			"the params tag names plain parameters, but the arguments are the fields of reflectx.addInput; remove the tag"}},
		{name: "plain parameters without names", fn: func(ctx context.Context, a int, b string) {}, err: []string{
			"Go does not keep the names of the parameters (int, string); write the tag `params:\"name1,name2\"` with your names in the annotation block, or take one struct"}},
		{name: "one plain parameter without a name", fn: func(a int) {}, err: []string{
			"Go does not keep the names of the parameters (int); write the tag `params:\"name\"` with your names in the annotation block, or take one struct"}},
		{name: "empty tag", fn: func(a, b int) {}, params: " ", err: []string{"the names are \"\", but the parameters are (int, int); name each one, in order"}},
		{name: "too few names", fn: func(a, b int) {}, params: "a", err: []string{`the names are "a", but the parameters are (int, int); name each one, in order`}},
		{name: "too many names", fn: func(a int) {}, params: "a,b?", err: []string{`the names are "a", "b?", but the parameters are (int); name each one, in order`}},
		{name: "no names in the template", fn: func(a int) {}, names: []string{}, err: []string{`the variables of the URI are none, but the parameters are (int); name each one, in order`}},
		{name: "too many variables", fn: func(a int) {}, names: []string{"a", "b"}, err: []string{`the variables of the URI are "a", "b", but the parameters are (int); name each one, in order`}},
		{name: "variables without parameters", fn: func(ctx context.Context) {}, names: []string{"a", "b"}, err: []string{`no parameter takes the variables "a", "b" of the URI; add a parameter for each`}},
		{name: "tag without parameters", fn: func(ctx context.Context) {}, params: "a", err: []string{`the params tag names "a", but no parameter takes an argument; remove the tag`}},
		{name: "name twice", fn: func(a, b int) {}, params: "a,a?", err: []string{`the name "a" is listed twice for the parameters; give each its own`}},
		{name: "empty and invalid names", fn: func(a, b int) {}, params: ",b c", err: []string{
			`the params tag ",b c": "" is not a name; write names with commas between, and a '?' after an optional one: "a,b?"`,
			`the params tag ",b c": "b c" is not a name; write names with commas between, and a '?' after an optional one: "a,b?"`}},
		{name: "question mark first", fn: func(a int) {}, params: "?a", err: []string{
			`the params tag "?a": "?a" is not a name; write names with commas between, and a '?' after an optional one: "a,b?"`}},
		{name: "unknown interface", fn: func(r io.Reader) {}, params: "r", err: []string{
			"parameter 1 is the interface io.Reader, which neither an argument nor a provider can give; " + given}},
		{name: "unknown named interface", fn: func(c custom) {}, err: []string{
			"parameter 1 is the interface reflectx.custom, which neither an argument nor a provider can give; " + given}},
		{name: "service without a provider", fn: func(m *sync.Mutex, c closed) {}, err: []string{
			"parameter 1 is a *sync.Mutex, a struct without exported fields, which neither an argument nor a provider can give; " + given,
			"parameter 2 is a reflectx.closed, a struct without exported fields, which neither an argument nor a provider can give; " + given}},
		{name: "kinds without JSON", fn: func(a func(), b chan int, c complex64, d uintptr, e []chan int, f map[string]*complex128) {}, err: []string{
			"parameter 1 (func()): a function cannot come from JSON; " + given,
			"parameter 2 (chan int): a channel cannot come from JSON; " + given,
			"parameter 3 (complex64): a complex number cannot come from JSON; " + given,
			"parameter 4 (uintptr): an address cannot come from JSON; " + given,
			"parameter 5 ([]chan int): a channel cannot come from JSON; " + given,
			"parameter 6 (map[string]*complex128): a complex number cannot come from JSON; " + given}},
		{name: "error first", fn: func() (error, int) { return nil, 0 }, err: []string{"result 1 of 2 is the error; it must be the last"}},
		{name: "two errors", fn: func() (int, error, error) { return 0, nil, nil }, err: []string{
			"results 2 and 3 are both errors; return one, the last (errors.Join makes one of several)"}},
		{name: "error by another type", fn: func() (int, *url.Error) { return 0, nil }, err: []string{"result 2 is a *url.Error; return it as an error"}},
		{name: "everything at once", fn: func(c chan int, s ...int) (error, int) { return nil, 0 }, err: []string{
			"parameter 1 (chan int): a channel cannot come from JSON; " + given,
			"parameter 2 is variadic (...int); take a slice, []int",
			"result 1 of 2 is the error; it must be the last"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := injecting(new([]string))
			o.Names = test.names
			if tag, ok := test.params.(string); ok {
				o.Params, o.HasParams = tag, true
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
	require.ErrorContains(t, err, "parameter 1 (chan int)")
	require.Equal(t, []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[[]int]()}, f.Outputs(), "they are known despite the error")
	_, err = Compile(reflect.ValueOf(func(int, string) {}), FuncOptions{GiveNames: "Builder.Params"})
	require.EqualError(t, err, `Go does not keep the names of the parameters (int, string); name them with Builder.Params("name1,name2"), or take one struct`)
	_, err = Compile(reflect.ValueOf(func(*http.Request) {}), FuncOptions{Refuse: func(t reflect.Type) string { return "take its header" }})
	require.EqualError(t, err, "parameter 1 is a *http.Request, which a method does not get; take its header")
	_, err = Compile(reflect.ValueOf(func(http.Handler) {}), FuncOptions{})
	require.EqualError(t, err, "parameter 1 is the interface http.Handler, which neither an argument nor a provider can give; take one of context.Context")
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
	require.Equal(t, "result 1 of 2 is the error; it must be the last", errs[1].Msg)
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

	out, err := f.Call(t.Context(), json.RawMessage(`{"a":"x"}`))
	var arg *ArgumentError
	require.ErrorAs(t, err, &arg)
	require.Nil(t, out)
	require.Empty(t, log, "nothing is injected for arguments that do not fit")

	out, err = f.Call(t.Context(), json.RawMessage(`{"a":0}`))
	require.Same(t, own, err, "the error of the function is not wrapped")
	require.Equal(t, []any{7}, interfaces(out))
	require.Equal(t, []string{"h1", "done h1"}, log)

	out, err = f.Call(t.Context(), json.RawMessage(`{"a":1}`))
	require.NoError(t, err)
	require.Equal(t, []any{1}, interfaces(out))
}

func TestInjectorsAreReleased(t *testing.T) {
	var log []string
	give := func(name string, v any, err error) Injector {
		return func(context.Context) (reflect.Value, func(), error) {
			log = append(log, name)
			return reflect.ValueOf(v), func() { log = append(log, "done "+name) }, err
		}
	}
	full := errors.New("pool is empty")
	inject := func(injectors map[reflect.Type]Injector) FuncOptions {
		return FuncOptions{Site: "X.Y", Inject: func(t reflect.Type) (Injector, bool) { i, ok := injectors[t]; return i, ok }}
	}
	text, number := reflect.TypeFor[string](), reflect.TypeFor[int]()

	f := compile(t, func(s string, n int) { log = append(log, "call") }, inject(map[reflect.Type]Injector{text: give("a", "x", nil), number: give("b", 1, nil)}))
	_, err := f.Call(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "call", "done b", "done a"}, log, "done functions run in reverse order")

	log = nil
	f = compile(t, func(s string, n int) { log = append(log, "call") }, inject(map[reflect.Type]Injector{text: give("a", "x", nil), number: give("b", 1, full)}))
	_, err = f.Call(t.Context(), nil)
	require.Same(t, full, err)
	require.Equal(t, []string{"a", "b", "done b", "done a"}, log)

	log = nil
	f = compile(t, func(s string) { panic("boom") }, inject(map[reflect.Type]Injector{text: give("a", "x", nil)}))
	require.PanicsWithValue(t, "boom", func() { _, _ = f.Call(t.Context(), nil) })
	require.Equal(t, []string{"a", "done a"}, log, "done functions run although the function panics")

	log = nil
	panics := func(context.Context) (reflect.Value, func(), error) {
		return reflect.ValueOf(1), func() { panic("done boom") }, nil
	}
	f = compile(t, func(s string, n int) {}, inject(map[reflect.Type]Injector{text: give("a", "x", nil), number: panics}))
	require.PanicsWithValue(t, "done boom", func() { _, _ = f.Call(t.Context(), nil) })
	require.Equal(t, []string{"a", "done a"}, log, "the other done functions run although one panics")

	f = compile(t, func(s string) {}, inject(map[reflect.Type]Injector{text: give("a", 7, nil)}))
	_, err = f.Call(t.Context(), nil)
	require.EqualError(t, err, "X.Y: parameter 1 is a string, but its provider gave a int")

	f = compile(t, func(s string) string { return s + "!" }, inject(map[reflect.Type]Injector{text: func(context.Context) (reflect.Value, func(), error) {
		return reflect.Value{}, nil, nil
	}}))
	out, err := f.Call(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []any{"!"}, interfaces(out), "an invalid value stands for the zero value")
}

// An injector may provide a concrete value for a parameter of an interface type.
func TestInjectedInterface(t *testing.T) {
	reader := reflect.TypeFor[io.Reader]()
	f := compile(t, func(r io.Reader) string { b, _ := io.ReadAll(r); return string(b) }, FuncOptions{
		Inject: func(t reflect.Type) (Injector, bool) {
			return func(context.Context) (reflect.Value, func(), error) {
				return reflect.ValueOf(strings.NewReader("x")), nil, nil
			}, t == reader
		},
	})
	out, err := f.Call(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []any{"x"}, interfaces(out))
}

// A function may keep parts of its input: later calls do not change them.
func TestCallsShareNoMemory(t *testing.T) {
	type deep struct {
		Tags []string       `json:"tags,omitempty"`
		Map  map[string]int `json:"map,omitempty"`
		Ptr  *int           `json:"ptr,omitempty"`
	}
	var byValue []deep
	var byPointer []*deep
	var plain [][]string
	value := compile(t, func(in deep) { byValue = append(byValue, in) }, FuncOptions{})
	pointer := compile(t, func(in *deep) { byPointer = append(byPointer, in) }, FuncOptions{})
	params := compile(t, func(tags []string) { plain = append(plain, tags) }, FuncOptions{HasParams: true, Params: "tags?"})
	for _, args := range []string{`{"tags":["a","b"],"map":{"x":1},"ptr":1}`, `{"tags":["c"]}`, `{}`} {
		for _, f := range []*Func{value, pointer} {
			_, err := f.Call(t.Context(), json.RawMessage(args))
			require.NoError(t, err)
		}
	}
	for _, args := range []string{`{"tags":["a","b"]}`, `{"tags":["c"]}`, `{}`} {
		_, err := params.Call(t.Context(), json.RawMessage(args))
		require.NoError(t, err)
	}
	one := 1
	want := deep{Tags: []string{"a", "b"}, Map: map[string]int{"x": 1}, Ptr: &one}
	require.Equal(t, []deep{want, {Tags: []string{"c"}}, {}}, byValue)
	require.Equal(t, []*deep{&want, {Tags: []string{"c"}}, {}}, byPointer)
	require.Equal(t, [][]string{{"a", "b"}, {"c"}, nil}, plain)
}

func TestCallIsSafeForConcurrentUse(t *testing.T) {
	f := compile(t, func(ctx context.Context, a int, b string) (int, string) { return a, b }, FuncOptions{HasParams: true, Params: "a,b"})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 200 {
				args, _ := json.Marshal(map[string]any{"a": g, "b": strings.Repeat("x", g)})
				out, err := f.Call(t.Context(), args)
				require.NoError(t, err)
				require.Equal(t, []any{g, strings.Repeat("x", g)}, interfaces(out))
			}
		})
	}
	wg.Wait()
}

// A call within a call uses its own memory.
func TestNestedCalls(t *testing.T) {
	var f *Func
	f = compile(t, func(ctx context.Context, in addInput) int {
		if in.A > 3 {
			return in.A
		}
		args, _ := json.Marshal(map[string]int{"a": in.A + 1})
		out, err := f.Call(ctx, args)
		require.NoError(t, err)
		return out[0].Interface().(int)*10 + in.A
	}, FuncOptions{})
	out, err := f.Call(t.Context(), json.RawMessage(`{"a":1}`))
	require.NoError(t, err)
	require.Equal(t, []any{4321}, interfaces(out))
}

type calculator struct{ calls int }

//go:noinline
func (c *calculator) Add(ctx context.Context, in addInput) (int, error) {
	c.calls++
	return in.A + in.B, nil
}

// BenchmarkCall measures what reflection costs, without decoding arguments.
func BenchmarkCall(b *testing.B) {
	c := &calculator{}
	args := json.RawMessage(`{"a":1,"b":2}`)
	ctx := context.Background()
	bound := compile(b, c.Add, FuncOptions{})
	method, err := Compile(reflect.ValueOf(c).MethodByName("Add"), FuncOptions{})
	require.NoError(b, err)
	b.Run("direct", func(b *testing.B) {
		b.ReportAllocs()
		in := bound.Input()
		for b.Loop() {
			var a addInput
			if err := in.Decode(ctx, args, reflect.ValueOf(&a).Elem()); err != nil {
				b.Fatal(err)
			}
			if n, err := c.Add(ctx, a); n != 3 || err != nil {
				b.Fatal(n, err)
			}
		}
	})
	for name, f := range map[string]*Func{"func": bound, "method": method} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if out, err := f.Call(ctx, args); err != nil || out[0].Int() != 3 {
					b.Fatal(out, err)
				}
			}
		})
	}
}
