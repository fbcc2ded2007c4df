package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

var quiet = slog.New(slog.DiscardHandler)

// newFixture returns the server of the exchanges. "whole" puts lists on one page, "exposed" shows
// all errors, "repair" is lenient, "step-up" shows what scopes are missing.
func newFixture(t *testing.T, options []string) *mcpkit.Server {
	opts := []mcpkit.Option{mcpkit.RawSchemas(rawschema.Compile),
		mcpkit.With(&Inputs{}), mcpkit.With(&Results{}), mcpkit.With(&Questions{}), mcpkit.With(&Library{}),
		mcpkit.Name("fixture", "1.2.3"), mcpkit.Logger(quiet), mcpkit.Authenticated(), mcpkit.TrustLocal("notes:read"),
		mcpkit.MaxResultBytes(1000), mcpkit.QuestionTimeout(65 * time.Second), mcpkit.Provide(func(context.Context) (Clock, error) { return Clock{}, nil }),
	}
	if !slices.Contains(options, "whole") {
		opts = append(opts, mcpkit.PageSize(4))
	}
	if slices.Contains(options, "exposed") {
		opts = append(opts, mcpkit.ExposeErrors())
	}
	if slices.Contains(options, "repair") {
		opts = append(opts, mcpkit.Lenient(mcpkit.LenientScalars, mcpkit.LenientLists, mcpkit.LenientJSON))
	}
	if slices.Contains(options, "step-up") {
		opts = append(opts, mcpkit.StepUp())
	}
	work := &Work{}
	srv, err := mcpkit.New(work, opts...)
	require.NoError(t, err)
	work.server = srv
	raw := func(_ context.Context, call *mcpkit.Call) (any, error) { return call.Arguments(), nil }
	require.NoError(t, srv.Add(mcpkit.NewTool("raw", raw).Desc("Has schemas that are written by hand.").Input(rawInput)))
	require.NoError(t, mcpkit.Handle(srv, "example.com/echo", func(_ context.Context, in Line) (Line, error) { return in, nil }))
	if slices.Contains(options, "mounted") {
		work.child, err = mcpkit.New(&Child{}, mcpkit.Logger(quiet), mcpkit.Authenticated())
		require.NoError(t, err)
		require.NoError(t, srv.Mount("child", work.child))
	}
	return srv
}

const rawInput = `{"type":"object","properties":{"name":{"type":"string","minLength":2},"count":{"type":"integer","default":3},"kind":{"oneOf":[{"const":"a"},{"const":"b"}]},` +
	`"list":{"type":"array","items":{"$ref":"#/$defs/item"}}},"required":["name"],"dependentRequired":{"count":["kind"]},"$defs":{"item":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}}}`

// Child is mounted in the fixture.
type Child struct {
	_ struct {
		Page   mcpkit.Resource `uri:"child://page"`
		Pages  mcpkit.Resource `uri:"child://pages/{n}"`
		Greet  mcpkit.Prompt   `params:"name"`
		Locked mcpkit.Tool     `scopes:"notes:write"`
	}
}

// Pay asks before it pays.
func (*Child) Pay(ctx context.Context, call *mcpkit.Call) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Pay?")
	return fmt.Sprint(call.Name(), " ", call.Target(), " ", ok), err
}

// Page is a page.
func (*Child) Page() string { return "page" }

// Pages are pages.
func (*Child) Pages(n int) string { return fmt.Sprint("page ", n) }

// Greet greets.
func (*Child) Greet(name string) string { return "Hello, " + name + "." }

// Locked needs a scope.
func (*Child) Locked() string { return "unlocked" }

// transportOptions are options of all transports.
type transportOptions struct {
	stdio      stdio.Options
	websocket  websocket.Options
	streamable streamable.Options
	sse        sse.Options
}

