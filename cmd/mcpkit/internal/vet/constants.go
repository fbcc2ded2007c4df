package vet

import (
	"go/constant"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
)

// ruleValues matches the values of a oneof rule: in quotes, or without spaces.
var ruleValues = regexp.MustCompile(`'[^']*'|\S+`)

// oneof reports a oneof rule of the field f of parent whose values differ from the constants of its
// type.
func (v *checker) oneof(parent *types.Named, f *types.Var, rules string) {
	t := f.Type()
	for rule := range strings.SplitSeq(rules, ",") {
		if rule == "dive" {
			t = elemOf(t)
			continue
		}
		list, ok := strings.CutPrefix(rule, "oneof=")
		if !ok || t == nil || strings.Contains(list, "|") {
			continue
		}
		named, ok := types.Unalias(services.Indirect(t)).(*types.Named)
		if !ok || named.Obj().Pkg() == nil || services.WritesItself(named) {
			continue
		}
		known := constants(named)
		var listed []string
		for _, value := range ruleValues.FindAllString(strings.ReplaceAll(list, "0x2C", ","), -1) {
			listed = append(listed, strings.Trim(value, "'"))
		}
		if len(known) > 0 && !slices.Equal(slices.Sorted(slices.Values(listed)), slices.Sorted(slices.Values(known))) {
			v.report(f.Pos(), "field %s of %s: oneof lists %s, and the constants of %s are %s; write validate:\"enum\" to allow the constants",
				f.Name(), parent.Obj().Name(), strings.Join(listed, ", "), named.Obj().Name(), strings.Join(known, ", "))
		}
	}
}

// elemOf returns the type of the elements of t, or nil if t has none.
func elemOf(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	if u, ok := services.Indirect(t).Underlying().(services.HasElem); ok {
		return u.Elem()
	}
	return nil
}

// constants returns the values of the constants of the type as they are written in tags, in source
// order: the exported ones, or all if none is exported.
func constants(named *types.Named) []string {
	var found []*types.Const
	scope := named.Obj().Pkg().Scope()
	for _, name := range scope.Names() {
		if c, ok := scope.Lookup(name).(*types.Const); ok && types.Identical(c.Type(), named) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *types.Const) int { return int(a.Pos()) - int(b.Pos()) })
	var exported, all []string
	for _, c := range found {
		text := c.Val().ExactString()
		if c.Val().Kind() == constant.String {
			text = constant.StringVal(c.Val())
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
		if c.Exported() && !slices.Contains(exported, text) {
			exported = append(exported, text)
		}
	}
	if len(exported) > 0 {
		return exported
	}
	return all
}
