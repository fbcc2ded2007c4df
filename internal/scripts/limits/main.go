// Command limits writes docs/reference/limits.md from the constants that the code enforces. A
// constant is on the page if its comment has a line
//
//	//limit:SCOPE what it limits | what the peer sees beyond it
//
// SCOPE is what the limit applies to: message, call, peer, session, caller, connection, server or
// client. Text between backquotes must occur in a string of the code. The command reads the value
// and the option from the code. In the packages listed in marked, each constant that is named like
// a limit needs such a line, or a reason in unmarked.
//
// usage: limits [DIR]    from the root DIR of the repository; "." by default
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// marked lists the packages whose limits must all be on the page.
var marked = []string{"mcpkit", "mcpkit/internal/rounds", "protocol/jsonrpc", "internal/duplex", "internal/httpserve", "transport/sse", "transport/stdio", "transport/streamable", "transport/websocket",
	"middleware", "internal/limits", "internal/memo", "oauth/resourceserver", "oauth/jwtverify", "oauth/dpop", "oauth/internal/fetch", "client", "ext/skills", "ext/skills/internal/skillmd", "ext/tasks", "fleet", "playground"}

// unmarked lists the constants that are named like limits but are not on the page, with the
// reasons.
var unmarked = map[string]string{
	"fleet.maxName":                          "names are made by the server",
	"playground.maxText":                     "longer texts of the timeline are cut",
	"playground.maxBatch":                    "the page gets the rest in further batches",
	"tasks.DefaultPollInterval":              "named on the page at pollBurst",
	"tasks.DefaultLease":                     "peers do not see which process runs a task",
	"tasks.maxEchoed":                        "longer IDs are cut in errors",
	"skills.maxPage":                         "nothing: the page has a nextCursor",
	"skills.maxPageItems":                    "nothing: the page has a nextCursor",
	"mcpkit.noTimeout":                       "a value of options, not a limit",
	"mcpkit.maxErrorMessage":                 "longer error texts are cut",
	"mcpkit/internal/rounds.maxQuestionText": "longer texts of a question are cut in the log",
	"internal/buffers.maxKept":               "size of a pooled buffer",
	"internal/duplex.maxIdle":                "number of pooled goroutines",
	"internal/httpserve.readTimeout":         "the sum of two limits that are on the page",
	"transport/websocket.closeTimeout":       "the connection is being closed",
	"middleware.maxLogged":                   "longer texts are cut in the log",
	"oauth/jwtverify.maxTokenBytes":          "resourceserver.maxTokenBytes, which is on the page, is checked first",
	"oauth/jwtverify.maxStale":               "named on the page at MaxKeyAge",
	"oauth/jwtverify.maxTried":               "the response is the same 401 as for any invalid signature",
	"oauth/internal/fetch.maxRedirects":      "limits fetches, which peers do not see",
	"client.maxWarnings":                     "further warnings are not logged",
	"client.maxErrorBody":                    "longer bodies of errors are cut",
	"client.maxSessionID":                    "named by the error of initialize",
	"client.maxDrained":                      "a connection is closed instead of reused",
	"client.maxUndrained":                    "a connection is closed instead of reused",
	"client.maxPromised":                     "initial size of a buffer",
	"client.maxRetry":                        "longer retry times of a server are cut",
	"client.maxResumeToken":                  "the stream cannot be resumed from the event",
	"client.maxListenFailures":               "the subscription ends with its last error",
	"client.maxOutputSchema":                 "named by the error of the schema",
	"client.maxOutputSteps":                  "named by OutputError",
	"client.maxOutputFaults":                 "further faults are not listed",
	"client.maxNumberLength":                 "named by OutputError",
	"client.maxExponent":                     "named by OutputError",
	"client.maxAcceptedSteps":                "the general validator takes over",
	"client.maxAcceptedDepth":                "the general validator takes over",
	"client.maxRequired":                     "the general validator takes over",
	"client.maxPatterns":                     "outputs beyond it are not checked",
	"client.maxPosts":                        "further messages wait",
	"client.writeTimeout":                    "the response to the server is logged as lost",
	"internal/paramheader.maxSchemaDepth":    "the schema of the tool counts as invalid",
	"internal/paramheader.maxParamHeaders":   "the schema of the tool counts as invalid",
}

// isLimit reports whether a constant is named like a limit.
func isLimit(name string) bool {
	if strings.HasPrefix(name, "Code") {
		return false
	}
	return ast.IsExported(name) && strings.HasPrefix(name, "Default") || strings.HasPrefix(name, "max") || strings.Contains(name, "Max") ||
		strings.HasSuffix(name, "Timeout") || strings.HasSuffix(name, "Limit")
}