// optionsOf returns the options of transports: "small" limits, and those that are named like a field.
func optionsOf(options []string) transportOptions {
	o := transportOptions{stdio.Options{Logger: quiet}, websocket.Options{Logger: quiet}, streamable.Options{Logger: quiet}, sse.Options{Logger: quiet}}
	if slices.Contains(options, "small") {
		o.stdio.MaxMessageBytes, o.stdio.MaxInFlight = 10_000, 2
		o.websocket.MaxMessageBytes, o.websocket.MaxInFlight = 10_000, 2
		o.streamable.MaxBodyBytes, o.streamable.MaxSessions, o.streamable.MaxSubscriptions = 10_000, 1, 1
	}
	if slices.Contains(options, "any-framing") {
		o.stdio.Framing = stdio.AnyFraming
	}
	o.streamable.Stateless, o.streamable.JSONOnly = slices.Contains(options, "stateless"), slices.Contains(options, "json-only")
	return o
}

const address = "127.0.0.1:8080"

// atLoopback serves as if at [address], and authenticates callers by the fields X-User and X-Scopes,
// which no real server should do.
func atLoopback(next http.Handler) http.Handler {
	local := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), http.LocalAddrContextKey, local)
		if scopes := r.Header.Get("X-Scopes"); scopes != "" {
			ctx = oauth.NewContext(ctx, &oauth.Principal{Subject: r.Header.Get("X-User"), Scopes: strings.Fields(scopes)})
		}
		r = r.WithContext(ctx)
		r.RemoteAddr = "127.0.0.1:50000"
		next.ServeHTTP(w, r)
	})
}

// Inputs takes arguments of every kind.
type Inputs struct {
	_ struct {
		Add    mcpkit.Tool `params:"a,b,c?" rules:"a:min=0;c:oneof=up down" hints:"readonly,idempotent"`
		Fields mcpkit.Tool `params:"numbers"`
		Where  mcpkit.Tool `desc:"Its arguments are mirrored into header fields."`
	}
}

// Level says how loud.
type Level string

// The levels.
const (
	Low  Level = "low"  // hardly audible
	High Level = "high" // loud
)

// Hex is a number in hexadecimal digits.
type Hex uint32

// MarshalText returns the digits.
func (h Hex) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%x", uint32(h)), nil }

// UnmarshalText reads the digits.
func (h *Hex) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%x", (*uint32)(h))
	return err
}

// Point is written as an array.
type Point struct{ X, Y int }

// MarshalJSON writes [x,y].
func (p Point) MarshalJSON() ([]byte, error) { return json.Marshal([2]int{p.X, p.Y}) }

// UnmarshalJSON reads [x,y].
func (p *Point) UnmarshalJSON(text []byte) error {
	var a [2]int
	err := json.Unmarshal(text, &a)
	p.X, p.Y = a[0], a[1]
	return err
}

// Common is embedded.
type Common struct {
	// Tenant owns it.
	Tenant string `json:"tenant,omitempty"`
	Name   string `json:"name,omitempty"`
}

// Tree is recursive.
type Tree struct {
	Name string  `json:"name" validate:"required,min=1"`
	Kids []*Tree `json:"kids,omitempty" validate:"max=2"`
}

// Page is generic.
type Page[T any] struct {
	Items []T `json:"items"`
	Next  *T  `json:"next"`
}

