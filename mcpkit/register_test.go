package mcpkit_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
)

type plainService struct{}

func (plainService) Hello() string  { return "hello" }
func (*plainService) Byte() []byte  { return []byte("x") }
func (plainService) String() string { return "not for clients" }
func (*plainService) Close() error  { return nil }
func (plainService) hidden() string { return "" } //nolint:unused // shows that it is not registered

type promotes struct{ plainService }

func (promotes) Own() string { return "own" }

type includes struct {
	plainService `mcpkit:"include"`
}

func (includes) Own() string { return "own" }

// annotated has an annotation block of its own.
type annotated struct {
	_ struct {
		Erase  mcpkit.Tool `scopes:"admin"`
		Helper mcpkit.Skip
		Manual mcpkit.Resource `uri:"x://manual"`
		Rename mcpkit.Tool     `name:"inner"`
		Own    mcpkit.Skip
	}
}

func (annotated) Erase() string  { return "" }
func (annotated) Helper() string { return "" }
func (annotated) Manual() string { return "read me" }
func (annotated) Rename() string { return "" }
func (annotated) Own() string    { return "" }

type between struct {
	*annotated `mcpkit:"include"`
}

// includesAnnotated declares Own itself, and has other words for Rename.
type includesAnnotated struct {
	between `mcpkit:"include"`
	_       struct {
		Rename mcpkit.Tool `name:"outer"`
	}
}

func (includesAnnotated) Own() string { return "" }

func TestAnnotationBlocksOfIncludedFieldsHold(t *testing.T) {
	_, err := mcpkit.New(&includesAnnotated{})
	require.ErrorContains(t, err, "includesAnnotated.Erase")
	require.ErrorContains(t, err, "scopes")

	srv := newServer(t, &includesAnnotated{between: between{&annotated{}}}, mcpkit.Authenticated())
	require.Equal(t, []string{"outer", "own"}, toolNames(t, srv), "erase needs a scope")
	require.Contains(t, modern(t, srv).result("resources/read", `{"uri":"x://manual"}`), "read me")
}

func toolNames(t *testing.T, srv *mcpkit.Server) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile(`\{"name":"([^"]*)"`).FindAllStringSubmatch(member(t, modern(t, srv).result("tools/list", "{}"), "tools"), -1) {
		names = append(names, m[1])
	}
	return names
}

func TestWhichMethodsBecomeTools(t *testing.T) {
	for _, test := range []struct {
		name    string
		service any
		opts    []mcpkit.Option
		want    []string
	}{
		{"declared ones that are not well known", &plainService{}, nil, []string{"byte", "hello"}},
		{"promoted ones are not", &promotes{}, nil, []string{"own"}},
		{"promoted ones of an included field are", &includes{}, nil, []string{"byte", "hello", "own"}},
		{"with a prefix", &promotes{}, []mcpkit.Option{mcpkit.Prefix("p")}, []string{"p_own"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, toolNames(t, newServer(t, test.service, test.opts...)))
		})
	}
}

type optedIn struct {
	_ struct{ A mcpkit.Tool }
}

func (optedIn) A() string { return "" }
func (optedIn) B() string { return "" }

type skipping struct {
	_ struct{ B mcpkit.Skip }
}

func (skipping) A() string { return "" }
func (skipping) B() string { return "" }

func TestOptInAndSkip(t *testing.T) {
	require.Equal(t, []string{"a"}, toolNames(t, newServer(t, &optedIn{}, mcpkit.OptIn())))
	require.Equal(t, []string{"a"}, toolNames(t, newServer(t, &skipping{})))
	require.Equal(t, []string{"a", "b"}, toolNames(t, newServer(t, &optedIn{})))
}

func TestSeveralServices(t *testing.T) {
	srv := newServer(t, &promotes{}, mcpkit.With(&skipping{}, mcpkit.Prefix("other")))
	require.NoError(t, srv.Register(&optedIn{}, mcpkit.OptIn()))
	require.Equal(t, []string{"a", "other_a", "own"}, toolNames(t, srv))
}

