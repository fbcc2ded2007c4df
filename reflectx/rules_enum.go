package reflectx

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-playground/validator/v10"
)

// RegisterRules registers the rules of this package that validator/v10 does not have: enum. It does
// not replace a rule of the same name. Call it before v is used. A nil v is allowed.
func RegisterRules(v *validator.Validate) error {
	if v == nil {
		return nil
	}
	if known, _ := hasEnum(v); known {
		return nil
	}
	return v.RegisterValidationCtx("enum", func(ctx context.Context, _ validator.FieldLevel) bool {
		if ours, ok := ctx.Value(enumKey{}).(*bool); ok {
			*ours = true
		}
		return true // the compiled check checks the constants
	})
}

type enumKey struct{}

// hasEnum reports whether v has a rule called enum, and whether it was registered by
// [RegisterRules].
func hasEnum(v *validator.Validate) (known, ours bool) {
	defer func() {
		if p := recover(); p != nil { // also a rule that does not take strings
			known = !strings.Contains(fmt.Sprint(p), "Undefined validation function")
		}
	}()
	_ = v.VarCtx(context.WithValue(context.Background(), enumKey{}, &ours), "a", "enum")
	return true, ours
}

// ownsEnum reports whether the rule enum is that of [RegisterRules] and not the program's own.
func (c *compiler) ownsEnum() bool {
	_, ours := hasEnum(c.validate)
	return ours
}

// enum compiles the rule enum: the value must be one of the constants of its type. The check is
// kept even if the program's own validator checks the other rules, because it does not know the
// constants.
func (c *compiler) enum(n *spec) {
	if n.t.Name() == "" || n.t.PkgPath() == "" {
		c.errorf("rule \"enum\" does not fit a %s; it is for a named type with constants", typeText(n.t))
		return
	}
	if len(n.kw.Enum) > 0 {
		c.errorf("the rules \"oneof\" and \"enum\" both list values; drop one of them")
		return
	}
	n.kw.Enum = c.constants(n)
	if len(n.kw.Enum) == 0 {
		c.errorf("rule \"enum\": no constants of the type %s are known; declare them, and where the program runs without its source, "+
			"generate its descriptions (mcpkit gen) or embed the source; or list the values with oneof", n.t)
		return
	}
	if n.shape == shapeText {
		allowed := n.kw.Enum
		n.texts = append(n.texts, func(s string) bool { return slices.Contains(allowed, any(s)) })
		return
	}
	at := len(n.checks)
	if n.keep >= 0 {
		at, n.keep = n.keep, n.keep+1
	}
	n.checks = slices.Insert(n.checks, at, oneOf(n.shape, n.kw.Enum))
}

// constants returns the constants of the type of n as schema values.
func (c *compiler) constants(n *spec) []any {
	if c.o.Descriptions == nil {
		return nil
	}
	var values []any
	for _, e := range c.o.Descriptions.Enum(n.t) {
		if v, ok := enumValue(n.shape, e.JSON); ok && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}
