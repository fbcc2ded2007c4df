package mcpkit_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// The services of TestMistakesOfSignatures, one mistake each.
type (
	variadic    struct{}
	twoInputs   struct{}
	mixedInputs struct{}
	ownError    struct{}
	funcResult  struct{}
	ifaceResult struct{}
	aboveWhole  struct{}
	plainParams struct{}
	webHandler  struct{}
	fewParams   struct {
		_ struct {
			Add mcpkit.Tool `params:"a"`
		}
	}
	manyParams struct {
		_ struct {
			Add mcpkit.Tool `params:"a,b,c"`
		}
	}
	sameParams struct {
		_ struct {
			Add mcpkit.Tool `params:"a,a"`
		}
	}
	emptyParams struct {
		_ struct {
			Add mcpkit.Tool `params:""`
		}
	}
	holeInParams struct {
		_ struct {
			Add mcpkit.Tool `params:"a,"`
		}
	}
	quotedParams struct {
		_ struct {
			Add mcpkit.Tool `params:"a,b c"`
		}
	}
	paramsOfStruct struct {
		_ struct {
			Find mcpkit.Tool `params:"query"`
		}
	}
	paramsOfNothing struct {
		_ struct {
			Now mcpkit.Tool `params:"zone"`
		}
	}
	listedTwice struct {
		_ struct{ Now mcpkit.Tool }
		_ struct{ Now mcpkit.Tool }
	}
	sameName struct {
		_ struct {
			Now   mcpkit.Tool `name:"time"`
			Today mcpkit.Tool `name:"time"`
		}
	}
	badTemplate struct {
		_ struct {
			Page mcpkit.Resource `uri:"page://{id"`
		}
	}
	misspeltVariable struct {
		_ struct {
			Page mcpkit.Resource `uri:"page://{id}"`
		}
	}
	silentResource struct {
		_ struct {
			Page mcpkit.Resource `uri:"page://all"`
		}
	}
	contentResource struct {
		_ struct {
			Page mcpkit.Resource `uri:"page://all"`
		}
	}
	silentPrompt struct {
		_ struct{ Ask mcpkit.Prompt }
	}
	badAudience struct {
		_ struct {
			Page mcpkit.Resource `uri:"page://all" audience:"users"`
		}
	}
	badMeta struct {
		_ struct {
			Now mcpkit.Tool `meta:"team"`
		}
	}
	badHidden struct {
		_ struct {
			Now mcpkit.Tool `hidden:"yes"`
		}
	}
	negativeTimeout struct {
		_ struct {
			Now mcpkit.Tool `timeout:"-5s"`
		}
	}
	readonlyDestructive struct {
		_ struct {
			Now mcpkit.Tool `hints:"readonly,destructive"`
		}
	}
	unquotedTag struct {
		_ struct {
			Now mcpkit.Tool `title:Now`
		}
	}
	skipWithTag struct {
		_ struct {
			Now mcpkit.Skip `title:"Now"`
		}
	}
	badInfo struct {
		_ mcpkit.Info `version:"1" timeout:"5s"`
	}
	badCompleter struct {
		_ struct {
			Page mcpkit.Resource `uri:"page://{id}" complete:"id=IDs"`
		}
	}
	noSuchCompleted struct {
		_ struct {
			Page mcpkit.Resource `uri:"page://{id}" complete:"di=IDs"`
		}
	}
)

const noCompletion = `completion works for prompts and resource templates; the protocol has none for tools. For a fixed list write validate:"oneof=a b" on a field, or rules:"name:oneof=a b" for a plain parameter`

type (
	completedField   struct{}
	completedInBlock struct {
		_ struct {
			Search mcpkit.Tool `params:"genre" complete:"genre=Genres"`
		}
	}
)

func (completedField) Search(struct {
	Genre string `json:"genre" complete:"Genres"`
}) {
}
func (completedField) Genres(prefix string) []string { return nil }

func (completedInBlock) Search(genre string)           {}
func (completedInBlock) Genres(prefix string) []string { return nil }

type (
	query  struct{ Text string }
	opaque struct{ handle int }
	fault  struct{}
)

func (*fault) Error() string { return "" }

func (variadic) Add(n ...int) int                        { return 0 }
func (twoInputs) Find(a query, b struct{ Page int }) int { return 0 }
func (mixedInputs) Find(a query, page int) int           { return 0 }

//lint:ignore ST1008 that is the mistake