// Kinds has a field of every kind.
type Kinds struct {
	Any      any               `json:"any,omitempty" desc:"Anything."`
	Raw      json.RawMessage   `json:"raw,omitempty"`
	Bool     bool              `json:"bool,omitempty"`
	Int      int               `json:"int,omitempty"`
	Int8     int8              `json:"int8,omitempty"`
	Int64    int64             `json:"int64,omitempty"`
	Uint     uint              `json:"uint,omitempty"`
	Uint16   uint16            `json:"uint16,omitempty"`
	Uint64   uint64            `json:"uint64,omitempty"`
	Float    float64           `json:"float,omitempty"`
	Float32  float32           `json:"float32,omitempty"`
	String   string            `json:"string,omitempty" title:"A string" example:"green tea"`
	Pointer  **string          `json:"pointer"`
	Bytes    []byte            `json:"bytes,omitempty"`
	Four     [4]byte           `json:"four,omitzero"`
	Time     time.Time         `json:"time,omitzero"`
	Duration time.Duration     `json:"duration" default:"1h30m"`
	URL      *url.URL          `json:"url"`
	Addr     netip.Addr        `json:"addr,omitzero"`
	Hex      Hex               `json:"hex,omitempty"`
	Point    *Point            `json:"point"`
	Big      *big.Int          `json:"big"`
	Number   json.Number       `json:"number,omitempty"`
	Pair     [2]int            `json:"pair,omitzero"`
	Matrix   [][]float64       `json:"matrix,omitempty"`
	Pointers []*int            `json:"pointers,omitempty"`
	Map      map[string]string `json:"map,omitempty"`
	IP       net.IP            `json:"ip,omitempty"`
	UintMap  map[uint16]Level  `json:"uintMap,omitempty"`
	IntMap   map[int]bool      `json:"intMap,omitempty"`
	Level    Level             `json:"level,omitempty"`
	Loud     Level             `json:"loud,omitempty" validate:"enum"`
	Levels   []Level           `json:"levels,omitempty"`
	Page     *Page[Common]     `json:"page"`
	Tree     *Tree             `json:"tree"`
	Trees    map[string]Tree   `json:"trees,omitempty"`
	Nested   struct {
		A int `json:"a"`
		B struct {
			C string `json:"c" default:"sea"`
		} `json:"b,omitzero"`
	} `json:"nested,omitzero"`
	// Old was used once.
	//
	// Deprecated: use String.
	Old     string `json:"old,omitempty"`
	Pattern string `json:"pattern,omitempty" jsonschema:"pattern=^a\\,b$,minLength=3,title=Pat"`
	Step    int    `json:"step,omitempty" jsonschema:"minimum=0,maximum=10,multipleOf=5"`
	Common
	Hidden   string `json:"-"`
	Untagged string `validate:"omitempty"`
}

// Everything returns its arguments, which are of every kind.
func (*Inputs) Everything(in Kinds) Kinds { return in }

// Defaults have a default of each kind.
type Defaults struct {
	Text     string         `json:"text" default:"tea"`
	Number   int            `json:"number" default:"10" validate:"min=1,max=50"`
	Float    float64        `json:"float" default:"0.5"`
	Truth    bool           `json:"truth" default:"true"`
	List     []string       `json:"list" default:"[\"a\",\"b\"]"`
	Map      map[string]int `json:"map" default:"{\"a\":1}"`
	Pointer  *int           `json:"pointer" default:"7"`
	Duration time.Duration  `json:"duration" default:"5s"`
	Time     time.Time      `json:"time" default:"2020-01-02T03:04:05Z"`
	Level    Level          `json:"level" default:"low" validate:"enum"`
	Tree     Tree           `json:"tree" default:"{\"name\":\"root\"}"`
	Inner    []struct {
		Size int `json:"size" default:"3"`
	} `json:"inner,omitempty"`
}

// Default returns its arguments, of which each has a default.
func (*Inputs) Default(in Defaults) Defaults { return in }

// Line is one line of an order.
type Line struct {
	SKU   string `json:"sku" validate:"required,len=4,alphanum"`
	Count int    `json:"count" validate:"required,min=1,max=99"`
}

// Rules has the common rules.
type Rules struct {
	Name     string            `json:"name" validate:"required,min=2,max=10"`
	Mail     string            `json:"mail,omitempty" validate:"email"`
	Site     string            `json:"site,omitempty" validate:"url"`
	ID       string            `json:"id,omitempty" validate:"uuid"`
	Code     string            `json:"code,omitempty" validate:"alphanum,len=3"`
	Color    string            `json:"color,omitempty" validate:"oneof=red green 'light blue'"`
	Size     int               `json:"size,omitempty" validate:"oneof=1 2 3"`
	Age      int               `json:"age,omitempty" validate:"gte=0,lte=130"`
	Ratio    float64           `json:"ratio,omitempty" validate:"gt=0,lt=1"`
	Host     string            `json:"host,omitempty" validate:"hostname"`
	IP       string            `json:"ip,omitempty" validate:"ip"`
	Prefix   string            `json:"prefix,omitempty" validate:"startswith=ab,endswith=yz,contains=m"`
	Day      string            `json:"day,omitempty" validate:"datetime=2006-01-02"`
	Not      string            `json:"not,omitempty" validate:"ne=no,excludes=x"`
	Either   string            `json:"either,omitempty" validate:"email|uuid"`
	Tags     []string          `json:"tags,omitempty" validate:"min=1,max=3,unique,dive,min=2"`
	Limits   map[string]int    `json:"limits,omitempty" validate:"max=2,dive,keys,min=2,endkeys,max=5"`
	Lines    []Line            `json:"lines,omitempty" validate:"min=1,dive"`
	Nested   *Line             `json:"nested"`
	Wait     time.Duration     `json:"wait,omitempty" validate:"min=1s,max=1h"`
	Secret   string            `json:"secret,omitempty" validate:"min=8" secret:"true"`
	Labels   map[string]string `json:"labels,omitempty" validate:"dive,keys,alpha,endkeys,required"`
	Optional *string           `json:"optional" validate:"omitempty,min=3"`
}

