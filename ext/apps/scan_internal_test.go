package apps

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestImportsOfAScript(t *testing.T) {
	for script, want := range map[string][]string{
		`import a from "x"; import * as b from 'y'; import "z"`: {"x", "y", "z"},
		"import{a}from`x`":           nil, // not JavaScript
		"await import(`x`)":          {"x"},
		"import(\"x\" + y)":          {"x"},
		"export { a } from 'x'":      {"x"},
		"import.meta.url; f('x')":    nil,
		"a.from('x'); a.import('y')": nil,
		"const from = 'x'":           nil,
		"// import 'x'\nimport 'y'":  {"y"},
		"/* import 'x' */import 'y'": {"y"},
		"'import \"x\"'":             nil,
		"`import 'x' ${import('y')} ${`${import('z')}`} import 'u'`": {"y", "z"},
		"a = b / c; import('x'); d / e":                              {"x"},
		"a = /[/'\"]/.test(b); import('x')":                          {"x"},
		"return /'/; import('x')":                                    {"x"},
		"a = 'it\\'s'; import('x')":                                  {"x"},
		"a = 'open\nimport('x')":                                     {"x"},
		"`${{a: {b: '}'}}}`; import('x')":                            {"x"},
		"$import('x'); reimport('y')":                                nil,
	} {
		require.Equal(t, want, importsOf(script), script)
	}
}

// FuzzBundle bundles any page. It ends without a panic, and a page that refers to nothing stays as it
// is.
func FuzzBundle(f *testing.F) {
	for _, seed := range []string{
		`<!doctype html><title>x</title><p>hello`, `<script src="a.js"></script>`, `<script>import "https://example.com/x"; x = /[/]/; y = ` + "`${1}`" + `</script>`,
		`<link rel=stylesheet href=a.css>`, `<style>@import url("https://example.com"); p { background: url(a.png) } /* url( */</style>`, `<img srcset="a.png 1x,,b.png" src=//x>`,
		`<svg><style/><title/><script/>`, `<style>`, `<title>`, `<script>`, `<script src=mcp-app.js defer/>`, "<script>`\\", "<script>'\\", "<script>/\\", "<style>'\\", `<base href=":">`, `<p style="url('">`,
		`<style>p { background: image-set('a.png`, `<style>\75rl(\`, `<style>image-set("\`, `<iframe srcdoc="<iframe srcdoc='<style>">`, `<form action=% formaction=:>`,
	} {
		f.Add(seed)
	}
	files := fstest.MapFS{"a.js": {Data: []byte("go()")}, "a.css": {Data: []byte("p { color: red }")}, "a.png": {Data: []byte("PNG")}}
	f.Fuzz(func(t *testing.T, text string) {
		root := fstest.MapFS{"page.html": {Data: []byte(text)}}
		for name, file := range files {
			root[name] = file
		}
		p := &page{name: "page", file: "page.html"}
		err := (&bundler{root: root, page: p}).bundle()
		if err == nil && !strings.ContainsAny(text, "=@/(\x00\r") {
			require.Equal(t, text, p.html)
		}
	})
}
