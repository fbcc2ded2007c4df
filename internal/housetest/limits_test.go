package housetest

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// limitRow is a row of limits.md: a default, and the folder and name of the constant that enforces it.
var limitRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| ([^|]+) \\|.*\\| `([^`]+)\\.(\\w+)` \\|$")

func TestLimitsOfThePageAreThoseOfTheCode(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "limits.md"))
	require.NoError(t, err)
	rows := limitRow.FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, strings.Count(string(page), "\n| ")-strings.Count(string(page), "\n| limit |"), "a row has another form")
	require.LessOrEqual(t, len(rows), 25)
	for _, row := range rows {
		require.Equal(t, amount(t, row[1]), constantIn(t, row[2], row[3]), "%s.%s", row[2], row[3])
	}
}

// amount reads a number ("1,000"), a size ("4 MiB") or a time ("30s", in nanoseconds).
func amount(t *testing.T, text string) int64 {
	t.Helper()
	if d, err := time.ParseDuration(text); err == nil {
		return int64(d)
	}
	number, unit, _ := strings.Cut(strings.ReplaceAll(text, ",", ""), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	require.NoError(t, err)
	return n << map[string]int{"": 0, "KiB": 10, "MiB": 20}[unit]
}

// constantIn evaluates a constant of the package in a folder, which may use package time and nothing else.
func constantIn(t *testing.T, folder, name string) int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
	require.NoError(t, err)
	units := types.NewPackage("time", "time")
	for unit, d := range map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour} {
		units.Scope().Insert(types.NewConst(token.NoPos, units, unit, types.Typ[types.Int64], constant.MakeInt64(int64(d))))
	}
	pkg := types.NewPackage("limits", "limits")
	pkg.Scope().Insert(types.NewPkgName(token.NoPos, pkg, "time", units))
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range tree.Decls {
			consts, ok := decl.(*ast.GenDecl)
			if !ok || consts.Tok != token.CONST {
				continue
			}
			for _, spec := range consts.Specs {
				spec := spec.(*ast.ValueSpec)
				if spec.Names[0].Name != name {
					continue
				}
				value, err := types.Eval(token.NewFileSet(), pkg, token.NoPos, types.ExprString(spec.Values[0]))
				require.NoError(t, err)
				n, _ := constant.Int64Val(value.Value)
				return n
			}
		}
	}
	t.Fatalf("there is no constant %s in %s", name, folder)
	return 0
}