func (ownError) Now() (string, *fault)                     { return "", nil }
func (funcResult) Now() func()                             { return nil }
func (ifaceResult) Now() sync.Locker                       { return nil }
func (aboveWhole) Now() (*protocol.CallToolResult, string) { return nil, "" }
func (plainParams) Add(a, b float64) float64               { return a + b }
func (fewParams) Add(a, b float64) float64                 { return a + b }
func (manyParams) Add(a, b float64) float64                { return a + b }
func (sameParams) Add(a, b float64) float64                { return a + b }
func (emptyParams) Add(a, b float64) float64               { return a + b }
func (holeInParams) Add(a, b float64) float64              { return a + b }
func (paramsOfStruct) Find(q query) string                 { return "" }
func (listedTwice) Now() string                            { return "" }
func (sameName) Now() string                               { return "" }
func (sameName) Today() string                             { return "" }
func (badTemplate) Page(id string) string                  { return "" }
func (misspeltVariable) Page(p struct {
	ID string `json:"di"`
}) string {
	return ""
}
func (silentResource) Page() error                  { return nil }
func (contentResource) Page() *protocol.TextContent { return nil }
func (silentPrompt) Ask()                           {}
func (badAudience) Page() string                    { return "" }
func (badMeta) Now() string                         { return "" }
func (badHidden) Now() string                       { return "" }
func (negativeTimeout) Now() string                 { return "" }
func (readonlyDestructive) Now() string             { return "" }
func (unquotedTag) Now() string                     { return "" }
func (skipWithTag) Now() string                     { return "" }
func (badInfo) Now() string                         { return "" }
func (badCompleter) Page(id string) string          { return "" }
func (badCompleter) IDs() []int                     { return nil }

func (webHandler) Find(http.ResponseWriter, *http.Request, echo.Context) {}
func (noSuchCompleted) Page(id string) string                            { return "" }
func (noSuchCompleted) IDs(string) []string                              { return nil }

