package uritemplate

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const accepted = "it is not accepted; a template may have {id}, {+path} for a value with slashes, {/path*} for segments, " +
	"and {?a,b} at its end; names have letters, digits, '_' and '.'"

func TestParseErrors(t *testing.T) {
	for _, test := range []struct{ template, err string }{
		{"note://{id", `the "{" before "id" is not closed; add a "}"`},
		{"note://{a{b}", `the "{" before "a{b}" is not closed; add a "}"`},
		{"note://id}", `there is a "}" without a "{"; write %7D for the character itself`},
		{"note://{}", `{}: ` + accepted},
		{"note://{+}", `{+}: ` + accepted},
		{"note://{a,b}", `{a,b}: ` + accepted},
		{"note://{ a}", `{ a}: ` + accepted},
		{"note://{a-b}", `{a-b}: ` + accepted},
		{"note://{a..b}", `{a..b}: ` + accepted},
		{"note://{a*}", `{a*}: ` + accepted},
		{"note://{a:3}", `{a:3}: ` + accepted},
		{"note://{#a}", `{#a}: ` + accepted},
		{"note://{.a}", `{.a}: ` + accepted},
		{"note://{;a}", `{;a}: ` + accepted},
		{"note://{/a}", `{/a}: ` + accepted},
		{"note://x{&a}", `{&a}: ` + accepted},
		{"note://{?a,}", `{?a,}: ` + accepted},
		{"note://{?a}/x", `{?a}: a query may only stand at the end`},
		{"note://s?q={q}", `{q}: variables cannot follow ? or #; write {?a,b} at the end`},
		{"note://s?q=1{?r}", `{?r}: variables cannot follow ? or #; write {?a,b} at the end`},
		{"note://{a}/{a}", `{a}: the variable "a" is there twice; give each its own name`},
		{"note://{a}/{?a}", `{?a}: the variable "a" is there twice; give each its own name`},
		{"note://{+a}{b}/c", `{b}: nothing divides the variables "a" and "b"; put a character between them`},
		{"note://{/a*}{b}", `{b}: nothing divides the variables "a" and "b"; put a character between them`},
		{"note://a b", `' ' cannot stand in a URI; write %20 for it`},
		{"note://%4", `the % before "4" is not followed by two digits; write %25 for a percent sign`},
		{"note://../{id}", `it has a ".." segment`},
		{"note://%ff", `it is not valid UTF-8`},
	} {
		t.Run(test.template, func(t *testing.T) {
			_, err := Parse(test.template)
			require.EqualError(t, err, fmt.Sprintf("uri template %q: %s", test.template, test.err))
		})
	}

	long := strings.Repeat("a", maxTemplate+1)
	_, err := Parse(long)
	require.EqualError(t, err, fmt.Sprintf("uri template %q: it has 4097 bytes; at most 4096 are allowed", long))
}