func TestCollisionsNameBothPlaces(t *testing.T) {
	_, err := mcpkit.New(&optedIn{}, mcpkit.With(&skipping{}))
	require.Error(t, err)
	require.Regexp(t, `^mcpkit: tool "a" is registered twice, by optedIn.A \(register_test.go:\d+\) and skipping.A \(register_test.go:\d+\); give one of them the tag name, or its service mcpkit.Prefix$`, err.Error())

	srv := newServer(t, &optedIn{}, mcpkit.OptIn())
	require.Error(t, srv.Register(&optedIn{}))
	require.Equal(t, []string{"a"}, toolNames(t, srv), "nothing of a service that collides is registered")
}

// The services of TestAuthorsMistakes, one mistake each.
type (
	noMethod struct {
		_ struct{ Serch mcpkit.Tool }
	}
	noMarker struct {
		_ struct{ Search string }
	}
	namedBlock struct {
		Annotations struct{ Search mcpkit.Tool }
	}
	blankMarker struct {
		_ mcpkit.Tool `name:"find"`
	}
	markerOutside struct {
		Search mcpkit.Tool
	}
	noURI struct {
		_ struct{ Search mcpkit.Resource }
	}
	relativeURI struct {
		_ struct {
			Search mcpkit.Resource `uri:"notes/all"`
		}
	}
	unusedVariable struct {
		_ struct {
			Search mcpkit.Resource `uri:"note://{id}"`
		}
	}
	badComplete struct {
		_ struct {
			Page mcpkit.Resource `uri:"page://{id}" complete:"id=Nothing"`
		}
	}
	misspeltInclude struct {
		plainService `mcpkit:"included"`
	}
	namedInclude struct {
		Inner plainService `mcpkit:"include"`
	}
)

func (noMethod) Search() string           { return "" }
func (noMarker) Search() string           { return "" }
func (noURI) Search() string              { return "" }
func (relativeURI) Search() string        { return "" }
func (unusedVariable) Search() string     { return "" }
func (badComplete) Page(id string) string { return "" }

func (misspeltInclude) Other() string { return "" }
func (namedInclude) Other() string    { return "" }

func TestAuthorsMistakes(t *testing.T) {
	for _, test := range []struct {
		service any
		want    string
	}{
		{noMethod{}, `mcpkit: a service is a pointer to a struct, not mcpkit_test.noMethod; write &noMethod{}`},
		{(*manyMistakes)(nil), `mcpkit: the service is a nil *mcpkit_test.manyMistakes; write for example &Notes{}`},
		{nil, `mcpkit: a service is a pointer to a struct, not <nil>; write for example &Notes{}`},
		{mcpkit.MustNew(nil), `mcpkit: a *mcpkit.Server is not a service; pass it to Server.Add or Server.Mount`},
		{mcpkit.NewTool("now", func() string { return "noon" }), `mcpkit: a *mcpkit.Builder is not a service; pass it to Server.Add or Server.Mount`},
		{&noMethod{}, `noMethod.Serch: noMethod has no exported method "Serch"; did you mean "Search"?`},
		{&cachedChange{}, `cachedChange.Do: cache: a call that is not made could be a change that is not made; add hints:"readonly" if the tool only reads, or drop the tag`},
		{&cachedNever{}, `cachedNever.Do: cache: it says no time; write for example cache:"60s"`},
		{&noMarker{}, `noMarker.Search: string is not a marker; known are mcpkit.Tool, mcpkit.Resource, mcpkit.Prompt, mcpkit.Event, mcpkit.Skip`},
		{&namedBlock{}, `namedBlock.Annotations: markers stand in a blank field of a struct without a name: _ struct { Method mcpkit.Tool }`},
		{&blankMarker{}, `blankMarker._: markers stand in a blank field of a struct without a name: _ struct { Method mcpkit.Tool }`},
		{&markerOutside{}, `markerOutside.Search: markers stand in a blank field of a struct without a name: _ struct { Method mcpkit.Tool }`},
		{&noURI{}, `noURI.Search: a resource needs a URI; write for example uri:"note://{id}"`},
		{&relativeURI{}, `relativeURI.Search: "notes/all" is not an absolute URI; write for example "note://{id}"`},
		{&unusedVariable{}, `unusedVariable.Search: no parameter takes the arguments "id"; add a parameter for each`},
		{&badComplete{}, `badComplete.Page: parameter "id" is completed by method "Nothing", which does not exist`},
		{&misspeltInclude{}, `misspeltInclude.plainService: tag mcpkit: "included" is unknown; write mcpkit:"include"`},
		{&namedInclude{}, `namedInclude.Inner: tag mcpkit: a field that is not embedded promotes no methods; embed it, or drop the tag`},
	} {
		t.Run(test.want, func(t *testing.T) {
			srv := newServer(t, nil)
			err := srv.Register(test.service)
			require.Error(t, err)
			require.Equal(t, test.want, position.ReplaceAllString(err.Error(), ""))
		})
	}
}