func TestMistakesOfSignatures(t *testing.T) {
	for _, test := range []struct {
		service any
		want    string
	}{
		{&variadic{}, `variadic.Add (here): parameter 1 is variadic (...int); take a slice, []int`},
		{&twoInputs{}, `twoInputs.Find (here): parameters 1 (mcpkit_test.query) and 2 (struct{...}) are both structs of arguments; there can be one, so put the fields of both into it; if one of them should not come from the arguments, give it with mcpkit.Provide, or take one of context.Context, *mcpkit.Call, *slog.Logger, *oauth.Principal, http.Header`},
		{&mixedInputs{}, `mixedInputs.Find (here): parameter 1 (mcpkit_test.query) is a struct of arguments, parameter 2 (int) a plain argument; write the one or the other: put int into the struct as a field`},
		{&ownError{}, `ownError.Now (here): result 2 of 2 has the type *mcpkit_test.fault; return one error, as the last result and with the type error`},
		{&funcResult{}, `funcResult.Now (here): a result of type func() cannot be sent; return data, an io.Reader or an iter.Seq`},
		{&ifaceResult{}, `ifaceResult.Now (here): a result of the interface type sync.Locker says too little; return any, or a concrete type`},
		{&aboveWhole{}, `aboveWhole.Now (here): *protocol.CallToolResult is the whole result; return nothing beside it but an error`},
		{&whoByValue{}, `whoByValue.Pay (here): parameter 1 is a oauth.Principal, which is given as a pointer; write *oauth.Principal`},
		{&deafStart{}, `deafStart.Start (here): it is func() error, and would not be called, since the server calls a Start that is func(context.Context) error; write that, or Start mcpkit.Skip in the annotation block`},
		{&deafClose{}, `deafClose.Close (here): it is func(), and would not be called, since the server calls a Close that is func() error; write that, or Close mcpkit.Skip in the annotation block`},
		{&plainParams{}, `plainParams.Add (here): Go does not keep the names of the parameters (float64, float64); write your names into the tag params or Builder.Params, such as "a,b?", or take one struct`},
		{&fewParams{}, `fewParams.Add (here): the names are "a", but the parameters are (float64, float64); name each one, in order`},
		{&manyParams{}, `manyParams.Add (here): the names are "a", "b", "c", but the parameters are (float64, float64); name each one, in order`},
		{&sameParams{}, `sameParams.Add (here): the name "a" is listed twice for the parameters; give each its own`},
		{&emptyParams{}, `emptyParams.Add (here): the names are "", but the parameters are (float64, float64); name each one, in order`},
		{&holeInParams{}, `holeInParams.Add (here): "" is not a name of a parameter; write names with commas between, and a '?' after an optional one: "a,b?"`},
		{&paramsOfStruct{}, `paramsOfStruct.Find (here): names and rules are for plain parameters, but the arguments are the fields of mcpkit_test.query; write them in json and validate tags of the fields`},
		{&listedTwice{}, `listedTwice.Now (here): the annotation block says it twice`},
		{&sameName{}, `mcpkit: tool "time" is registered twice, by sameName.Now (here) and sameName.Today (here)`},
		{&badTemplate{}, `badTemplate.Page (here): uri template "page://{id": the "{" before "id" is not closed; add a "}"`},
		{&misspeltVariable{}, `misspeltVariable.Page (here): parameter "di" is not a variable of uri "page://{id}"; did you mean "id"?
misspeltVariable.Page (here): variable "id" of uri "page://{id}" goes to no parameter; add one`},
		{&silentResource{}, `silentResource.Page (here): a resource returns its contents: string, []byte, mcpkit.Blob, io.Reader, any data, or *protocol.ReadResourceResult`},
		{&contentResource{}, `contentResource.Page (here): *protocol.TextContent is content, which is for tools and prompts; a resource returns string, []byte, mcpkit.Blob, io.Reader or any data`},
		{&silentPrompt{}, `silentPrompt.Ask (here): a prompt returns its messages: string, protocol.PromptMessage (mcpkit.User, mcpkit.Assistant), several, content, or *protocol.GetPromptResult`},
		{&badAudience{}, `badAudience.Page (here): tag audience: unknown audience "users"; did you mean "user"?; known are user, assistant; write for example audience:"user,assistant"`},
		{&badMeta{}, `badMeta.Now (here): tag meta: "team" does not say key=value; write for example meta:"example.com/team=search"`},
		{&badHidden{}, `badHidden.Now (here): tag hidden: "yes" is neither true nor false; write for example hidden:"true"`},
		{&negativeTimeout{}, `negativeTimeout.Now (here): tag timeout: "-5s" is negative; write for example timeout:"5s"`},
		{&readonlyDestructive{}, `readonlyDestructive.Now (here): tag hints: a tool cannot be both readonly and destructive; write for example hints:"readonly,idempotent"`},
		{&unquotedTag{}, `unquotedTag.Now (here): tag "title:Now" is not made of key:"value" pairs`},
		{&skipWithTag{}, `skipWithTag.Now (here): tag "title" means nothing for a Skip; known are none`},
		{&badInfo{}, `badInfo, field Info: tag "timeout" means nothing for an Info; known are name, title, desc, version, website, icon`},
		{&webHandler{}, `webHandler.Find (here): parameter 1 is a http.ResponseWriter, which a method does not get; return the result
webHandler.Find (here): parameter 2 is a *http.Request, which a method does not get; take http.Header for its header, or *mcpkit.Call for the caller
webHandler.Find (here): parameter 3 is a echo.Context, which a method does not get; take context.Context, and call echomcp.FromContext with it`},
		{&badCompleter{}, `badCompleter.Page (here): completion method IDs: it is func() []int; write func(ctx context.Context, prefix string) ([]string, error), with others map[string]string as a last parameter where needed`},
		{&noSuchCompleted{}, `noSuchCompleted.Page (here): complete names "di", which is not a parameter; did you mean "id"?`},
	} {
		_, err := mcpkit.New(test.service)
		requireMistake(t, test.want, err)
	}
}

// Errors about a method say where it is: (here).

// genericName is the name of the service, which contains the whole type of the input.
var genericName = regexp.MustCompile(`(?m)^taking\[.*?\]\.`)

var mistakePlace = regexp.MustCompile(`\(mistakes_test\.go:\d+\)`)

func requireMistake(t *testing.T, want string, err error) {
	t.Helper()
	require.Error(t, err, want)
	got := genericName.ReplaceAllString(err.Error(), "taking.")
	require.Equal(t, want, mistakePlace.ReplaceAllString(got, "(here)"))
}

// Callers could choose who they are.
type whoByValue struct{}

func (whoByValue) Pay(p oauth.Principal) string { return p.Subject }

type (
	deafStart struct{}
	deafClose struct{}
	// quietStart says that it is started elsewhere.
	quietStart struct {
		_ struct {
			Start mcpkit.Skip
		}
		closer
	}
	closer struct{}
)