// Check enforces rules.
func (*Inputs) Check(in Rules) string { return "all is well, " + in.Name }

// Range has rules about several fields.
type Range struct {
	From     int    `json:"from"`
	To       int    `json:"to" validate:"gtefield=From"`
	Password string `json:"password,omitempty"`
	Again    string `json:"again,omitempty" validate:"eqfield=Password"`
	Card     string `json:"card,omitempty" validate:"required_without=Cash"`
	Cash     string `json:"cash,omitempty" validate:"excluded_with=Card"`
	Kind     string `json:"kind,omitempty" validate:"oneof=gift loan"`
	Until    string `json:"until,omitempty" validate:"required_if=Kind loan"`
	Both     string `json:"both,omitempty" validate:"required_with=Again"`
}

// Compare enforces rules about several fields.
func (*Inputs) Compare(in Range) string { return fmt.Sprint(in.From, "..", in.To) }

// Add adds two numbers.
func (*Inputs) Add(a, b float64, c string) (float64, error) { return a + b, nil }

// Where returns the arguments and the header fields that mirror them.
func (*Inputs) Where(call *mcpkit.Call, in struct {
	Region string `json:"region,omitempty" header:"Region"`
	Count  int    `json:"count,omitempty" header:"Count"`
}) string {
	return fmt.Sprint(in.Region, " ", in.Count, " ", call.Header("Mcp-Param-Region"))
}

// Clock is provided.
type Clock struct{}

// Injected takes what is not an argument.
func (*Inputs) Injected(ctx context.Context, call *mcpkit.Call, log *slog.Logger, header http.Header, clock Clock) map[string]any {
	return map[string]any{
		"method": call.Method(), "name": call.Name(), "version": call.Version(), "id": call.RequestID(), "client": call.ClientInfo(),
		"meta": call.Meta("example.com/trace"), "round": call.Round(), "principal": call.Principal() != nil,
	}
}

// Fields takes a map.
func (*Inputs) Fields(numbers map[string]int) int { return len(numbers) }

// Results returns results of every kind.
type Results struct {
	_ struct {
		Readonly mcpkit.Tool `hints:"readonly,closed-world" title:"Only reads" icon:"https://example.com/i.png" meta:"example.com/team=search" tags:"beta"`
		Cached   mcpkit.Tool `hints:"readonly" cache:"60s,public"`
		Unlisted mcpkit.Tool `hidden:"true"`
	}
	cached int
}

// Readonly has hints, an icon and metadata.
func (*Results) Readonly() string { return "read" }

// Cached counts how often it ran.
func (r *Results) Cached() int { r.cached++; return r.cached }

// Unlisted is not in the list.
func (*Results) Unlisted() string { return "found" }

// Sum is a result.
type Sum struct {
	// Total of the numbers.
	Total int      `json:"total"`
	Notes []string `json:"notes"`
	More  *Sum     `json:"more,omitempty"`
}

// Nothing returns nothing.
func (*Results) Nothing() error { return nil }

// Text returns text.
func (*Results) Text() string { return "a \"text\"\n<&> \u2028 é" }

// Struct returns a struct with a nil slice.
func (*Results) Struct() Sum { return Sum{Total: 7} }

// Pointer returns a pointer.
func (*Results) Pointer() *Sum { return &Sum{Total: 8, More: &Sum{}} }

// NilPointer returns nil.
func (*Results) NilPointer() *Sum { return nil }

// NilSlice returns no elements.
func (*Results) NilSlice() []Sum { return nil }

// NilMap returns no entries.
func (*Results) NilMap() map[string]int { return nil }