// position is where a method is declared.
var position = regexp.MustCompile(` \(register_test\.go:\d+\)`)

type (
	cachedChange struct {
		_ struct {
			Do mcpkit.Tool `cache:"60s" hints:"idempotent"`
		}
	}
	cachedNever struct {
		_ struct {
			Do mcpkit.Tool `cache:"private" hints:"readonly"`
		}
	}
)

func (cachedChange) Do() string { return "" }
func (cachedNever) Do() string  { return "" }

type manyMistakes struct {
	_ struct {
		Gone   mcpkit.Tool
		Search mcpkit.Tool `hints:"readnly" titel:"x"`
	}
}

func (manyMistakes) Search() string                  { return "" }
func (manyMistakes) Stream(context.Context) chan int { return nil }

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	_, err := mcpkit.New(&manyMistakes{}, mcpkit.With(&noURI{}))
	require.Error(t, err)
	for _, part := range []string{`"Gone"`, `"readnly"`, `"titel"`, `chan int`, `noURI.Search`} {
		require.Contains(t, err.Error(), part)
	}
}

type (
	clashing struct {
		_ struct {
			First  mcpkit.Tool     `name:"same"`
			Second mcpkit.Tool     `name:"same"`
			Third  mcpkit.Tool     `scopes:"notes:write"`
			Both   mcpkit.Tool     `params:"in"`
			Bad    mcpkit.Resource `uri:"note://{"`
		}
	}
	alsoClashing struct {
		_ struct {
			Other mcpkit.Tool `name:"same"`
		}
	}
)

func (clashing) First() string        { return "" }
func (clashing) Second() string       { return "" }
func (clashing) Third() string        { return "" }
func (clashing) Both(chan int) func() { return nil }
func (clashing) Bad() func()          { return nil }
func (alsoClashing) Other() string    { return "" }

func TestMistakesOfEveryStepAreReportedAtOnce(t *testing.T) {
	_, err := mcpkit.New(&clashing{}, mcpkit.With(&alsoClashing{}))
	require.Error(t, err)
	require.Equal(t, `clashing.Bad: uri template "note://{": the "{" before "" is not closed; add a "}"
clashing.Bad: a result of type func() cannot be sent; return data, an io.Reader or an iter.Seq
clashing.Both: parameter 1 is a chan int, which no argument can give; give it with mcpkit.Provide, or take one of context.Context, *mcpkit.Call, *slog.Logger, *oauth.Principal, http.Header; if the method is not for clients, hide it with mcpkit.Skip or mcpkit.OptIn
clashing.Both: a result of type func() cannot be sent; return data, an io.Reader or an iter.Seq
clashing.Third: it demands the scopes "notes:write", but nobody authenticates callers: give mcpkit.Authenticated() if a resource server or other middleware does, or mcpkit.TrustLocal("notes:write") to trust local callers
mcpkit: tool "same" is registered twice, by clashing.First and clashing.Second; give one of them the tag name, or its service mcpkit.Prefix
mcpkit: tool "same" is registered twice, by clashing.First and alsoClashing.Other; give one of them the tag name, or its service mcpkit.Prefix`, position.ReplaceAllString(err.Error(), ""))

	srv := newServer(t, &alsoClashing{})
	require.Error(t, srv.Register(&clashing{}))
	require.Equal(t, []string{"same"}, toolNames(t, srv), "nothing of a service with mistakes is there")
}

