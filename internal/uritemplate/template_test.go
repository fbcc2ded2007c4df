package uritemplate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The variables of RFC 6570, sections 1.2 and 3.2.
var rfc = map[string]string{
	"var": "value", "hello": "Hello World!", "path": "/foo/bar", "empty": "", "x": "1024", "y": "768",
	"dom": "example.com", "dub": "me/too", "half": "50%", "base": "http://example.com/home/", "who": "fred", "v": "6",
}

func TestExpandExamplesOfTheRFC(t *testing.T) {
	for _, test := range []struct{ template, want string }{
		// 1.2, level 1
		{"{var}", "value"},
		{"{hello}", "Hello%20World%21"},
		// level 2
		{"{+var}", "value"},
		{"{+hello}", "Hello%20World!"},
		{"{+path}/here", "/foo/bar/here"},
		{"here?ref={+path}", "here?ref=/foo/bar"},
		{"X{#var}", "X#value"},
		{"X{#hello}", "X#Hello%20World!"},
		// level 3
		{"map?{x,y}", "map?1024,768"},
		{"{x,hello,y}", "1024,Hello%20World%21,768"},
		{"{+x,hello,y}", "1024,Hello%20World!,768"},
		{"{+path,x}/here", "/foo/bar,1024/here"},
		{"{#x,hello,y}", "#1024,Hello%20World!,768"},
		{"{#path,x}/here", "#/foo/bar,1024/here"},
		{"X{.var}", "X.value"},
		{"X{.x,y}", "X.1024.768"},
		{"{/var}", "/value"},
		{"{/var,x}/here", "/value/1024/here"},
		{"{;x,y}", ";x=1024;y=768"},
		{"{;x,y,empty}", ";x=1024;y=768;empty"},
		{"{?x,y}", "?x=1024&y=768"},
		{"{?x,y,empty}", "?x=1024&y=768&empty="},
		{"?fixed=yes{&x}", "?fixed=yes&x=1024"},
		{"{&x,y,empty}", "&x=1024&y=768&empty="},
		// level 4, the prefix modifier
		{"{var:3}", "val"},
		{"{var:30}", "value"},
		{"{+path:6}/here", "/foo/b/here"},
		{"{#path:6}/here", "#/foo/b/here"},
		{"X{.var:3}", "X.val"},
		{"{/var:1,x}", "/v/1024"},
		{"{;hello:5}", ";hello=Hello"},
		{"{?var:3}", "?var=val"},
		{"{&var:3}", "&var=val"},
		// 3.2.2
		{"{half}", "50%25"},
		{"O{empty}X", "OX"},
		{"O{undef}X", "OX"},
		{"{x,y}", "1024,768"},
		{"?{x,empty}", "?1024,"},
		{"?{x,undef}", "?1024"},
		{"?{undef,y}", "?768"},
		// 3.2.3
		{"{+half}", "50%25"},
		{"{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"},
		{"{+base}index", "http://example.com/home/index"},
		{"O{+empty}X", "OX"},
		{"O{+undef}X", "OX"},
		{"up{+path}{var}/here", "up/foo/barvalue/here"},
		// 3.2.4
		{"foo{#empty}", "foo#"},
		{"foo{#undef}", "foo"},
		// 3.2.5
		{"{.who}", ".fred"},
		{"{.half,who}", ".50%25.fred"},
		{"www{.dom}", "www.example.com"},
		{"X{.empty}", "X."},
		{"X{.undef}", "X"},
		// 3.2.6
		{"{/half,who}", "/50%25/fred"},
		{"{/who,dub}", "/fred/me%2Ftoo"},
		{"{/var,empty}", "/value/"},
		{"{/var,undef}", "/value"},
		// 3.2.7
		{"{;who}", ";who=fred"},
		{"{;half}", ";half=50%25"},
		{"{;empty}", ";empty"},
		{"{;v,empty,who}", ";v=6;empty;who=fred"},
		{"{;x,y,undef}", ";x=1024;y=768"},
		// 3.2.8 and 3.2.9
		{"{?who}", "?who=fred"},
		{"{?half}", "?half=50%25"},
		{"{?x,y,undef}", "?x=1024&y=768"},
		{"{&who}", "&who=fred"},
		{"{&half}", "&half=50%25"},
		{"{&x,y,undef}", "&x=1024&y=768"},
	} {
		t.Run(test.template, func(t *testing.T) {
			require.Equal(t, test.want, must(t, test.template).expand(rfc))
		})
	}
}

