package mcpkit_test

import (
	"context"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// The services of TestMistakesOfServices, one mistake each.
type (
	webHandler  struct{}
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

func (listedTwice) Now() string           { return "" }
func (sameName) Now() string              { return "" }
func (sameName) Today() string            { return "" }
func (badTemplate) Page(id string) string { return "" }
func (misspeltVariable) Page(p struct {
	ID string `json:"di"`
}) string {
	return ""
}
func (badCompleter) Page(id string) string { return "" }
func (badCompleter) IDs() []int            { return nil }

func (webHandler) Find(http.ResponseWriter, *http.Request) {}
func (noSuchCompleted) Page(id string) string              { return "" }

func (noSuchCompleted) IDs(context.Context, string) ([]string, error) { return nil, nil }

type secretInURI struct {
	_ struct {
		Page mcpkit.Resource `uri:"page://{token}"`
	}
}

func (secretInURI) Page(in struct {
	Token string `json:"token" secret:"true"`
}) string {
	return in.Token
}

func TestMistakesOfServices(t *testing.T) {
	for _, test := range []struct {
		service any
		want    string
	}{
		{&deafStart{}, `deafStart.Start (here): it is func() error, and would not be called, since the server calls a Start that is func(context.Context) error; write that, or Start mcpkit.Skip in the annotation block`},
		{&deafClose{}, `deafClose.Close (here): it is func(), and would not be called, since the server calls a Close that is func() error; write that, or Close mcpkit.Skip in the annotation block`},
		{&listedTwice{}, `listedTwice.Now (here): the annotation block says it twice`},
		{&sameName{}, `mcpkit: tool "time" is registered twice, by sameName.Now (here) and sameName.Today (here); give one of them the tag name, or its service mcpkit.Prefix`},
		{&badTemplate{}, `badTemplate.Page (here): uri template "page://{id": the "{" before "id" is not closed; add a "}"`},
		{&misspeltVariable{}, `misspeltVariable.Page (here): the variables of uri "page://{id}" are ["id"], but the parameters are ["di"]; give both the same names`},
		{&secretInURI{}, `secretInURI.Page (here): parameter "token" is secret, but logs and other programs show URIs; take it as an argument of a tool`},
		{&webHandler{}, `webHandler.Find (here): parameter 1 is a http.ResponseWriter, which no argument can give; give it with mcpkit.Provide, or take one of context.Context, *mcpkit.Call, *slog.Logger, *oauth.Principal, http.Header; if the method is not for clients, hide it with mcpkit.Skip or mcpkit.OptIn`},
		{&badCompleter{}, `badCompleter.Page (here): completion method IDs: it is func() []int; write func(ctx context.Context, prefix string) ([]string, error), with others map[string]string and what tools get from the call as further parameters`},
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

type (
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
	require.EqualError(t, err, "mcpkit: a *mcpkit.Builder is not a service; pass it to Server.Add or Server.Mount")
	srv := mcpkit.MustNew(nil, mcpkit.Name("clock", "1.0.0"))
	require.EqualError(t, srv.Register(tool), "mcpkit: a *mcpkit.Builder is not a service; pass it to Server.Add or Server.Mount")
}