// Map returns entries.
func (*Results) Map() map[string]int { return map[string]int{"b": 2, "a": 1} }

// Number returns more than a float can hold.
func (*Results) Number() int64 { return 1<<53 + 1 }

// Float returns a fraction.
func (*Results) Float() float64 { return 1e21 }

// Truth returns a bool.
func (*Results) Truth() bool { return false }

// Kind returns an enum.
func (*Results) Kind() Level { return High }

// Times returns a duration and a time.
func (*Results) Times() struct {
	Took time.Duration `json:"took"`
	At   time.Time     `json:"at"`
} {
	return struct {
		Took time.Duration `json:"took"`
		At   time.Time     `json:"at"`
	}{90 * time.Second, time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC)}
}

// PNG returns bytes that are an image.
func (*Results) PNG() []byte { return []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR") }

// Plain returns bytes that are text.
func (*Results) Plain() []byte { return []byte("plain") }

// Picture returns an image.
func (*Results) Picture() image.Image { return image.NewGray(image.Rect(0, 0, 1, 1)) }

// Sound returns audio.
func (*Results) Sound() *mcpkit.Audio {
	return &mcpkit.Audio{Data: []byte("ab"), MIMEType: "audio/wav"}
}

// Binary returns bytes with a type.
func (*Results) Binary() mcpkit.Blob {
	return mcpkit.Blob{Data: []byte{0, 1}, MIMEType: "application/octet-stream", URI: "x://b"}
}

// Pointed returns a link.
func (*Results) Pointed() mcpkit.Link { return mcpkit.Link{URI: "x://l", Name: "l"} }

// Reader returns what is read.
func (*Results) Reader() io.Reader { return strings.NewReader("read") }

// Contents returns content.
func (*Results) Contents() []mcpkit.Content {
	return []mcpkit.Content{mcpkit.Text("a"), mcpkit.Text("b")}
}

// Several returns a struct and an image.
func (*Results) Several() (Sum, mcpkit.Image, error) {
	return Sum{Total: 9}, mcpkit.Image{Data: []byte("i"), MIMEType: "image/png"}, nil
}

// Two returns two texts.
func (*Results) Two() (string, string) { return "one", "two" }

// Whole returns the protocol's result.
func (*Results) Whole() *protocol.CallToolResult {
	return &protocol.CallToolResult{Content: []protocol.Content{mcpkit.Text("w")}, IsError: true}
}

// Anything returns any.
func (*Results) Anything() any { return []int{1} }

// Iterator returns numbers.
func (*Results) Iterator() iter.Seq[int] {
	return func(yield func(int) bool) { _ = yield(1) && yield(2) }
}

// Broken returns an iterator that fails.
func (*Results) Broken() iter.Seq2[int, error] {
	return func(yield func(int, error) bool) { _ = yield(1, nil) && yield(0, mcpkit.Errorf("no more")) }
}

// Large returns too much.
func (*Results) Large() iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(strings.Repeat("x", 100)) {
		}
	}
}

// Fail fails in one of several ways.
func (*Results) Fail(in struct {
	How string `json:"how" validate:"oneof=told wrapped secret panic protocol missing coded detailed retry declined both"`
}) (string, error) {
	switch in.How {
	case "told":
		return "", mcpkit.Errorf("tell %s", "them")
	case "wrapped":
		return "", fmt.Errorf("outer: %w", mcpkit.Errorf("inner"))
	case "secret":
		return "", errors.New("password is hunter2")
	case "panic":
		panic("password is hunter2")
	case "protocol":
		return "", jsonrpc.Errorf(-32000, "as it is")
	case "missing":
		return "", fmt.Errorf("file x: %w", fs.ErrNotExist)
	case "declined":
		return "", mcpkit.ErrDeclined
	case "both":
		return "a result", mcpkit.Errorf("and an error")
	default:
		return "", failure(in.How)
	}
}

// A failure implements the interfaces of errors.
type failure string

func (f failure) Error() string { return "failure " + string(f) }

// UserMessage is for the caller.
func (f failure) UserMessage() string { return "sorry: " + string(f) }

// coded, detailed and retrying errors.
type (
	coded    struct{ failure }
	detailed struct{ failure }
	retrying struct{ failure }
)

