package apps

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// bridgeName is the script of this package that pages include.
const bridgeName = "mcp-app.js"

//go:embed mcp-app.js
var bridge string

// bundler makes one document of a page and the files that it refers to, and checks the origins that
// it loads from.
type bundler struct {
	root   fs.FS
	page   *page
	line   int
	out    strings.Builder
	faults []error
	title  strings.Builder
	framed bool // the document is the srcdoc of a frame
}

// A use is what an attribute does with its URL.
type use uint8

const (
	useNothing  use = iota // a link that people follow
	useScript              // a file becomes a part of the page
	useStyle               // a file becomes a part of the page
	useData                // a file becomes a data: URI
	useResource            // only origins
	useConnect
	useFrame
	useBase
	useNever // a content security policy of an app never allows it
)

// uses are the attributes with URLs that a page loads.
var uses = map[string]use{
	"script src": useScript, "img src": useData, "source src": useData, "video src": useData, "video poster": useData, "audio src": useData, "track src": useData,
	"input src": useData, "image href": useData, "image xlink:href": useData, "use href": useResource, "use xlink:href": useResource, "feimage href": useResource,
	"image src": useData, "feimage xlink:href": useResource, "script href": useResource, "script xlink:href": useResource, // of SVG
	"table background": useData, "tr background": useData, "td background": useData, "th background": useData,
	"body background": useData, "iframe src": useFrame, "frame src": useFrame, "base href": useBase, "embed src": useNever, "object data": useNever,
}

// linkUses are the uses of link elements, by rel.
var linkUses = map[string]use{"stylesheet": useStyle, "icon": useData, "apple-touch-icon": useData, "preload": useResource, "modulepreload": useResource, "prefetch": useResource, "manifest": useNever}

// presents are the attributes of SVG elements that are written like CSS.
var presents = map[string]bool{
	"fill": true, "stroke": true, "filter": true, "mask": true, "clip-path": true, "cursor": true, "marker-start": true, "marker-mid": true, "marker-end": true,
}

func useOf(t *html.Token, attr *html.Attribute) use {
	if t.Data != "link" {
		return uses[t.Data+" "+attr.Key]
	}
	if attr.Key != "href" {
		return useNothing
	}
	for _, rel := range strings.Fields(strings.ToLower(attribute(t, "rel"))) {
		if u := linkUses[rel]; u != useNothing {
			return u
		}
	}
	return useNothing
}

func attribute(t *html.Token, key string) string {
	for _, a := range t.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func (b *bundler) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Errorf("page %s, line %d: %s", b.page.file, b.line, fmt.Sprintf(format, args...)))
}

// bundle reads the file of the page.
func (b *bundler) bundle() error {
	source, err := fs.ReadFile(b.root, b.page.file)
	if err != nil {
		return fmt.Errorf("page %s: %w", b.page.file, err)
	}
	if len(strings.TrimSpace(string(source))) == 0 || !utf8.Valid(source) {
		return fmt.Errorf("page %s: it is empty or not in UTF-8", b.page.file)
	}
	b.line = 1
	if err := b.document(string(source)); err != nil {
		return err
	}
	b.page.html = b.out.String()
	b.page.title = strings.TrimSpace(b.title.String())
	return errors.Join(b.faults...)
}

// document writes the document.
func (b *bundler) document(source string) error {
	z := html.NewTokenizer(strings.NewReader(source))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				return fmt.Errorf("page %s: %w", b.page.file, z.Err())
			}
			b.out.Write(z.Raw()) // a tag without an end
			return nil
		}
		raw := string(z.Raw())
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			b.out.WriteString(raw)
		} else {
			t := z.Token()
			b.element(z, &t, raw)
		}
		b.line += strings.Count(raw, "\n")
	}
}

// frame returns the document of a frame, which has the content security policy of the page.
func (b *bundler) frame(source string) string {
	inner := &bundler{root: b.root, page: b.page, line: b.line, framed: true}
	if err := inner.document(source); err != nil {
		inner.faults = append(inner.faults, err)
	}
	b.faults = append(b.faults, inner.faults...)
	return inner.out.String()
}

// sends checks where a form sends its fields.
func (b *bundler) sends(t *html.Token, action string) {
	action = strings.TrimSpace(action)
	u, err := url.Parse(action)
	if action == "" || strings.HasPrefix(action, "#") || err == nil && u.Scheme != "" && defaultPorts[strings.ToLower(u.Scheme)] == "" ||
		strings.EqualFold(attribute(t, "method"), "dialog") {
		return
	}
	b.fault("<%s> sends to %q, but hosts do not let a page go elsewhere; handle the event submit, and call a tool", t.Data, action)
}