var scopes = []string{"message", "call", "peer", "session", "caller", "connection", "server", "client"}

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	page, err := write(dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "docs", "reference", "limits.md"), []byte(page), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

// A limit is a constant of the code.
type limit struct {
	pkg, name, place string
	expr             ast.Expr
	mark             string // the line of the comment, without the prefix
}

// source holds what the command reads from the code.
type source struct {
	limits  map[string]*limit // all constants, by package and name
	order   []string
	options map[string]bool // fields of options structs and functions, by package and name
	texts   []string        // all string literals
}

// write returns the text of the page.
func write(dir string) (string, error) {
	s := &source{limits: map[string]*limit{}, options: map[string]bool{}}
	for _, pkg := range marked {
		if err := s.read(dir, pkg); err != nil {
			return "", err
		}
	}
	if err := s.readTexts(dir); err != nil {
		return "", err
	}
	rows := map[string][]string{}
	for _, key := range s.order {
		l := s.limits[key]
		if l.mark == "" {
			if _, known := unmarked[key]; !known && isLimit(l.name) && slices.Contains(marked, l.pkg) && s.isOwnNumber(l) {
				return "", fmt.Errorf("%s: %s.%s has no line //limit:SCOPE what | what the peer sees", l.place, l.pkg, l.name)
			}
			continue
		}
		row, scope, err := s.row(l)
		if err != nil {
			return "", fmt.Errorf("%s: %s.%s: %w", l.place, l.pkg, l.name, err)
		}
		rows[scope] = append(rows[scope], row)
	}
	var b strings.Builder
	b.WriteString("# What is limited, and what happens beyond?\n\n<!-- Written by internal/scripts/limits from the constants that are enforced; go generate ./internal/scripts/limits -->\n\n" +
		"This page lists the limits of servers and, in its last table, those of package client. An option changes a limit; a limit without one is fixed.\n")
	for _, scope := range scopes {
		if len(rows[scope]) == 0 {
			continue
		}
		title := "For each " + scope
		switch scope {
		case "server":
			title = "For the whole server"
		case "client":
			title = "For each client"
		}
		fmt.Fprintf(&b, "\n## %s\n\n| limit | default | option | beyond it | constant |\n|---|---|---|---|---|\n%s", title, strings.Join(rows[scope], ""))
	}
	return b.String(), nil
}

// read reads the constants and options of a package.
func (s *source) read(dir, pkg string) error {
	names, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pkg), "*.go"))
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range tree.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					s.options[pkg+"."+d.Name.Name] = true
				}
			case *ast.GenDecl:
				s.readDecl(fset, pkg, d)
			}
		}
	}
	return nil
}

// isOptions reports whether a struct of that name has fields that set limits.
func isOptions(name string) bool {
	return name == "Options" || name == "IntrospectorOptions" || name == "MemoryLimits" || name == "MemoryOptions"
}

func (s *source) readDecl(fset *token.FileSet, pkg string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if st, ok := spec.Type.(*ast.StructType); ok && isOptions(spec.Name.Name) {
				for _, f := range st.Fields.List {
					for _, name := range f.Names {
						s.options[pkg+"."+spec.Name.Name+"."+name.Name] = true
					}
				}
			}
		case *ast.ValueSpec:
			if d.Tok != token.CONST || len(spec.Values) != len(spec.Names) {
				continue
			}
			doc := spec.Doc
			if doc == nil && len(d.Specs) == 1 {
				doc = d.Doc
			}
			for i, name := range spec.Names {
				l := &limit{pkg: pkg, name: name.Name, place: fset.Position(name.Pos()).String(), expr: spec.Values[i]}
				if doc != nil {
					for _, c := range doc.List {
						if mark, ok := strings.CutPrefix(c.Text, "//limit:"); ok {
							l.mark = mark
						}
					}
				}
				s.limits[pkg+"."+name.Name] = l
				s.order = append(s.order, pkg+"."+name.Name)
			}
		}
	}
}

// readTexts reads the string literals of all code except tests.
func (s *source) readTexts(dir string) error {
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != dir && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "scripts"):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					s.texts = append(s.texts, text)
				}
			}
			return true
		})
		return nil
	})
}