func (coded) ErrorCode() int                  { return -31999 }
func (detailed) ErrorDetails() map[string]any { return map[string]any{"field": "x", "n": 1} }
func (retrying) RetryAfter() time.Duration    { return 3 * time.Second }

// FailWith fails with an error of a type of its own.
func (*Results) FailWith(in struct {
	Type string `json:"type" validate:"oneof=coded detailed retrying"`
}) error {
	switch in.Type {
	case "coded":
		return coded{"coded"}
	case "detailed":
		return detailed{"detailed"}
	default:
		return retrying{"retrying"}
	}
}

// Work takes time and changes the server.
type Work struct {
	_ mcpkit.Info `name:"work" title:"A fixture" website:"https://example.com"`
	_ struct {
		Sleep   mcpkit.Tool `params:"seconds" timeout:"5s"`
		Limited mcpkit.Tool `rate:"2/m"`
		Read    mcpkit.Tool `scopes:"notes:read"`
		Write   mcpkit.Tool `scopes:"notes:write" hints:"destructive"`
	}
	server, child *mcpkit.Server
}

// Count counts, and reports progress and logs.
func (*Work) Count(call *mcpkit.Call, log *slog.Logger, in struct {
	Upto int `json:"upto" validate:"max=5"`
}) int {
	for i := range in.Upto {
		call.Progress(float64(i+1), float64(in.Upto), fmt.Sprint("step ", i+1))
		log.Info("counted", "number", i+1)
	}
	log.Warn("done", "upto", in.Upto, slog.Group("group", "a", 1))
	log.Debug("detail")
	return in.Upto
}