// element writes a start tag. Of elements with raw text it also writes the text.
func (b *bundler) element(z *html.Tokenizer, t *html.Token, raw string) {
	if t.Data == "meta" && attribute(t, "name") == "description" && !b.framed {
		b.page.description = attribute(t, "content")
	}
	if t.Data == "meta" && strings.EqualFold(attribute(t, "http-equiv"), "refresh") {
		b.fault("<meta http-equiv=refresh> leaves the page; remove it")
	}
	changed, inline := false, ""
	kept := t.Attr[:0:0]
	for _, a := range t.Attr {
		switch {
		case a.Key == "style", presents[a.Key]:
			css := b.css(a.Val, "")
			changed, a.Val = changed || css != a.Val, css
		case a.Key == "srcset", a.Key == "imagesrcset":
			for candidate := range strings.SplitSeq(a.Val, ",") {
				if u, _, _ := strings.Cut(strings.TrimSpace(candidate), " "); u != "" {
					b.load(useResource, t.Data, u, "")
				}
			}
		case a.Key == "srcdoc" && t.Data == "iframe":
			document := b.frame(a.Val)
			changed, a.Val = changed || document != a.Val, document
		case a.Key == "action" && t.Data == "form", a.Key == "formaction":
			b.sends(t, a.Val)
		case a.Key == "ping":
			for u := range strings.FieldsSeq(a.Val) {
				b.load(useConnect, t.Data, u, "")
			}
		default:
			u := useOf(t, &a)
			file, local := b.load(u, t.Data, a.Val, "")
			switch {
			case !local:
			case u == useData:
				changed, a.Val = true, b.dataURI(file)
			default: // the text of the file comes instead of the attribute
				changed, inline = true, file
				continue
			}
		}
		kept = append(kept, a)
	}
	t.Attr = kept
	switch {
	case inline != "" && t.Data == "link":
		b.inlineStyle(t, inline)
	case t.Data == "script":
		b.script(z, t, inline, raw)
	case changed:
		b.out.WriteString(t.String())
	default:
		b.out.WriteString(raw)
	}
	if t.Type == html.StartTagToken && (t.Data == "style" || t.Data == "title") {
		b.rawText(z, t.Data)
	}
}

// rawText writes the text of a style or title element, or its end tag if it is empty.
func (b *bundler) rawText(z *html.Tokenizer, element string) {
	kind := z.Next()
	text := string(z.Raw())
	b.line += strings.Count(text, "\n")
	switch {
	case kind != html.TextToken:
		b.out.WriteString(text)
	case element == "title":
		b.title.WriteString(html.UnescapeString(text))
		b.out.WriteString(text)
	default:
		b.out.WriteString(b.css(text, ""))
	}
}

// Texts that would end the element, or hide its end.
var (
	endOfScript = regexp.MustCompile(`(?i)<(/script|!--)`)
	endOfStyle  = regexp.MustCompile(`(?i)<(/style)`)
)

// script writes a script element, with its text or that of a file.
func (b *bundler) script(z *html.Tokenizer, t *html.Token, file, raw string) {
	text := ""
	if file != "" {
		if attribute(t, "type") != "module" && slices.ContainsFunc(t.Attr, func(a html.Attribute) bool { return a.Key == "defer" }) {
			b.fault("<script src=%q defer>: the script becomes a part of the page, where defer has no effect; move it to the end of the body, or make it a module", file)
		}
		text = b.read(file)
		b.out.WriteString(t.String())
		b.out.WriteString(endOfScript.ReplaceAllString(text, `<\$1`))
	} else {
		b.out.WriteString(raw)
	}
	for { // also after <script/>, which browsers read as <script>
		kind := z.Next()
		own := string(z.Raw())
		if kind != html.TextToken {
			b.out.WriteString(own)
			break
		}
		if file == "" {
			text += own
			b.out.WriteString(own)
		}
		b.line += strings.Count(own, "\n")
	}
	typ := strings.ToLower(strings.TrimSpace(attribute(t, "type")))
	switch {
	case typ == "", typ == "module", strings.Contains(typ, "javascript"), strings.Contains(typ, "ecmascript"):
		b.imports(text, file)
	case typ == "importmap":
		b.importMap(text)
	}
}

// imports checks the imports of a script.
func (b *bundler) imports(text, file string) {
	if file == bridgeName {
		return
	}
	for _, specifier := range importsOf(text) {
		switch {
		case strings.HasPrefix(specifier, "./"), strings.HasPrefix(specifier, "../"), strings.HasPrefix(specifier, "/"):
			b.fault("import %q: a page has no server to load the file from; bundle the script into one file", specifier)
		case strings.Contains(specifier, "://"):
			b.load(useResource, "import", specifier, "")
		}
	}
}