// An option does not compile where it has no meaning.
func TestOptionsOfTheWrongPlaceDoNotCompile(t *testing.T) {
	for _, test := range []struct {
		name                string
		opt                 mcpkit.Option
		ofRegister, ofMount bool
	}{
		{name: "Over", opt: mcpkit.Over()},
		{name: "With", opt: mcpkit.With(&optedIn{})},
		{name: "OptIn", opt: mcpkit.OptIn(), ofRegister: true},
		{name: "Prefix", opt: mcpkit.Prefix("p"), ofRegister: true},
		{name: "Around", opt: mcpkit.Around(), ofRegister: true, ofMount: true},
		{name: "Visible", opt: mcpkit.Visible(nil), ofRegister: true, ofMount: true},
	} {
		_, ofRegister := test.opt.(mcpkit.ServiceOption)
		_, ofMount := test.opt.(mcpkit.MountOption)
		require.Equal(t, []bool{test.ofRegister, test.ofMount}, []bool{ofRegister, ofMount}, test.name)
	}
}

func TestFaultsOfOptions(t *testing.T) {
	_, err := mcpkit.New(nil, mcpkit.PageSize(0))
	require.EqualError(t, err, "mcpkit: PageSize(0): a page holds at least 1 item")
	_, err = mcpkit.New(nil, mcpkit.StateKeys([]byte("short")))
	require.EqualError(t, err, "mcpkit: StateKeys: key 1 has 5 bytes; at least 32 random bytes are needed")
	_, err = mcpkit.New(nil, mcpkit.Provide(func(context.Context) (*slog.Logger, error) { return slog.Default(), nil }))
	require.EqualError(t, err, "mcpkit: Provide[*slog.Logger]: methods get it from the call; provide a type of your own")
	_, err = mcpkit.New(nil, mcpkit.Provide(func(ctx context.Context) (context.Context, error) { return ctx, nil }))
	require.EqualError(t, err, "mcpkit: Provide[context.Context]: methods get it from the call; provide a type of your own")
}

// Around may have a guard, so it must not get lost.
func TestOptionsOfAServiceNeedTheService(t *testing.T) {
	const want = "mcpkit: Prefix, OptIn and Around are for the service that New and Serve get, which is nil; pass them to With or Register"
	for _, o := range []mcpkit.Option{mcpkit.Prefix("p"), mcpkit.OptIn(), mcpkit.Around(func(next mcpkit.Handler) mcpkit.Handler { return next })} {
		_, err := mcpkit.New(nil, o, mcpkit.With(&optedIn{}))
		require.EqualError(t, err, want)
	}
}

// disk is a service whose tools have names with a slash.
type disk struct {
	_ struct {
		Read  mcpkit.Tool   `name:"filesystem/read"`
		About mcpkit.Prompt `name:"filesystem/about"`
	}
}

func (*disk) Read() string  { return "read" }
func (*disk) About() string { return "about" }

func TestNamesWithASlashAreAccepted(t *testing.T) {
	long := strings.Repeat("a", 65)
	var log bytes.Buffer
	srv := newServer(t, &disk{}, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, srv.Add(
		mcpkit.NewTool("größe", func() string { return "size" }), mcpkit.NewTool(long, func() string { return "long" }),
		mcpkit.NewTool("plain", func() string { return "" })))
	require.ErrorContains(t, srv.Add(mcpkit.NewTool("a\nb", func() {})), `name "a\nb" contains '\n'`)
	srv.MustMount("m", newServer(t, &disk{}))
	require.Empty(t, log.String(), "New, Add and Mount log nothing")
	for _, p := range []*peer{modern(t, srv), legacy(t, srv, protocol.V20251125)} {
		require.ElementsMatch(t, []string{long, "filesystem/read", "größe", "m_filesystem/read", "plain"}, names(t, p, "tools/list", "tools", "name"))
		require.Contains(t, p.result("tools/call", `{"name":"filesystem/read"}`), `"read"`)
		require.Contains(t, p.result("tools/call", `{"name":"m_filesystem/read"}`), `"read"`)
		require.Contains(t, p.result("tools/call", `{"name":"größe"}`), `"size"`)
		require.Contains(t, p.result("prompts/get", `{"name":"filesystem/about"}`), `"about"`)
	}
}

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