// Sleep waits.
func (*Work) Sleep(ctx context.Context, seconds int) (string, error) {
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
		return "slept", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Hang ignores that it was cancelled, and reports progress each second.
func (*Work) Hang(call *mcpkit.Call) string {
	for i := range 3 {
		<-time.After(time.Second)
		call.Progress(float64(i+1), 0, "")
	}
	return "done"
}

// Leave closes its stream and goes on.
func (*Work) Leave(call *mcpkit.Call) string {
	err := call.CloseStream(2 * time.Second)
	<-time.After(time.Second)
	return fmt.Sprint("left: ", err)
}

// Limited may run twice a minute.
func (*Work) Limited() string { return "ran" }

// Read needs a scope that local callers have.
func (*Work) Read() string { return "may read" }

// Write needs a scope that local callers do not have.
func (*Work) Write() string { return "may write" }

// Change changes the server's lists, and lets the notifications pass before it returns.
func (w *Work) Change(in struct {
	What string `json:"what" validate:"oneof=tool untool prompt unprompt resource unresource template update child unchild"`
}) (did bool, err error) {
	did = true
	switch in.What {
	case "tool":
		err = w.server.Add(mcpkit.NewTool("aaa", func() string { return "new" }).Desc("Is new."))
	case "prompt":
		err = w.server.Add(mcpkit.NewPrompt("aaa", func() string { return "new" }).Desc("Is new."))
	case "resource":
		err = w.server.Add(mcpkit.NewResource("aaa://new", "aaa", func() string { return "new" }).Desc("Is new."))
	case "template":
		err = w.server.Add(mcpkit.NewResource("aaa://{id}", "aaa", func(id string) string { return "new " + id }).Desc("Is new."))
	case "child":
		err = w.child.Add(mcpkit.NewTool("aaa", func() string { return "new" }).Desc("Is new."))
	case "unchild":
		did = w.child.RemoveTools("aaa")
	case "untool":
		did = w.server.RemoveTools("aaa")
	case "unprompt":
		did = w.server.RemovePrompts("aaa")
	case "unresource":
		did = w.server.RemoveResources("aaa://new")
	default:
		did = w.server.ResourceUpdated("library://rules")
	}
	<-time.After(time.Millisecond)
	return did, err
}

// Questions asks the client.
type Questions struct {
	_ struct {
		Interview mcpkit.Prompt   `desc:"Asks before it returns."`
		Private   mcpkit.Resource `uri:"private://page" desc:"Asks before it returns."`
	}
}

// Profile is a form.
type Profile struct {
	// Name of the user.
	Name  string   `json:"name" validate:"required,min=2" title:"Your name"`
	Age   int      `json:"age,omitempty" validate:"max=150"`
	Rate  float64  `json:"rate,omitempty" default:"0.5"`
	News  bool     `json:"news,omitempty" default:"true"`
	Mail  string   `json:"mail,omitempty" validate:"email"`
	Color string   `json:"color,omitempty" validate:"oneof=red green"`
	Level Level    `json:"level,omitempty" validate:"enum"`
	Many  []string `json:"many,omitempty" validate:"max=2,dive,oneof=a b c"`
}

// Form asks for a form.
func (*Questions) Form(ctx context.Context) (Profile, error) {
	return mcpkit.Elicit[Profile](ctx, "Who are you?")
}

// Sure asks yes or no.
func (*Questions) Sure(ctx context.Context) (bool, error) { return mcpkit.Confirm(ctx, "Sure?") }

// Pick asks for one of several options.
func (*Questions) Pick(ctx context.Context) (string, error) {
	return mcpkit.Choose(ctx, "Which?", []string{"tea", "coffee"})
}

// Visit asks the user to open a URL.
func (*Questions) Visit(ctx context.Context) (string, error) {
	return "visited", mcpkit.ElicitURL(ctx, "Please log in.", "https://example.com/login")
}

// Model asks the client's model.
func (*Questions) Model(ctx context.Context) (string, error) {
	r, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{
		Messages: []protocol.SamplingMessage{{Role: "user", Content: []protocol.Content{mcpkit.Text("Say hello.")}}}, MaxTokens: 10,
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprint(r.Model, " ", r.StopReason, " ", len(r.Content)), nil
}

// Folders asks for the roots.
func (*Questions) Folders(ctx context.Context) ([]string, error) {
	roots, err := mcpkit.Roots(ctx)
	var uris []string
	for _, r := range roots {
		uris = append(uris, r.URI)
	}
	return uris, err
}

// Book asks one question after the other, and keeps a value between them.
func (*Questions) Book(ctx context.Context, call *mcpkit.Call) (string, error) {
	city, err := mcpkit.Choose(ctx, "Which city?", []string{"Rome", "Oslo"})
	if err != nil {
		return "", err
	}
	hold, err := mcpkit.Once(ctx, "hold", func() (int, error) { return 41 + call.Round(), nil })
	if err != nil {
		return "", err
	}
	ok, err := mcpkit.Confirm(ctx, fmt.Sprintf("Pay for %s, hold %d?", city, hold))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d %v in round %d", city, hold, ok, call.Round()), nil
}

// Both asks two questions at once.
func (*Questions) Both(ctx context.Context) (string, error) {
	var size string
	var ok bool
	err := mcpkit.Ask(ctx,
		func(ctx context.Context) (err error) {
			size, err = mcpkit.Choose(ctx, "Which size?", []string{"S", "L"}, mcpkit.Key("size"))
			return err
		},
		func(ctx context.Context) (err error) { ok, err = mcpkit.Confirm(ctx, "Gift wrap?"); return err })
	return fmt.Sprint(size, " ", ok), err
}

// Interview asks for the user's name.
func (*Questions) Interview(ctx context.Context) (string, error) {
	p, err := mcpkit.Elicit[struct {
		Name string `json:"name"`
	}](ctx, "Name?")
	return "Interview " + p.Name + ".", err
}

// Private asks before it is read.
func (*Questions) Private(ctx context.Context) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "May it be read?")
	return fmt.Sprint("read: ", ok), err
}