// isOwnNumber reports whether the constant is a number of its own, not the value of another
// constant.
func (s *source) isOwnNumber(l *limit) bool {
	switch e := l.expr.(type) {
	case *ast.SelectorExpr:
		id, ok := e.X.(*ast.Ident)
		return ok && id.Name == "time"
	case *ast.Ident:
		return false
	case *ast.BasicLit:
		return e.Kind != token.STRING
	}
	return true
}

// row returns the table row of a limit, and its scope.
func (s *source) row(l *limit) (row, scope string, err error) {
	scope, rest, _ := strings.Cut(l.mark, " ")
	what, seen, ok := strings.Cut(rest, " | ")
	if !ok || !slices.Contains(scopes, scope) {
		return "", "", fmt.Errorf("write //limit:SCOPE what | what the peer sees, with one of the scopes %s", strings.Join(scopes, ", "))
	}
	parts := strings.Split(seen, "`")
	for i, text := range parts {
		if i%2 == 1 && !slices.ContainsFunc(s.texts, func(t string) bool { return strings.Contains(t, text) }) {
			return "", "", fmt.Errorf("no string of the code has %q", text)
		}
		if beginning, ok := strings.CutSuffix(text, " "); ok && i%2 == 1 {
			parts[i] = beginning + "…"
		}
	}
	value, err := s.value(l.pkg, l.expr)
	if err != nil {
		return "", "", err
	}
	var options []string
	field := strings.TrimPrefix(strings.TrimPrefix(l.name, "Default"), "default")
	for _, pkg := range marked {
		short := pkg[strings.LastIndexByte(pkg, '/')+1:]
		own := s.limits[pkg+"."+l.name]
		switch {
		case field == l.name && l.pkg == "internal/duplex": // fixed
		case pkg != l.pkg && (l.pkg != "internal/duplex" || own != nil && s.isOwnNumber(own)), pkg == "internal/duplex":
		case s.options[pkg+".Options."+field]:
			options = append(options, "`"+short+".Options."+field+"`")
		case s.options[pkg+".MemoryLimits."+field]:
			options = append(options, "`"+short+".MemoryLimits."+field+"`")
		case s.options[pkg+".MemoryOptions."+field]:
			options = append(options, "`"+short+".MemoryOptions."+field+"`")
		case s.options[pkg+".IntrospectorOptions."+field]:
			options = append(options, "`"+short+".IntrospectorOptions."+field+"`")
		case field != l.name && s.options[pkg+"."+field]:
			options = append(options, "`"+short+"."+field+"`")
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | `%s.%s` |\n", what, spell(l, value), cmp.Or(strings.Join(options, ", "), "none"), strings.Join(parts, "`"), l.pkg, l.name), scope, nil
}

// value computes the constant.
func (s *source) value(pkg string, e ast.Expr) (constant.Value, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return s.value(pkg, e.X)
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), nil
	case *ast.Ident:
		if l := s.limits[pkg+"."+e.Name]; l != nil {
			return s.value(pkg, l.expr)
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "time" {
			if d, ok := map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour, "Millisecond": time.Millisecond}[e.Sel.Name]; ok {
				return constant.MakeInt64(int64(d)), nil
			}
		}
	case *ast.BinaryExpr:
		x, err := s.value(pkg, e.X)
		if err != nil {
			return nil, err
		}
		y, err := s.value(pkg, e.Y)
		if err != nil {
			return nil, err
		}
		if e.Op == token.SHL {
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(n)), nil
		}
		return constant.BinaryOp(x, e.Op, y), nil
	}
	return nil, fmt.Errorf("the value cannot be computed; write a number")
}

// spell formats the value as a duration, a size or a number.
func spell(l *limit, v constant.Value) string {
	n, _ := constant.Int64Val(constant.ToInt(v))
	isTime := false
	ast.Inspect(l.expr, func(node ast.Node) bool {
		if id, ok := node.(*ast.Ident); ok && id.Name == "time" {
			isTime = true
		}
		return true
	})
	switch {
	case isTime:
		d := time.Duration(n).String()
		for _, zero := range []string{"m0s", "h0m"} {
			if strings.HasSuffix(d, zero) {
				d = strings.TrimSuffix(d, zero[1:])
			}
		}
		return d
	case strings.Contains(l.name, "Bytes") || strings.HasPrefix(l.name, "StopReading"):
		for _, unit := range []struct {
			size int64
			name string
		}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
			if n >= unit.size && n%unit.size == 0 {
				return fmt.Sprintf("%d %s", n/unit.size, unit.name)
			}
		}
		return fmt.Sprintf("%d bytes", n)
	}
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

//go:generate go run . ../../..