var mistakePlace = regexp.MustCompile(`\(register_test\.go:\d+\)`)

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

// poems has completers whose names are misspelt.
type poems struct {
	_ struct {
		Poem mcpkit.Prompt   `params:"style" complete:"style=Stlyes"`
		Line mcpkit.Resource `uri:"poem://{number}" params:"number" complete:"numbr=Numbers"`
	}
}

func (*poems) Poem(string) string                                { return "" }
func (*poems) Line(int) string                                   { return "" }
func (*poems) Styles(context.Context, string) ([]string, error)  { return nil, nil }
func (*poems) Numbers(context.Context, string) ([]string, error) { return nil, nil }

func TestMisspeltCompletersAreMistakes(t *testing.T) {
	_, err := mcpkit.New(&poems{})
	require.ErrorContains(t, err, `parameter "style" is completed by method "Stlyes", which does not exist; did you mean "Styles"?`)
	require.ErrorContains(t, err, `complete names "numbr", which is not a parameter; did you mean "number"?`)
}

func TestVariablesOfAURIAreCalledSo(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Items(mcpkit.NewResource("poem://{number}", "poem", func(number int) string { return "x" })))
	p := modern(t, srv)
	require.Contains(t, p.fails("resources/read", `{"uri":"poem://ten"}`).Message, "1 problem with the variables of the URI:\n/number: got \"ten\", want an integer")

	err := srv.Add(mcpkit.NewResource("shelf://{row}/{place}", "shelf", func(row int) string { return "x" }))
	require.ErrorContains(t, err, `the variables of the URI are "row", "place", but the parameters are (int)`)
}

func TestAMissingScopeIsLoggedForTheOperatorAlone(t *testing.T) {
	var log bytes.Buffer
	srv := newServer(t, nil, mcpkit.Authenticated(), mcpkit.Logger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	require.NoError(t, srv.Add(mcpkit.NewTool("wipe", func() string { return "" }).Scopes("disk:write")))
	ctx := oauth.NewContext(t.Context(), &oauth.Principal{Subject: "ann", Scopes: []string{"disk:read"}})
	p := modern(t, srv)
	call := func(name string) string {
		return p.raw(ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+withMeta(`{"name":"`+name+`"}`)+`}`)
	}
	unknown := call("rinse")
	require.Empty(t, log.String())
	require.Equal(t, strings.ReplaceAll(unknown, "rinse", "wipe"), call("wipe"), "the caller learns no more than of a tool that is not there")
	require.Contains(t, log.String(), `name=wipe scopes=disk:write callerScopes=disk:read principal=ann`)
}

func TestMethodsOfTheProgramHoldParamsToTheirTags(t *testing.T) {
	type params struct {
		Index string `json:"index" validate:"oneof=notes tags"`
		Limit int    `json:"limit" default:"10" validate:"max=50"`
	}
	srv := newServer(t, nil)
	require.NoError(t, mcpkit.Handle(srv, "example.com/reindex", func(_ context.Context, p *params) (map[string]int, error) {
		return map[string]int{p.Index: p.Limit}, nil
	}))
	p := modern(t, srv)
	require.Contains(t, p.result("example.com/reindex", `{"index":"notes"}`), `"notes":10`)
	require.Equal(t, "3 problems with the params:\n/limit: got 99, want an integer of at most 50\n/colour: unknown; known: \"index\", \"limit\"\n"+
		"/index: missing, want one of \"notes\" or \"tags\"",
		p.fails("example.com/reindex", `{"limit":99,"colour":1}`).Message)
	require.ErrorContains(t, mcpkit.Handle(srv, "example.com/other", func(context.Context, struct {
		A int `validate:"mni=1"`
	}) (struct{}, error) {
		return struct{}{}, nil
	}), `mcpkit: Handle("example.com/other"), field A: unknown rule "mni"; did you mean "min"?`)
}