func (deafStart) Start() error { return nil }
func (deafClose) Close()       {}
func (quietStart) Start(int)   {}
func (closer) Close()          {} // of the embedded type

func TestMethodsOfAnotherLifeMayStay(t *testing.T) {
	_, err := mcpkit.New(&quietStart{})
	require.NoError(t, err)
}

func TestNilItemsAreRefused(t *testing.T) {
	srv := newServer(t, nil)
	handler := func(context.Context, *mcpkit.Call) (any, error) { return nil, nil }
	for want, err := range map[string]error{
		"mcpkit: Add: item 2 is nil; make one with NewTool, NewPrompt or NewResource":                                           srv.Add(mcpkit.NewTool("x", handler), nil),
		"mcpkit: Add: item 1 is nil; make one with NewTool, NewPrompt or NewResource":                                           srv.Add((*mcpkit.Builder)(nil)),
		`mcpkit: tool "x" (here): the handler is nil; give a func(context.Context, *mcpkit.Call) (any, error)`:                  srv.AddTool(protocol.Tool{Name: "x"}, nil),
		`mcpkit: prompt "x" (here): the handler is nil; give a func(context.Context, *mcpkit.Call) (any, error)`:                srv.AddPrompt(protocol.Prompt{Name: "x"}, nil),
		`mcpkit: resource "x:y" (here): the handler is nil; give a func(context.Context, *mcpkit.Call) (any, error)`:            srv.AddResource(protocol.Resource{URI: "x:y"}, nil),
		`mcpkit: resource template "x:{y}" (here): the handler is nil; give a func(context.Context, *mcpkit.Call) (any, error)`: srv.AddResourceTemplate(protocol.ResourceTemplate{URITemplate: "x:{y}"}, nil),
		"mcpkit: Serve: transport 1 is nil; give for example stdio.New(nil)":                                                    srv.Serve(t.Context(), nil),
	} {
		requireMistake(t, want, err)
	}
	for want, opt := range map[string]mcpkit.Option{
		"mcpkit: option 1 is nil":                   nil,
		"mcpkit: Provide[int]: the function is nil": mcpkit.Provide[int](nil),
	} {
		_, err := mcpkit.New(nil, opt)
		requireMistake(t, want, err)
	}
	requireMistake(t, "mcpkit: Over: transport 1 is nil; give for example stdio.New(nil)", mcpkit.Serve(nil, mcpkit.Over(nil)))
}

type (
	sameJSON struct {
		A string `json:"same"`
		B string `json:"same"`
	}
	noSuchField struct {
		A int `json:"a"`
		B int `json:"b" validate:"gtfield=C"`
	}
	// manyFaults has several mistakes, at several depths.
	manyFaults struct {
		A string `json:"a" validat:"required"`
		B struct {
			C int         `json:"c" default:"x"`
			D map[int]any `json:"d" header:"D"`
		} `json:"b"`
		E []chan int `json:"e"`
	}
)

// taking is a service of one tool with the input T.
type taking[T any] struct{}

func (*taking[T]) Do(T) string { return "" }