// Library has resources and prompts.
type Library struct {
	_ struct {
		Book   mcpkit.Resource `uri:"book://{isbn}" mime:"text/plain" cache:"60s,public" complete:"isbn=ISBNs" rules:"isbn:min=3"`
		Path   mcpkit.Resource `uri:"file:///{+path}" mime:"text/plain"`
		Search mcpkit.Resource `uri:"search://hits{?q,limit}"`
		Deep   mcpkit.Resource `uri:"deep://a{/names*}"`
		Locked mcpkit.Resource `uri:"locked://{id}" scopes:"notes:write"`
		Rules  mcpkit.Resource `uri:"library://rules" title:"The rules" audience:"user,assistant" priority:"0.8"`
		Logo   mcpkit.Resource `uri:"library://logo" mime:"image/png"`
		Stream mcpkit.Resource `uri:"library://stream" mime:"text/plain"`
		Vault  mcpkit.Resource `uri:"library://vault" scopes:"notes:write"`
		Secret mcpkit.Resource `uri:"library://secret" hidden:"true"`
		Fault  mcpkit.Resource `uri:"library://fault"`
		Parts  mcpkit.Resource `uri:"library://parts"`
		Review mcpkit.Prompt   `params:"title,tone?" complete:"title=Titles" rules:"tone:oneof=kind harsh" title:"Review a book"`
		Letter mcpkit.Prompt   `name:"a_letter"`
		Talk   mcpkit.Prompt   `desc:"Has several messages."`
		Refuse mcpkit.Prompt   `desc:"Fails."`
		Owned  mcpkit.Prompt   `scopes:"notes:write"`
		ISBNs  mcpkit.Skip
		Titles mcpkit.Skip
	}
}

// Book returns a book.
func (*Library) Book(isbn string) (string, error) {
	if isbn != "978" {
		return "", mcpkit.ErrNotFound
	}
	return "A beginning is the time for taking the most delicate care.", nil
}

// ISBNs completes.
func (*Library) ISBNs(_ context.Context, prefix string) ([]string, error) {
	return slices.DeleteFunc([]string{"978", "979", "123"}, func(s string) bool { return !strings.HasPrefix(s, prefix) }), nil
}

// Path returns a path.
func (*Library) Path(path string) string { return "path " + path }

// Search returns what is searched for.
func (*Library) Search(in struct {
	Q     string `json:"q"`
	Limit int    `json:"limit,omitempty" default:"3" validate:"max=9"`
}) any {
	return map[string]any{"q": in.Q, "limit": in.Limit}
}

// Deep returns the segments.
func (*Library) Deep(names []string) []string { return names }

// Locked is locked.
func (*Library) Locked(id string) string { return "unlocked " + id }

// Rules returns the rules as data.
func (*Library) Rules() map[string]int { return map[string]int{"days": 14} }

// Logo returns an image.
func (*Library) Logo() []byte { return []byte{0x89, 'P', 'N', 'G'} }

// Stream returns a reader.
func (*Library) Stream() io.Reader { return strings.NewReader(strings.Repeat("line\n", 3)) }

// Vault is locked.
func (*Library) Vault() string { return "gold" }

// Secret is not listed.
func (*Library) Secret() string { return "whisper" }

// Fault fails.
func (*Library) Fault() (string, error) { return "", errors.New("password is hunter2") }

// Parts returns several contents.
func (*Library) Parts() []protocol.ResourceContents {
	return []protocol.ResourceContents{{URI: "library://parts/1", Text: new("one")}, {URI: "library://parts/2", MIMEType: "image/png", Blob: []byte{1}}}
}

// Review asks for a review.
func (*Library) Review(title, tone string) string { return "Review " + title + " " + tone + "." }

// Titles completes, and knows what else is filled in.
func (*Library) Titles(_ context.Context, prefix string, others map[string]string) ([]string, error) {
	if prefix == "fail" {
		return nil, errors.New("password is hunter2")
	}
	var titles []string
	for i := range 120 {
		titles = append(titles, fmt.Sprint(prefix, " ", others["tone"], " ", i))
	}
	return titles, nil
}

// Letter writes a letter.
func (*Library) Letter(in struct {
	To    string `json:"to" validate:"required" desc:"Who gets it."`
	Pages int    `json:"pages,omitempty" default:"1" validate:"max=3"`
}) string {
	return fmt.Sprint("To ", in.To, ", ", in.Pages)
}

// Talk has several messages.
func (*Library) Talk() []protocol.PromptMessage {
	return []protocol.PromptMessage{mcpkit.User("Hello."), mcpkit.Assistant("Hi."), mcpkit.User(mcpkit.Image{Data: []byte("i"), MIMEType: "image/png"})}
}

// Refuse fails.
func (*Library) Refuse() (string, error) { return "", mcpkit.Errorf("not today") }

// Owned needs a scope.
func (*Library) Owned() string { return "owned" }
