package annotation

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func words(v string) []string {
	return strings.FieldsFunc(v, func(r rune) bool { return r == ' ' || r == ',' })
}

func setName(a *Annotation, v string) error {
	if err := naming.Check(v); err != nil {
		return err
	}
	a.About.Name = v
	return nil
}

// setScopes reads scopes, of which a caller needs each. "a | b" is one that a or b gives.
func setScopes(a *Annotation, v string) error {
	a.Scopes = words(strings.ReplaceAll(strings.ReplaceAll(v, " |", "|"), "| ", "|"))
	for _, scope := range a.Scopes {
		if slices.Contains(strings.Split(scope, "|"), "") {
			return fmt.Errorf("%q has an empty scope", scope)
		}
	}
	return nil
}

func setTimeout(a *Annotation, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration of 0 or more", v)
	}
	a.Timeout = &d
	return nil
}

// unknown returns the error for a word that is none of those that are known.
func unknown(what, word string, known ...string) error {
	return fmt.Errorf("unknown %s %q%s; known are %s", what, word, naming.Hint(word, known), strings.Join(known, ", "))
}

// setDelivery reads how clients may learn of an event.
func setDelivery(a *Annotation, v string) error {
	a.Delivery = words(v)
	for _, mode := range a.Delivery {
		if mode != "poll" && mode != "push" && mode != "webhook" {
			return unknown("mode", mode, "poll", "push", "webhook")
		}
	}
	return nil
}

func setHidden(a *Annotation, v string) error {
	if a.Hidden = v == "true"; !a.Hidden && v != "false" {
		return fmt.Errorf("%q is neither true nor false", v)
	}
	return nil
}

func setIcons(a *Annotation, v string) error {
	for _, src := range strings.Fields(v) {
		if !strings.HasPrefix(src, "https://") && !strings.HasPrefix(src, "data:") {
			return fmt.Errorf("%q is neither an https: nor a data: URI", src)
		}
		a.About.Icons = append(a.About.Icons, protocol.Icon{Src: src})
	}
	return nil
}

func setComplete(a *Annotation, v string) error {
	a.Complete = map[string]string{}
	for _, pair := range words(v) {
		param, method, ok := strings.Cut(pair, "=")
		if !ok || param == "" || method == "" {
			return fmt.Errorf("%q does not say parameter=Method", pair)
		}
		a.Complete[param] = method
	}
	return nil
}

func setHints(a *Annotation, v string) error {
	h := &protocol.ToolAnnotations{}
	a.Hints = h
	hints := map[string]struct {
		of    **bool
		value bool
	}{
		"readonly": {&h.ReadOnlyHint, true}, "idempotent": {&h.IdempotentHint, true},
		"destructive": {&h.DestructiveHint, true}, "additive": {&h.DestructiveHint, false},
		"open-world": {&h.OpenWorldHint, true}, "closed-world": {&h.OpenWorldHint, false},
	}
	for _, word := range words(v) {
		hint, ok := hints[word]
		switch {
		case !ok:
			return unknown("hint", word, "readonly", "destructive", "additive", "idempotent", "open-world", "closed-world")
		case *hint.of != nil && **hint.of != hint.value:
			return fmt.Errorf("%q contradicts another hint", word)
		}
		*hint.of = &hint.value
	}
	if a.ReadOnly() && h.DestructiveHint != nil && *h.DestructiveHint {
		return fmt.Errorf("a tool cannot be both readonly and destructive")
	}
	return nil
}

// ReadOnly reports whether the tool has the hint readonly.
func (a *Annotation) ReadOnly() bool {
	return a.Hints != nil && a.Hints.ReadOnlyHint != nil && *a.Hints.ReadOnlyHint
}

// contents returns the annotations of a resource, to set them.
func (a *Annotation) contents() *protocol.Annotations {
	a.For = cmp.Or(a.For, &protocol.Annotations{})
	return a.For
}

func setAudience(a *Annotation, v string) error {
	for _, word := range words(v) {
		if word != "user" && word != "assistant" {
			return unknown("audience", word, "user", "assistant")
		}
		a.contents().Audience = append(a.contents().Audience, protocol.Role(word))
	}
	return nil
}

func setPriority(a *Annotation, v string) error {
	p, err := strconv.ParseFloat(v, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return fmt.Errorf("%q is not a number from 0 to 1", v)
	}
	a.contents().Priority = &p
	return nil
}

func setCache(a *Annotation, v string) error {
	a.Cache = &Cache{}
	for _, word := range words(v) {
		if word == "private" || word == "public" {
			a.Cache.Public = word == "public"
			continue
		}
		d, err := time.ParseDuration(word)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is neither a duration nor public or private", word)
		}
		a.Cache.TTL = d
	}
	return nil
}

func setMeta(a *Annotation, v string) error {
	a.Meta = protocol.Meta{}
	for _, pair := range strings.Fields(v) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return fmt.Errorf("%q does not say key=value", pair)
		}
		a.Meta[key] = jsonx.AppendString(nil, value)
	}
	return nil
}

// setRate parses "10/s" and "100/m burst=20". The default burst is the number of calls in the time.
func setRate(a *Annotation, v string) error {
	rate, burst, hasBurst := strings.Cut(v, " burst=")
	count, unit, _ := strings.Cut(rate, "/")
	if !hasBurst {
		burst = count
	}
	per := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	n, err := strconv.Atoi(count)
	most, burstErr := strconv.Atoi(burst)
	if per == 0 || err != nil || burstErr != nil || n < 1 || most < 1 {
		return fmt.Errorf("%q is not a rate: a number, at least 1, for each s, m or h, and perhaps a burst of at least 1", v)
	}
	a.Rate = Rate{PerSecond: float64(n) / per, Burst: most}
	return nil
}

// setRules reads the rules of plain parameters: "style:oneof=short long; id:min=2".
func setRules(a *Annotation, v string) error {
	for entry := range strings.SplitSeq(v, ";") {
		name, rules, ok := strings.Cut(entry, ":")
		name, rules = strings.TrimSpace(name), strings.TrimSpace(rules)
		if !ok || name == "" || rules == "" {
			return fmt.Errorf("%q is not of the form parameter:rules", strings.TrimSpace(entry))
		}
		if a.Rules == nil {
			a.Rules = map[string]reflect.StructTag{}
		}
		key := "validate"
		if strings.HasPrefix(rules, "pattern=") { // which the validator does not have
			key, rules = "jsonschema", strings.ReplaceAll(rules, ",", `\,`)
		}
		a.Rules[name] += reflect.StructTag(" " + key + ":" + strconv.Quote(rules))
	}
	return nil
}