func TestMistakesOfInputs(t *testing.T) {
	for _, test := range []struct {
		service any
		want    string
	}{
		{&taking[struct {
			Text string `json:"text" validat:"required"`
		}]{}, `taking.Do (here), field Text: unknown tag key "validat"; did you mean "validate"?`},
		{&taking[struct {
			Text string `json:"text" validate:"requierd"`
		}]{}, `taking.Do (here), field Text: unknown rule "requierd"; did you mean "required"?`},
		{&taking[struct {
			N int `json:"n" validate:"min=few"`
		}]{}, `taking.Do (here), field N: rule "min=few" does not fit int; write a number that it can hold`},
		{&taking[struct {
			N int `json:"n" validate:"email"`
		}]{}, `taking.Do (here), field N: rule "email" does not fit int; it is for strings`},
		{&taking[struct {
			N int `json:"n" default:"many"`
		}]{}, `taking.Do (here), field N: the default is refused; value: got "many", want an integer`},
		{&taking[struct {
			N int `json:"n" default:"0" validate:"min=1"`
		}]{}, `taking.Do (here), field N: the default is refused; value: got 0, want an integer of at least 1`},
		{&taking[struct {
			N []string `json:"n" default:"a"`
		}]{}, `taking.Do (here), field N: the default is refused; value: got "a", want an array`},
		{&taking[struct {
			N int `json:"n" default:"5" validate:"required"`
		}]{}, `taking.Do (here), field N: the field is required and has a default, which can never be used; drop one of the two`},
		{&taking[struct {
			Color string `json:"color" example:"pink" validate:"oneof=red green"`
		}]{}, `taking.Do (here), field Color: the example is refused; value: got "pink", want one of "red" or "green"`},
		{&taking[struct {
			When time.Time `json:"when" default:"tomorrow"`
		}]{}, `taking.Do (here), field When: the default is refused; value: got "tomorrow", want a date-time such as "2006-01-02T15:04:05Z"`},
		{&taking[struct {
			X float64 `json:"x" header:"X"`
		}]{}, `taking.Do (here), field X: a header cannot mirror a float64; put it on a string, an integer or a bool`},
		{&taking[struct {
			X string `json:"x" header:"X Y"`
		}]{}, `taking.Do (here), field X: the header name "X Y" is not a token; write letters, digits and - only, such as header:"Region"`},
		{&taking[struct {
			A string `json:"a" header:"X"`
			B string `json:"b" header:"x"`
		}]{}, `taking.Do (here), field B: the header "x" is taken by the field A; choose another name`},
		{&taking[struct {
			A []struct {
				B string `json:"b" header:"X"`
			} `json:"a"`
		}]{}, `taking.Do (here), field A.B: the header "X" stands within an array, a map or a type that contains itself, where no client looks; move the field up`},
		{&taking[sameJSON]{}, `taking.Do (here): the fields mcpkit_test.sameJSON.A and mcpkit_test.sameJSON.B are both "same" in JSON; give one another name`},
		{&taking[struct {
			Stream chan int `json:"stream"`
		}]{}, `taking.Do (here), field Stream: the type chan int has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:"-"`},
		{&taking[struct {
			Each func() `json:"each"`
		}]{}, `taking.Do (here), field Each: the type func() has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:"-"`},
		{&taking[struct {
			From io.Reader `json:"from"`
		}]{}, `taking.Do (here), field From: the type io.Reader has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:"-"`},
		{&taking[struct {
			Z complex128 `json:"z"`
		}]{}, `taking.Do (here), field Z: the type complex128 has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:"-"`},
		{&taking[struct {
			By map[struct{ X int }]string `json:"by"`
		}]{}, `taking.Do (here), field By: the type map[struct{...}]string has keys that JSON has not; write a map with string or integer keys`},
		{&taking[struct {
			N int `json:"n,string"`
		}]{}, `taking.Do (here), field N: unknown json option "string"; write omitempty, omitzero or nothing`},
		{&taking[struct {
			N int `json:"n,omitemty"`
		}]{}, `taking.Do (here), field N: unknown json option "omitemty"; did you mean "omitempty"?`},
		{&taking[struct {
			Pass string `json:"pass" secret:"yes"`
		}]{}, `taking.Do (here), field Pass: secret is "yes"; write secret:"true" or leave it out`},
		{&taking[struct {
			N int `json:"n" complete:"Missing"`
		}]{}, `taking.Do (here): field "n" has the tag complete; ` + noCompletion},
		{&completedField{}, `completedField.Search (here): field "genre" has the tag complete; ` + noCompletion},
		{&completedInBlock{}, `completedInBlock.Search (here): tag "complete" means nothing for a Tool; ` + noCompletion},
		{&taking[noSuchField]{}, `taking.Do (here), field B: rule "gtfield=C" names the field "C", which mcpkit_test.noSuchField has not; did you mean "A"?`},
		{&taking[manyFaults]{}, `taking.Do (here), field A: unknown tag key "validat"; did you mean "validate"?
taking.Do (here), field B.D: a header cannot mirror a map[int]interface {}; put it on a string, an integer or a bool
taking.Do (here), field E: the type chan int has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:"-"`},
	} {
		_, err := mcpkit.New(test.service)
		requireMistake(t, test.want, err)
	}
}

func TestBuildersAreNotServices(t *testing.T) {
	tool := mcpkit.NewTool("now", func() string { return "noon" })
	_, err := mcpkit.New(tool)
	require.EqualError(t, err, "mcpkit: a *mcpkit.Builder is not a service; pass it to Server.Add")
	srv := mcpkit.MustNew(nil, mcpkit.Name("clock", "1.0.0"))
	require.EqualError(t, srv.Register(tool), "mcpkit: a *mcpkit.Builder is not a service; pass it to Server.Add")
}