// importMap checks the URLs of an import map.
func (b *bundler) importMap(text string) {
	var m struct {
		Imports map[string]string            `json:"imports"`
		Scopes  map[string]map[string]string `json:"scopes"`
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		b.fault("the import map is not valid JSON: %v", err)
		return
	}
	targets := []map[string]string{m.Imports}
	for _, scope := range m.Scopes {
		targets = append(targets, scope)
	}
	for _, imports := range targets {
		for _, target := range imports {
			b.load(useResource, "import", target, "")
		}
	}
}

// inlineStyle writes a style sheet in place of the link to it.
func (b *bundler) inlineStyle(t *html.Token, file string) {
	b.out.WriteString("<style")
	if media := attribute(t, "media"); media != "" {
		b.out.WriteString(` media="` + html.EscapeString(media) + `"`)
	}
	b.out.WriteString(">" + endOfStyle.ReplaceAllString(b.css(b.read(file), path.Dir(file)), `<\$1`) + "</style>")
}

// load checks a URL that the page loads. local is set if the URL names a file, which has to become a
// part of the page. dir is the directory of the file that has the URL, below that of the page.
func (b *bundler) load(u use, element, raw, dir string) (file string, local bool) {
	raw = strings.TrimSpace(raw)
	if u == useNothing || raw == "" || strings.HasPrefix(raw, "#") {
		return "", false
	}
	parsed, err := url.Parse(raw)
	if err != nil {
		b.fault("<%s>: %q is not a URL", element, raw)
		return "", false
	}
	if strings.HasPrefix(raw, "//") {
		parsed.Scheme = "https"
	}
	switch {
	case u == useNever:
		b.fault("<%s> loads %q, which hosts never allow; remove it", element, raw)
		return "", false
	case parsed.Scheme != "" && parsed.Host != "":
		b.checkAllowed(u, element, raw, parsed)
		return "", false
	case defaultPorts[strings.ToLower(parsed.Scheme)] != "": // browsers read https:a.com as https://a.com
		b.fault("<%s>: %q is not a URL; write // before the host", element, raw)
		return "", false
	case parsed.Scheme != "": // data:, blob:, about:
		return "", false
	}
	file = strings.TrimPrefix(path.Clean("/"+path.Join(path.Dir(b.page.file), dir, parsed.Path)), "/")
	if strings.HasPrefix(parsed.Path, "/") {
		file = strings.TrimPrefix(path.Clean(parsed.Path), "/")
	}
	if path.Base(parsed.Path) == bridgeName && u == useScript {
		return bridgeName, true
	}
	if u != useScript && u != useStyle && u != useData {
		b.fault("<%s> refers to the file %q, and a page has no server to load it from; write it into the page", element, raw)
		return "", false
	}
	if _, err := fs.Stat(b.root, file); err != nil {
		b.fault("<%s> refers to the file %q, which the file system does not have", element, raw)
		return "", false
	}
	return file, true
}

// checkAllowed checks that the page's content security policy allows the URL.
func (b *bundler) checkAllowed(u use, element, raw string, parsed *url.URL) {
	allowed, option := b.page.ui.CSP, "Resources"
	if allowed == nil {
		allowed = &csp{}
	}
	origins := allowed.Resources
	switch u {
	case useConnect:
		origins, option = allowed.Connect, "Connect"
	case useFrame:
		origins, option = allowed.Frames, "Frames"
	case useBase:
		origins, option = allowed.BaseURIs, "BaseURIs"
	}
	if !allows(origins, parsed) {
		origin := originOf(parsed)
		b.fault("<%s> loads %q, but the page may not load from %s; write apps.Page(%q, apps.%s(%q)), or put the file beside the page", element, raw, origin, b.page.name, option, origin)
	}
}

// read returns the text of a file, or "" with a fault.
func (b *bundler) read(file string) string {
	if file == bridgeName {
		return bridge
	}
	text, err := fs.ReadFile(b.root, file)
	if err != nil {
		b.fault("%v", err)
	} else if !utf8.Valid(text) {
		b.fault("the file %q is not in UTF-8", file)
	}
	return string(text)
}

// dataURI returns a file as a data: URI.
func (b *bundler) dataURI(file string) string {
	data, err := fs.ReadFile(b.root, file)
	if err != nil {
		b.fault("%v", err)
	}
	typ, ok := mediaTypes[strings.ToLower(path.Ext(file))]
	if !ok {
		typ = mime.TypeByExtension(path.Ext(file))
	}
	if typ == "" {
		typ = "application/octet-stream"
	}
	return "data:" + typ + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// mediaTypes are the same on all systems; mime.TypeByExtension asks the system.
var mediaTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".svg": "image/svg+xml", ".webp": "image/webp", ".avif": "image/avif",
	".ico": "image/x-icon", ".woff2": "font/woff2", ".woff": "font/woff", ".ttf": "font/ttf", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".webm": "video/webm",
}