func TestVarsAndPrefix(t *testing.T) {
	tmpl := must(t, "note://{a}/{+b}{/c*}{?d,e}")
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, tmpl.Vars())
	require.True(t, tmpl.IsList("c"))
	require.False(t, tmpl.IsList("b"))
	require.Equal(t, "note://", tmpl.Prefix())
	require.Equal(t, "", must(t, "{a}").Prefix())
	require.Equal(t, "a://b", must(t, "a://b").Prefix())
	require.Equal(t, "k%C3%A4se://1'%c3%a4", must(t, "käse://1'%c3%a4").Prefix())
}

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		template, uri string
		want          Values // nil: no match
	}{
		{"note://all", "note://all", Values{}},
		{"note://all", "note://al", nil},
		{"note://all", "Note://all", nil},
		{"note://all", "note://%61ll", nil},
		{"note://all", "note://all?x=1", nil},
		{"note://all", "note://all#x", nil},

		// simple
		{"note://{id}", "note://7", Values{"id": "7"}},
		{"note://{id}", "note://", nil},
		{"note://{id}", "note://a/b", nil},
		{"note://{id}", "note://a?b", nil},
		{"note://{id}", "note://a#b", nil},
		{"note://{id}", "note://a%20b", Values{"id": "a b"}},
		{"note://{id}", "note://a+b", Values{"id": "a+b"}},
		{"note://{id}", "note://%C3%A4", Values{"id": "ä"}},
		{"note://{id}", "note://ä", Values{"id": "ä"}},
		{"note://{id}", "note://%FF", nil},
		{"note://{id}", "note://%4", nil},
		{"note://{id}/x", "note://7/x", Values{"id": "7"}},
		{"note://{a}/{b}", "note://1/2", Values{"a": "1", "b": "2"}},
		{"{a}-{b}", "x-y-z", Values{"a": "x", "b": "y-z"}},
		{"{a}-{b}-{c}x", "1-2-3x-4x", Values{"a": "1", "b": "2", "c": "3x-4"}},

		// decoded once, and screened
		{"note://{id}", "note://%252e%252e%252fetc", Values{"id": "%2e%2e%2fetc"}},
		{"note://{id}", "note://..", nil},
		{"note://{id}", "note://%2e%2e", nil},
		{"note://{id}", "note://%2e%2e%2fetc", nil},
		{"note://{id}", "note://a%2fb", Values{"id": "a/b"}},
		{"note://{id}", "note://a%5Cetc", nil},
		{"n://s{?q,page}", "n://s?q=a%5Cb", Values{"q": `a\b`}},
		{"n://s{?q,page}", "n://s?q=..%5Cb", nil},
		{"note://{id}", "note://a%00", nil},
		{"note://{id}", "note://a..b", Values{"id": "a..b"}},
		{"note://{id}", "note://...", Values{"id": "..."}},
		{"note://.{id}", "note://..", nil},
		{"note://.{id}", "note://..a", Values{"id": ".a"}},
		{"note://{a}.{b}/x", "note://..%2e/x", Values{"a": ".", "b": "."}},

		// across slashes
		{"file:///{+path}", "file:///a/b.txt", Values{"path": "a/b.txt"}},
		{"file:///{+path}", "file:///a%2Fb", Values{"path": "a/b"}},
		{"file:///{+path}", "file:///", nil},
		{"file:///{+path}", "file:///a/../b", nil},
		{"file:///{+path}", "file:///a%2f..%2fb", nil},
		{"file:///{+path}", "file:///a/b?c", nil},
		{"file:///{+path}/{name}", "file:///a/b/c", Values{"path": "a/b", "name": "c"}},
		{"file:///{+path}/end", "file:///a/end/end", Values{"path": "a/end"}},

		// segments
		{"file://root{/path*}", "file://root/a/b%20c", Values{"path": "a/b c"}},
		{"file://root{/path*}", "file://root", Values{}},
		{"file://root{/path*}", "file://root/", Values{"path": ""}},
		{"file://root{/path*}", "file://rooted", nil},
		{"file://root{/path*}", "file://root/a%2Fb", nil},
		{"file://root{/path*}", "file://root/a/../b", nil},
		{"file://root{/path*}/end", "file://root/a/end/end", Values{"path": "a/end"}},
		{"file://root{/path*}/end", "file://root/end", Values{}},

		// query
		{"n://s{?q,page}", "n://s?q=a%20b&page=2", Values{"q": "a b", "page": "2"}},
		{"n://s{?q,page}", "n://s?page=2&q=a", Values{"q": "a", "page": "2"}},
		{"n://s{?q,page}", "n://s?page=2", Values{"page": "2"}},
		{"n://s{?q,page}", "n://s", Values{}},
		{"n://s{?q,page}", "n://s?", Values{}},
		{"n://s{?q,page}", "n://s?utm=1&q=x&&y", Values{"q": "x"}},
		{"n://s{?q,page}", "n://s?q", Values{"q": ""}},
		{"n://s{?q,page}", "n://s?q=a=b", Values{"q": "a=b"}},
		{"n://s{?q,page}", "n://s?q=a/b", Values{"q": "a/b"}},
		{"n://s{?q,page}", "n://s?q=../b", nil},
		{"n://s{?q,page}", "n://s?q=%00", nil},
		{"n://s{?q,page}", "n://s?q=1&q=2", nil},
		{"n://s{?q,page}", "n://s?%71=1", Values{"q": "1"}},
		{"n://s{?q,page}", "n://s?%7=1", nil},
		{"n://s{?q,page}", "n://s?q=a+b", Values{"q": "a+b"}},
		{"n://s{?q,page}", "n://s?q=1#x", nil},
		{"n://{id}?v=2", "n://7?v=2", Values{"id": "7"}},
		{"n://s?v=2", "n://s?v=2", Values{}},
		{"n://s?v=2", "n://s?v=2&w=3", nil},

		{"n://{id}{?q}", "n://7?q=1", Values{"id": "7", "q": "1"}},
		{"n://{id}{?q}", "n://7#?q=1", nil},
	} {
		t.Run(test.template+" "+test.uri, func(t *testing.T) {
			got, ok := must(t, test.template).Match(test.uri)
			require.Equal(t, test.want != nil, ok)
			if ok {
				require.Equal(t, test.want, got)
			}
		})
	}
}