func TestExpand(t *testing.T) {
	for _, test := range []struct {
		template string
		values   map[string]string
		want     string
	}{
		{"note://{id}", map[string]string{"id": "ä/b c"}, "note://%C3%A4%2Fb%20c"},
		{"note://{id:2}", map[string]string{"id": "äöü"}, "note://%C3%A4%C3%B6"},
		{"file://{/path*}", map[string]string{"path": "a b/c"}, "file:///a%20b/c"},
		{"file://{/path*}", nil, "file://"},
		{"x:{+raw}", map[string]string{"raw": "%41%4g%"}, "x:%41%254g%25"},
		{"käse://{id}", map[string]string{"id": "1"}, "k%C3%A4se://1"},
		{"", nil, ""},
	} {
		t.Run(test.template, func(t *testing.T) {
			require.Equal(t, test.want, must(t, test.template).expand(test.values))
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, test := range []struct{ template, err string }{
		{"note://{id", `the "{" at character 8 is not closed; add a "}"`},
		{"note://{a{b}", `the "{" at character 8 is not closed; add a "}"`},
		{"ä{", `the "{" at character 2 is not closed; add a "}"`},
		{"note://id}", `there is a "}" without a "{" at character 10; write %7D for the character itself`},
		{"note://{}", `"{}" names no variable; write {name}`},
		{"note://{+}", `{+}: a variable has no name; write one, without spaces, and commas only between names`},
		{"note://{a,}", `{a,}: a variable has no name; write one, without spaces, and commas only between names`},
		{"note://{=a}", `{=a}: '=' is not an operator; the operators are + # . / ; ? &`},
		{"note://{ a}", `{ a}: " a" is not a name of a variable; write letters, digits, '_' and '.'`},
		{"note://{a-b}", `{a-b}: "a-b" is not a name of a variable; write letters, digits, '_' and '.'`},
		{"note://{a..b}", `{a..b}: "a..b" is not a name of a variable; write letters, digits, '_' and '.'`},
		{"note://{a}/{a}", `{a}: the variable "a" is there twice; give each its own name`},
		{"note://{a*}", `{a*}: of the explode modifier only {/name*} is supported; write {+a} for a value with slashes`},
		{"note://{/a,b*}", `{/a,b*}: of the explode modifier only {/name*} is supported; write {+b} for a value with slashes`},
		{"note://{?a*}", `{?a*}: of the explode modifier only {/name*} is supported; write {+a} for a value with slashes`},
		{"note://{a:}", `{a:}: the modifier ":" is none; write :n for the first n characters, n from 1 to 9999`},
		{"note://{a:0}", `{a:0}: the modifier ":0" is none; write :n for the first n characters, n from 1 to 9999`},
		{"note://{a:+3}", `{a:+3}: the modifier ":+3" is none; write :n for the first n characters, n from 1 to 9999`},
		{"note://{a:10000}", `{a:10000}: the modifier ":10000" is none; write :n for the first n characters, n from 1 to 9999`},
		{"note://{/a*:3}", `{/a*:3}: the modifier "*:3" is none; write :n for the first n characters, n from 1 to 9999`},
		{"note://a b", `' ' cannot stand in a URI; write %20 for it`},
		{"note://%4", `"%4" is not a percent-encoded character; write %25 for a percent sign`},
		{"note://\xff", `it is not valid UTF-8`},
	} {
		t.Run(test.template, func(t *testing.T) {
			_, err := Parse(test.template)
			require.EqualError(t, err, fmt.Sprintf("uri template %q: %s", test.template, test.err))
		})
	}

	long := strings.Repeat("a", maxTemplate+1)
	_, err := Parse(long)
	require.EqualError(t, err, fmt.Sprintf("uri template %q: it has 4097 bytes; at most 4096 are allowed", long))

	var many strings.Builder
	for i := range maxVars + 1 {
		fmt.Fprintf(&many, "/{v%d}", i)
	}
	_, err = Parse(many.String())
	require.EqualError(t, err, fmt.Sprintf("uri template %q: {v64}: there are more than 64 variables", many.String()))
}

func TestVarsAndPrefix(t *testing.T) {
	tmpl := must(t, "note://{a}/{+b}{/c*}{?d,e:3}{#f}")
	require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, tmpl.Vars())
	require.Equal(t, "note://", tmpl.Prefix())
	require.Equal(t, "note://{a}/{+b}{/c*}{?d,e:3}{#f}", tmpl.String())
	require.Equal(t, "", must(t, "{a}").Prefix())
	require.Equal(t, "a://b", must(t, "a://b").Prefix())
}

func TestMatchable(t *testing.T) {
	for _, test := range []struct{ template, err string }{
		{"note://{a}/{b}{?c}{&d}{#e}", ""},
		{"note://x?a={a}&b={b}{&c}", ""},
		{"note://{a}{b}", `nothing divides the variables "a" and "b"; put a character between them`},
		{"note://{+a}{b}/c", `nothing divides the variables "a" and "b"; put a character between them`},
		{"note://x{&a}", `{&a} is not in a query; write {?a,b} at the end of the path, then {&c} for more`},
		{"note://{?a}/x", `{?a} is not in a query; write {?a,b} at the end of the path, then {&c} for more`},
		{"note://{?a}{?b}", `{?a} is not in a query; write {?a,b} at the end of the path, then {&c} for more`},
	} {
		err := must(t, test.template).Matchable()
		if test.err == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, fmt.Sprintf("uri template %q: %s", test.template, test.err))
	}
}

func TestMatch(t *testing.T) {
	type values = map[string]string
	for _, test := range []struct {
		template, uri string
		want          values // nil: no match
	}{
		{"note://all", "note://all", values{}},
		{"note://all", "note://al", nil},
		{"note://all", "note://alle", nil},
		{"note://all", "Note://all", nil},
		{"note://all", "note://%61ll", nil},
		{"note://all", "note://all?x=1", nil},
		{"note://all", "note://all#x", nil},

		// simple
		{"note://{id}", "note://7", values{"id": "7"}},
		{"note://{id}", "note://", nil},
		{"note://{id}", "note://a/b", nil},
		{"note://{id}", "note://a?b", nil},
		{"note://{id}", "note://a#b", nil},
		{"note://{id}", "note://a%20b", values{"id": "a b"}},
		{"note://{id}", "note://a+b", values{"id": "a+b"}},
		{"note://{id}", "note://%C3%A4", values{"id": "ä"}},
		{"note://{id}", "note://ä", values{"id": "ä"}},
		{"note://{id}", "note://%FF", nil},
		{"note://{id}", "note://\xff", nil},
		{"note://{id}", "note://%4", nil},
		{"note://{id}", "note://%zz", nil},
		{"note://{id}/x", "note://7/x", values{"id": "7"}},
		{"note://{id}/x", "note://7/xx", nil},
		{"note://{a}/{b}", "note://1/2", values{"a": "1", "b": "2"}},
		{"note://{a}/{b}", "note://1/2/3", nil},
		{"note://{a,b}", "note://1,2", values{"a": "1", "b": "2"}},
		{"{a}-{b}", "x-y-z", values{"a": "x", "b": "y-z"}},
		{"{a}-{b}.txt", "x.y-z.txt.txt", values{"a": "x.y", "b": "z.txt"}},
		{"{a}-{b}-{c}x", "1-2-3x-4x", values{"a": "1", "b": "2", "c": "3x-4"}},
		{"{name}{.ext}", "notes.md", values{"name": "notes", "ext": "md"}},
		{"{name}{.ext}", "notes", values{"name": "notes"}},
		{"test://template/{id}/data", "test://template/123/data", values{"id": "123"}},

		// decoded once, and screened
		{"note://{id}", "note://%252e%252e%252fetc", values{"id": "%2e%2e%2fetc"}},
		{"note://{id}", "note://..", nil},
		{"note://{id}", "note://%2e%2e", nil},
		{"note://{id}", "note://.%2E", nil},
		{"note://{id}", "note://%2e%2e%2fetc", nil},
		{"note://{id}", "note://a%2fb", nil},
		{"note://{id}", "note://..%5Cetc", nil},
		{"note://{id}", "note://a%00", nil},
		{"note://{id}", "note://a..b", values{"id": "a..b"}},
		{"note://{id}", "note://...", values{"id": "..."}},
		{"note://.{id}", "note://..", nil},
		{"note://.{id}", "note://..a", values{"id": ".a"}},
		{"note://{a}.{b}/x", "note://..%2e/x", values{"a": ".", "b": "."}},
		{"note://../{id}", "note://../x", values{"id": "x"}},

		// across slashes
		{"file:///{+path}", "file:///a/b.txt", values{"path": "a/b.txt"}},
		{"file:///{+path}", "file:///a%2Fb", values{"path": "a/b"}},
		{"file:///{+path}", "file:///", nil},
		{"file:///{+path}", "file:///a/../b", nil},
		{"file:///{+path}", "file:///a/%2e%2E/b", nil},
		{"file:///{+path}", "file:///a%2f..%2fb", nil},
		{"file:///{+path}", "file:///a/b?c", nil},
		{"file:///{+path}/{name}", "file:///a/b/c", values{"path": "a/b", "name": "c"}},
		{"file:///{+path}/end", "file:///a/end/end", values{"path": "a/end"}},

		// segments
		{"file://root{/path*}", "file://root/a/b%20c", values{"path": "a/b c"}},
		{"file://root{/path*}", "file://root", values{}},
		{"file://root{/path*}", "file://root/", values{"path": ""}},
		{"file://root{/path*}", "file://rooted", nil},
		{"file://root{/path*}", "file://root/a%2Fb", nil},
		{"file://root{/path*}", "file://root/a/../b", nil},
		{"file://root{/path*}/end", "file://root/a/end/end", values{"path": "a/end"}},
		{"file://root{/path*}/end", "file://root/end", values{}},
		{"x:{/a,b}", "x:/1/2", values{"a": "1", "b": "2"}},
		{"x:{/a,b}", "x:/1", values{"a": "1"}},
		{"x:{/a,b}", "x:/1/2/3", nil},

		// parameters of the path
		{"x:{;a,b}", "x:;a=1;b=2", values{"a": "1", "b": "2"}},
		{"x:{;a,b}", "x:;b=2", values{"b": "2"}},
		{"x:{;a,b}", "x:;a;b=2", values{"a": "", "b": "2"}},
		{"x:{;a,b}", "x:;ab=2", nil},

		// query
		{"n://s{?q,page}", "n://s?q=a%20b&page=2", values{"q": "a b", "page": "2"}},
		{"n://s{?q,page}", "n://s?page=2&q=a", values{"q": "a", "page": "2"}},
		{"n://s{?q,page}", "n://s?page=2", values{"page": "2"}},
		{"n://s{?q,page}", "n://s", values{}},
		{"n://s{?q,page}", "n://s?", values{}},
		{"n://s{?q,page}", "n://s?utm=1&q=x&&y", values{"q": "x"}},
		{"n://s{?q,page}", "n://s?q", values{"q": ""}},
		{"n://s{?q,page}", "n://s?q=", values{"q": ""}},
		{"n://s{?q,page}", "n://s?q=a=b", values{"q": "a=b"}},
		{"n://s{?q,page}", "n://s?q=a/b", values{"q": "a/b"}},
		{"n://s{?q,page}", "n://s?q=../b", nil},
		{"n://s{?q,page}", "n://s?q=%00", nil},
		{"n://s{?q,page}", "n://s?q=1&q=2", nil},
		{"n://s{?q,page}", "n://s?%71=1", values{"q": "1"}},
		{"n://s{?q,page}", "n://s?%7=1", nil},
		{"n://s{?q,page}", "n://s?q=a+b", values{"q": "a+b"}},
		{"n://s{?q,page}", "n://s?q=1#x", nil},
		{"n://s?q={query}&lang={lang}", "n://s?lang=de&q=x", values{"query": "x", "lang": "de"}},
		{"n://s?q={query}&lang={lang}", "n://s?q=x", nil},
		{"n://s?q={query}", "n://s?q=", nil},
		{"n://s?v=2{&q}", "n://s?q=1&v=2", values{"q": "1"}},
		{"n://s?v=2{&q}", "n://s?v=2", values{}},
		{"n://s?v=2{&q}", "n://s?q=1", nil},
		{"n://s?v=2{&q}", "n://s?v=3&q=1", nil},
		{"n://s?v=2", "n://s?v=2", values{}},
		{"n://s?v=2", "n://s?v=2&w=3", nil},
		{"n://{id}{?q}{#frag}", "n://7?q=1#top", values{"id": "7", "q": "1", "frag": "top"}},
		{"n://{id}{?q}#x", "n://7#x", values{"id": "7"}},
		{"map?{x,y}", "map?1024,768", values{"x": "1024", "y": "768"}},

		// fragment
		{"n://{id}{#frag}", "n://7#a/b?c#d", values{"id": "7", "frag": "a/b?c#d"}},
		{"n://{id}{#frag}", "n://7", values{"id": "7"}},
		{"n://{id}{#frag}", "n://7#", values{"id": "7", "frag": ""}},
		{"n://{id}{#frag}", "n://7#..", nil},

		// prefix
		{"n://{id:3}", "n://abc", values{"id": "abc"}},
		{"n://{id:3}", "n://äöü", values{"id": "äöü"}},
		{"n://{id:3}", "n://abcd", nil},
	} {
		t.Run(test.template+" "+test.uri, func(t *testing.T) {
			got, ok := must(t, test.template).Match(test.uri)
			require.Equal(t, test.want != nil, ok)
			if ok {
				require.Equal(t, test.want, valuesOf(got))
			}
		})
	}
}

func TestMatchRefusesLongURIs(t *testing.T) {
	tmpl := must(t, "n://{+x}")
	_, ok := tmpl.Match("n://" + strings.Repeat("a", MaxURI-4))
	require.True(t, ok)
	_, ok = tmpl.Match("n://" + strings.Repeat("a", MaxURI-3))
	require.False(t, ok)
}

func TestValuesGet(t *testing.T) {
	v, ok := must(t, "n://{a}{?b}").Match("n://1")
	require.True(t, ok)
	value, ok := v.Get("a")
	require.True(t, ok)
	require.Equal(t, "1", value)
	_, ok = v.Get("b")
	require.False(t, ok)
	_, ok = v.Get("c")
	require.False(t, ok)
	_, ok = Values{}.Get("a")
	require.False(t, ok)
}

// It counts the steps of the matcher, since seconds depend on the machine.
func TestMatchIsLinear(t *testing.T) {
	for _, template := range []string{
		"{a}-{b}-{c}-{d}-{e}-{f}x", "{a}-{b}", "{+a}/{+b}/{+c}/{+d}!", "{/id*}x", "x{/a,b,c,d,e,f}{/g*}/{h}!", "{a}.{b}{.c,d,e,f,g}!",
		"{;a,b,c}{.d}{/e*}-{f}!", "{+a}{b}{+c}{d}{+e}!", "{a}/{b}/{c}", "{#a,b,c}!", "{/a}{/b}{/c}{/d}{/e}{/f}{/g}{/h}!",
	} {
		tmpl := must(t, template)
		for _, fill := range []string{"-", "/", ".", "a-", "/a", ";a=", ";a", ",", "a"} {
			for _, ends := range [][2]string{{"", ""}, {"x", "?"}, {"#", "#"}, {"/", "-"}} {
				m := matcher{}
				m.begin(tmpl.path, ends[0]+strings.Repeat(fill, MaxURI/len(fill))+ends[1], len(tmpl.vars))
				m.run(0, 0)
				require.LessOrEqual(t, m.steps, 3*len(tmpl.path)*len(m.s), "%s with %q", template, fill)
			}
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range []string{"note://{id}", "{a}-{b}", "file://{/path*}", "x{?a,b}{#c}", "{+a}/{b:3}{.c}", "{;a,b}?x={y}&z=1{&w}", "a?{b}", "{a", "..{a}", "%2e{a}"} {
		f.Add(s, "note://a-b/c?a=1&b=2#c")
		f.Add(s, "x/../%2e%00;a=1")
	}
	f.Fuzz(func(t *testing.T, template, uri string) {
		tmpl, err := Parse(template)
		if err != nil {
			return
		}
		tmpl.expand(rfc)
		_ = tmpl.Matchable()
		v, ok := tmpl.Match(uri)
		if !ok {
			return
		}
		require.True(t, strings.HasPrefix(uri, tmpl.Prefix()))
		for name, value := range valuesOf(v) {
			require.Contains(t, tmpl.vars, name)
			require.NotContains(t, value, "\x00")
			require.NotContains(t, strings.FieldsFunc(value, func(r rune) bool { return r == '/' || r == '\\' }), "..")
		}
	})
}

// What a template expands to, it matches, with the same values.
func FuzzRoundTrip(f *testing.F) {
	f.Add("a", "b", "c")
	f.Add("ä ö", "x/y", "%2e%2e")
	f.Add("-", "?", "")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, value := range []string{a, b, c} {
			if strings.ToValidUTF8(value, "") != value || strings.Contains(value, "\x00") || hasDotDot(value) || len(value) > 500 {
				t.Skip("such a value does not match, or is longer than URIs are")
			}
		}
		for _, template := range []string{
			"n://{a}/{c}", "n://x{/b*}/end", "n://x{?a,b,c}", "n://x?a={a}&k=1{&b,c}", "n://{a}{?b,c}", "n://x{;a}{#d}", "n://x{/a}/y{?b}", "n://x{;a,c}",
		} {
			tmpl := must(t, template)
			values := map[string]string{}
			for name, value := range map[string]string{"a": a, "b": b, "c": c} {
				if slices.Contains(tmpl.vars, name) {
					values[name] = value
				}
			}
			uri := tmpl.expand(values)
			got, ok := tmpl.Match(uri)
			if !ok {
				require.True(t, refused(template, values) || climbs(uri), "%s: %s with %q", template, uri, values)
				continue
			}
			require.True(t, maps.Equal(values, valuesOf(got)), "%s: %s: %q is not %q", template, uri, valuesOf(got), values)
		}
	})
}

// refused says what a template cannot give back: a slash in, or nothing for, a simple variable.
func refused(template string, values map[string]string) bool {
	for name, value := range values {
		for _, simple := range []string{"{" + name + "}", "{/" + name + "}"} {
			if strings.Contains(template, simple) && (value == "" || strings.Contains(value, "/") && !strings.Contains(template, "={"+name+"}")) {
				return true
			}
		}
		if strings.Contains(template, "{;") && strings.Contains(value, "/") {
			return true
		}
	}
	return false
}

func must(t testing.TB, template string) *Template {
	t.Helper()
	tmpl, err := Parse(template)
	require.NoError(t, err)
	return tmpl
}

func BenchmarkMatch(b *testing.B) {
	for _, bench := range []struct{ template, uri string }{
		{"note://{id}", "note://1234"},
		{"repo://{owner}/{name}/issues/{number}", "repo://octo/cat%20s/issues/17"},
		{"n://s{?q,page}", "n://s?page=2&q=hello%20world"},
		{"file:///{+path}/{name}", "file:///a/b/c/d/e.txt"},
		{"note://{id}", "other://1234"},
	} {
		tmpl := must(b, bench.template)
		b.Run(bench.template, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tmpl.Match(bench.uri)
			}
		})
	}
}

// valuesOf returns the variables that have a value.
func valuesOf(v Values) map[string]string {
	m := map[string]string{}
	for _, name := range v.t.vars {
		if value, ok := v.Get(name); ok {
			m[name] = value
		}
	}
	return m
}
