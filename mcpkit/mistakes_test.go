package mcpkit_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// The services of TestMistakesOfServices, one mistake each.
type (
	listedTwice struct {
		_ struct{ Now mcpkit.Tool }
		_ struct{ Now mcpkit.Tool }
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
)

func (listedTwice) Now() string { return "" }
func (misspeltVariable) Page(p struct {
	ID string `json:"di"`
}) string {
	return ""
}
func (badCompleter) Page(id string) string { return "" }
func (badCompleter) IDs() []int            { return nil }

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
		{&misspeltVariable{}, `misspeltVariable.Page (here): the variables of uri "page://{id}" are ["id"], but the parameters are ["di"]; give both the same names`},
		{&secretInURI{}, `secretInURI.Page (here): parameter "token" is secret, but logs and other programs show URIs; take it as an argument of a tool`},
		{&badCompleter{}, `badCompleter.Page (here): completion method IDs: it is func() []int; write func(ctx context.Context, prefix string) ([]string, error), with others map[string]string and what tools get from the call as further parameters`},
	} {
		_, err := mcpkit.New(test.service)
		requireMistake(t, test.want, err)
	}
}

// Errors about a method say where it is: (here).

var mistakePlace = regexp.MustCompile(`\(mistakes_test\.go:\d+\)`)

func requireMistake(t *testing.T, want string, err error) {
	t.Helper()
	require.Error(t, err, want)
	require.Equal(t, want, mistakePlace.ReplaceAllString(err.Error(), "(here)"))
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