func TestMatchCanonical(t *testing.T) {
	for _, test := range []struct {
		template, uri string
		want          bool
	}{
		{"file://a/{x}", "file://a/1", true},
		{"file://a/{x}", "file://b/1", false},
		{"file://a/{x}", "file://%61/1", true},
		{"file://a/{x}", "file:%2f%2Fa%2F1", true},
		{"file://a/{x}", "file://./a/.//1/./", true},
		{"file://a/{x}", "file:///a/1", true},
		{"file://a/{x}", "file://a/%31%3F%23", true},
		{"file://a/{x}", "file://a/b%2Fc", false},
		{"file://a/{x}", "file://a/.b", true},
		{"file://a/{x}", "file://%2561/1", false},
		{"file://%61%2Fb/{x}/", "file://a/b/1", true},
		{"file://k%c3%a4se/ö/{x}", "file://käse/%C3%B6/1", true},
		{"file://{/x*}", "file://a//b", true},
		{"file://a{/x*}", "file://ab", false},
		{"file://{x}/{?q}", "file://a?q=1", true},
		{"file://{x}/?q=1", "file://a?q=%31", true},
		{"file://{x}", "file://a?q=1", true},
	} {
		require.Equal(t, test.want, must(t, test.template).MatchCanonical(Canonical(test.uri)), "%s %s", test.template, test.uri)
	}
}

func TestMatchRefusesLongURIs(t *testing.T) {
	tmpl := must(t, "n://{+x}")
	_, ok := tmpl.Match("n://" + strings.Repeat("a", MaxURI-4))
	require.True(t, ok)
	_, ok = tmpl.Match("n://" + strings.Repeat("a", MaxURI-3))
	require.False(t, ok)
}

// Some of these URIs have very many ways to be divided.
func TestMatchIsLinear(t *testing.T) {
	for _, template := range []string{
		"{a}-{b}-{c}-{d}-{e}-{f}x", "{+a}/{+b}/{+c}/{+d}!", "{/id*}x", "x{/g*}/{h}!", "{/a*}{/b*}{/c*}{/d*}{/e*}{/f*}{/g*}{/h*}!", "{+a}aa{+b}aa{+c}aa{+d}!",
	} {
		tmpl := must(t, template)
		for _, fill := range []string{"-", "/", ".", "a-", "/a", "a"} {
			for _, ends := range [][2]string{{"", ""}, {"x", "?"}, {"/", "-"}} {
				uri := ends[0] + strings.Repeat(fill, (MaxURI-2)/len(fill)) + ends[1]
				begun := time.Now()
				tmpl.Match(uri)
				tmpl.MatchCanonical(Canonical(uri))
				require.Less(t, time.Since(begun), time.Second, "%s with %q", template, fill)
			}
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range []string{"note://{id}", "{a}-{b}", "file://{/path*}", "x{?a,b}", "{+a}/{b}", "a?b=c", "{a", "%2e{a}"} {
		f.Add(s, "note://a-b/c?a=1&b=2#c")
		f.Add(s, "x/../%2e%00;a=1")
	}
	f.Fuzz(func(t *testing.T, template, uri string) {
		tmpl, err := Parse(template)
		if err != nil {
			return
		}
		v, ok := tmpl.Match(uri)
		if !ok {
			return
		}
		require.True(t, strings.HasPrefix(uri, tmpl.Prefix()))
		for name := range v {
			value := v[name]
			require.Contains(t, tmpl.Vars(), name)
			require.NotContains(t, value, "\x00")
			require.NotContains(t, strings.FieldsFunc(value, func(r rune) bool { return r == '/' || r == '\\' }), "..")
		}
	})
}

// The values that a URI is written with are those that are read from it.
func FuzzRoundTrip(f *testing.F) {
	f.Add("a", "b", "c")
	f.Add("ä ö", "x/y", "%2e%2e")
	f.Add("-", "?", "&=")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, value := range []string{a, b, c} {
			if strings.ToValidUTF8(value, "") != value || strings.Contains(value, "\x00") || hasDotDot(value) || len(value) > 500 || value == "" {
				t.Skip("such a value does not match, or is longer than URIs are")
			}
		}
		uri := "n://" + url.PathEscape(a) + ":/" + strings.ReplaceAll(url.PathEscape(b), "%2F", "/") + "?c=" + url.QueryEscape(strings.ReplaceAll(c, " ", ""))
		got, ok := must(t, "n://{a}:{/b*}{?c}").Match(uri)
		if !ok {
			decoded, _ := decode(uri)
			require.True(t, hasDotDot(decoded), uri)
			return
		}
		require.Equal(t, Values{"a": a, "b": b, "c": strings.ReplaceAll(c, " ", "")}, got)
	})
}

func must(t testing.TB, template string) *Template {
	t.Helper()
	tmpl, err := Parse(template)
	require.NoError(t, err)
	return tmpl
}
