package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Patterns of transport/version.
const (
	legacy   = "stdio/202[45]* websocket/202[45]* http/2025*"
	most     = "stdio/* http/2025-11-25 http/2026* websocket/2025-11-25"
	legacies = "stdio/202[45]* http/2025-03-26 http/2025-11-25 websocket/2025-06-18"
	some     = "stdio/2024* stdio/2025-06-18 http/2025-11-25 http/2026*"
	each     = "stdio/2025-06-18 stdio/2026* http/2025-11-25 http/2026* websocket/2026*"
	plain    = "stdio/2025-06-18 stdio/2026*"
	few      = "stdio/2025-06-18 http/2026*"
	httpOnly = "http/2025* http/2026*"
)

// rows are the exchanges.
var rows = slices.Concat(
	lifecycle, lists, results, arguments, protocolErrors, flows, questions, rounds, subscriptions, batches, sessions, headerChecks, lineEnds, others,
)

var lifecycle = []row{
	{name: "hello", at: legacy + " http/2024*", shows: "The handshake, a ping, and a second handshake.", bare: true, steps: []string{
		"$init", "!notifications/initialized", "ping", "$init",
	}},
	{name: "hello_wrong", at: legacies, shows: "Handshakes with an unknown version, a modern one, and wrong params.", bare: true, steps: []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":7,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"capabilities":[],"clientInfo":"c"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"initialize"}`,
	}},
	{name: "too_early", at: legacies, shows: "Requests before the handshake.", bare: true, steps: []string{
		"tools/list", "ping", call("text", "{}"), "!notifications/initialized", `{"jsonrpc":"2.0","id":9,"result":{}}`,
	}},
	{name: "discover", at: "*/2026*", shows: "What the server says about itself.", steps: []string{"server/discover"}},
	{name: "envelope", at: "*/2026*", shows: "Requests whose _meta is missing, incomplete or wrong.", steps: []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"text"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"text","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"text","_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"text","_meta":{"io.modelcontextprotocol/protocolVersion":20260728,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"text","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}}}`,
		`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"text","_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"text","_meta":[]}}`,
		`{"jsonrpc":"2.0","id":8,"method":"tools/call"}`,
	}},
	{name: "removed", at: "*/2026*", shows: "Methods that only older versions have, and one that no version has.", steps: []string{
		"ping", `logging/setLevel {"level":"info"}`, `resources/subscribe {"uri":"library://rules"}`, "$init", "tools/unknown", "tasks/list",
	}},
	{name: "newer_methods", at: legacies, shows: "Methods that only newer versions have, and one that no version has.", steps: []string{
		"server/discover", `subscriptions/listen {"notifications":{}}`, "tools/unknown", "notifications/unknown", "!notifications/unknown", "!unknown",
	}},
}

var lists = []row{
	{name: "lists", at: "stdio/* http/2025* http/2026* websocket/2025-11-25 websocket/2026*", shows: "Lists in pages of four.", steps: []string{
		"tools/list", `tools/list {"cursor":"<cursor 1>"}`, "prompts/list", `prompts/list {"cursor":"<cursor 3>"}`, "resources/list", "resources/templates/list",
	}},
	{name: "lists_whole", at: "stdio/2024* stdio/2025-06-18 stdio/2026*", options: "whole", shows: "Lists on one page.", steps: []string{
		"tools/list", "prompts/list", "resources/list", "resources/templates/list",
	}},
	{name: "cursors", at: some, shows: "Wrong cursors, and one that is used again.", steps: []string{
		"prompts/list", `prompts/list {"cursor":"nonsense"}`, `prompts/list {"cursor":""}`, `prompts/list {"cursor":7}`, `prompts/list {"cursor":null}`,
		`tools/list {"cursor":"<cursor 1>"}`, `prompts/list {"cursor":"<cursor 1>"}`, `prompts/list {"cursor":"<cursor 1>"}`, `prompts/list {"other":1}`,
		`prompts/list []`,
	}},
	{name: "scopes", at: httpOnly, shows: "What needs a scope does not exist for callers who lack it.", steps: []string{
		call("read", "{}"), call("write", "{}"), "X-Scopes: notes:read\n" + call("read", "{}"), "X-Scopes: notes:write notes:read\n" + call("write", "{}"),
	}},
	{name: "scopes_of_lists", at: "http/2025-11-25 http/2026*", options: "whole", shows: "Lists have what the caller may see.", steps: []string{
		"prompts/list", "X-Scopes: notes:write\nprompts/list", "resources/templates/list", "X-Scopes: notes:write\nresources/templates/list", "X-Scopes: notes:write\nresources/list",
	}},
	{name: "scopes_of_reads", at: "http/2025-06-18 http/2026* stdio/2025-06-18 stdio/2026*", shows: "Resources, prompts and completion with scopes.", steps: []string{
		call("read", "{}"), call("write", "{}"), `resources/read {"uri":"library://vault"}`, `prompts/get {"name":"owned"}`, `resources/read {"uri":"locked://1"}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"owned"},"argument":{"name":"x","value":""}}`,
	}},
	{name: "step_up", at: "http/2025-06-18 http/2026*", options: "step-up", shows: "With StepUp, principals see what scopes they lack.", steps: []string{
		call("write", "{}"), "X-User: ann\nX-Scopes: notes:read\n" + call("write", "{}"), "X-User: ann\nX-Scopes: notes:read\n" + `resources/read {"uri":"library://vault"}`,
		"X-User: ann\nX-Scopes: notes:read\n" + `prompts/get {"name":"owned"}`,
	}},
	{name: "resources", at: most, shows: "Resources and templates of every kind.", steps: []string{
		`resources/read {"uri":"library://rules"}`, `resources/read {"uri":"library://logo"}`, `resources/read {"uri":"library://stream"}`,
		`resources/read {"uri":"library://parts"}`, `resources/read {"uri":"library://secret"}`, `resources/read {"uri":"book://978"}`,
		`resources/read {"uri":"file:///a/b%20c.txt"}`, `resources/read {"uri":"search://hits?q=tea&limit=5"}`, `resources/read {"uri":"deep://a/x/y"}`,
	}},
	{name: "resource_errors", at: some, shows: "Resources that do not exist, fail, or have wrong URIs.", steps: []string{
		`resources/read {"uri":"library://none"}`, `resources/read {"uri":"book://111"}`, `resources/read {"uri":"book://1"}`, `resources/read {"uri":"library://fault"}`,
		`resources/read {"uri":"file:///../etc/passwd"}`, `resources/read {"uri":"file:///a/%2e%2e/b"}`, `resources/read {"uri":"file:///a%00b"}`,
		`resources/read {"uri":"search://hits?q=tea&limit=50"}`, `resources/read {"uri":"search://hits?q=tea&limit=x"}`, `resources/read {"uri":"search://hits"}`,
		`resources/read {"uri":""}`, `resources/read {"uri":7}`, `resources/read {}`, "resources/read", `resources/read {"uri":"library://rules","extra":1}`,
	}},
	{name: "prompts", at: most, shows: "Prompts of every kind, and wrong arguments.", steps: []string{
		`prompts/get {"name":"review","arguments":{"title":"Emma","tone":"kind"}}`, `prompts/get {"name":"review","arguments":{"title":"Emma"}}`,
		`prompts/get {"name":"a_letter","arguments":{"to":"Ann","pages":"2"}}`, `prompts/get {"name":"talk"}`, `prompts/get {"name":"refuse"}`,
		`prompts/get {"name":"review","arguments":{"tone":"cold","other":"x"}}`, `prompts/get {"name":"a_letter","arguments":{"to":7}}`,
		`prompts/get {"name":"a_letter","arguments":{"to":"Ann","pages":"9"}}`, `prompts/get {"name":"none"}`, `prompts/get {"name":7}`, "prompts/get",
	}},
	{name: "completion", at: some, shows: "Completion of arguments and variables.", steps: []string{
		`completion/complete {"ref":{"type":"ref/resource","uri":"book://{isbn}"},"argument":{"name":"isbn","value":"97"}}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"tone","value":"h"}}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"title","value":"E"},"context":{"arguments":{"tone":"kind"}}}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"title","value":"fail"}}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"none","value":""}}`,
		`completion/complete {"ref":{"type":"ref/prompt","name":"none"},"argument":{"name":"x","value":""}}`,
		`completion/complete {"ref":{"type":"ref/tool","name":"x"},"argument":{"name":"x","value":""}}`,
		`completion/complete {"ref":{"type":"ref/resource","uri":"none://{x}"},"argument":{"name":"x","value":""}}`,
		`completion/complete {"argument":{"name":"x"}}`, "completion/complete",
	}},
}

var results = []row{
	{name: "results", at: most, shows: "Results of every kind: values.", steps: tools(
		"nothing", "text", "struct", "pointer", "nil_pointer", "nil_slice", "nil_map", "map", "number", "float", "truth", "kind", "times", "anything", "iterator",
	)},
	{name: "results_content", at: most, shows: "Results of every kind: content.", steps: tools(
		"png", "plain", "picture", "sound", "binary", "pointed", "reader", "contents", "several", "two", "whole", "readonly", "unlisted",
	)},
	{name: "errors", at: most, shows: "Errors of tools: those meant for callers, and others.", steps: slices.Concat(
		calls("fail", `{"how":"told"}`, `{"how":"wrapped"}`, `{"how":"secret"}`, `{"how":"panic"}`, `{"how":"protocol"}`, `{"how":"missing"}`,
			`{"how":"coded"}`, `{"how":"declined"}`, `{"how":"both"}`),
		calls("fail_with", `{"type":"coded"}`, `{"type":"detailed"}`, `{"type":"retrying"}`), tools("broken", "large"),
	)},
	{name: "errors_exposed", at: plain, options: "exposed", shows: "With ExposeErrors, callers see all errors.", steps: slices.Concat(
		calls("fail", `{"how":"wrapped"}`, `{"how":"secret"}`, `{"how":"panic"}`, `{"how":"missing"}`), []string{`resources/read {"uri":"library://fault"}`})},
	{name: "unknown_tool", at: each, shows: "Calls of tools that do not exist, and without a proper name.", steps: []string{
		call("txet", "{}"), call("", "{}"), `tools/call {"name":7}`, `tools/call {"arguments":{}}`, "tools/call", `tools/call {"name":"text","extra":1}`,
	}},
	{name: "cache", at: some, shows: "A cached result, and a limit of calls.", steps: append(tools("cached", "cached", "limited", "limited", "limited"), "# wait 2m", call("cached", "{}"), call("limited", "{}"))},
	{name: "injected", at: most, shows: "What methods see of a request.", steps: []string{
		call("injected", "{}"), `tools/call {"name":"injected","_meta":{"example.com/trace":{"a":1}}}`,
		`{"jsonrpc":"2.0","id":"text","method":"tools/call","params":{"name":"injected","arguments":{},$meta}}`,
	}},
}

// kinds are arguments that everything takes.
const kinds = `{"any":[1,{"a":null}],"raw":{"b":1.0},"bool":true,"int":-7,"int8":-128,"int64":9223372036854775807,"uint":7,"uint16":65535,"uint64":18446744073709551615,` +
	`"float":1.5e3,"float32":0.1,"string":"tea \u00e9\n","pointer":"p","bytes":"aGk=","four":"AQIDBA==","time":"2020-01-02T03:04:05.6+01:00","duration":"5s","url":"https://example.com/a?b",` +
	`"addr":"192.0.2.1","hex":"ff","point":[1,2],"big":123456789012345678901234567890,"number":1.10,"pair":[1,2],"matrix":[[1,2],[]],"pointers":[1,2],"map":{"a":"b"},` +
	`"ip":"192.0.2.1","uintMap":{"7":"low"},"intMap":{"1":true,"-2":false},"level":"odd","loud":"high","levels":["low"],"page":{"items":[{"tenant":"t"}],"next":null},"tree":{"name":"r","kids":[{"name":"k"}]},` +
	`"trees":{"x":{"name":"y"}},"nested":{"a":1,"b":{"c":"d"}},"old":"o","pattern":"a,b","step":5,"tenant":"me","name":"n","Untagged":"u"}`

var arguments = []row{
	{name: "kinds", at: some, shows: "Arguments of every kind, which come back.", steps: slices.Concat(
		calls("everything", kinds, `{}`, `{"any":null,"pointer":null,"tree":null,"int":null,"list":null}`, `{"nested":{"a":1,"b":{}}}`), calls("default", `{}`, `{"inner":[{},{"size":5}]}`,
			`{"text":"","number":1,"list":[],"map":{},"tree":{"name":"other"}}`),
		calls("add", `{"a":1,"b":2}`, `{"a":1,"b":2.5,"c":"up"}`, `{"a":9007199254740993,"b":0}`), calls("fields", `{"numbers":{"a":1}}`), []string{`tools/call {"name":"text"}`, call("text", "null")})},
	{name: "wrong_kinds", at: plain, shows: "Arguments of the wrong kind.", steps: calls("everything",
		`{"bool":"true"}`, `{"int":"7"}`, `{"int":1.5}`, `{"int":1.0}`, `{"int":1e2}`, `{"int":9223372036854775808}`, `{"int8":128}`, `{"int8":-129}`, `{"int64":9223372036854775808}`,
		`{"int64":-9223372036854775809}`, `{"uint":-1}`, `{"uint16":65536}`, `{"uint64":18446744073709551616}`, `{"float":"1"}`, `{"float":1e400}`, `{"float32":1e39}`, `{"string":7}`,
		`{"pointer":7}`, `{"bytes":"a"}`, `{"bytes":[1,2]}`, `{"four":"AQID"}`, `{"four":[1,2,3,4]}`, `{"four":[1,2,3]}`, `{"time":"yesterday"}`, `{"time":7}`, `{"duration":"5 s"}`, `{"duration":5000000000}`,
		`{"url":"::"}`, `{"addr":"1.2.3"}`, `{"hex":"xyz"}`, `{"hex":255}`, `{"point":"1,2"}`, `{"point":[1]}`, `{"big":"7"}`, `{"big":1.5}`, `{"number":"1"}`, `{"number":true}`,
		`{"pair":[1]}`, `{"pair":[1,2,3]}`, `{"matrix":[[1],2]}`, `{"pointers":[1,null]}`, `{"pointers":1}`, `{"map":{"a":1}}`, `{"map":[]}`, `{"intMap":{"x":true}}`, `{"intMap":{"1":1}}`,
		`{"loud":"shrill"}`, `{"level":7}`, `{"levels":"low"}`, `{"page":{"items":[{"tenant":1}]}}`, `{"page":{}}`, `{"tree":{"kids":[{"name":""}]}}`, `{"tree":{"name":"r","kids":[{"name":"1"},{"name":"2"},{"name":"3"}]}}`,
		`{"trees":{"x":{}}}`, `{"nested":{}}`, `{"nested":{"a":"1","b":{"c":1}}}`, `{"nested":[]}`, `{"pattern":"ab"}`, `{"step":7}`, `{"step":15}`, `{"strnig":"tea"}`, `{"Hidden":"h"}`, `{"untagged":"u"}`,
		`{"int":1,"int":2}`, `{"nested":{"a":1,"a":2}}`, `{"bool":1,"int":"x","string":[],"unknown":1}`, `[]`, `"{}"`, `7`,
	)},
	{name: "wrong_rules", at: plain, shows: "Arguments that break rules.", steps: calls("check",
		`{"name":"Ann"}`, `{}`, `{"name":""}`, `{"name":null}`, `{"name":"<11 times x>"}`, `{"name":"Ann","mail":"ann"}`, `{"name":"Ann","site":"example"}`, `{"name":"Ann","id":"1-2-3"}`, `{"name":"Ann","code":"a-b"}`, `{"name":"Ann","code":"abcd"}`,
		`{"name":"Ann","color":"blue"}`, `{"name":"Ann","color":"light blue"}`, `{"name":"Ann","size":4}`, `{"name":"Ann","age":131}`, `{"name":"Ann","age":-1}`, `{"name":"Ann","ratio":1}`, `{"name":"Ann","ratio":0}`, `{"name":"Ann","host":"a_b"}`,
		`{"name":"Ann","ip":"1.2.3"}`, `{"name":"Ann","ip":"::1"}`, `{"name":"Ann","prefix":"abz"}`, `{"name":"Ann","prefix":"abmyz"}`, `{"name":"Ann","day":"2020-13-01"}`, `{"name":"Ann","not":"no"}`, `{"name":"Ann","not":"axb"}`, `{"name":"Ann","either":"x"}`,
		`{"name":"Ann","tags":[]}`, `{"name":"Ann","tags":["aa","aa"]}`, `{"name":"Ann","tags":["a"]}`, `{"name":"Ann","tags":["aa","bb","cc","dd"]}`, `{"name":"Ann","limits":{"a":1}}`, `{"name":"Ann","limits":{"aa":6,"bb":5}}`, `{"name":"Ann","limits":{"aa":1,"bb":1,"cc":1}}`,
		`{"name":"Ann","lines":[]}`, `{"name":"Ann","lines":[{"sku":"abcd","count":1},{"sku":"abc","count":0},{}]}`, `{"name":"Ann","nested":{"sku":"abcd","count":100}}`, `{"name":"Ann","wait":"1ms"}`, `{"name":"Ann","wait":"2h"}`,
		`{"name":"Ann","secret":"hunter2"}`, `{"name":"Ann","labels":{"a1":"x","b":""}}`, `{"name":"Ann","optional":"ab"}`, `{"name":"Ann","optional":""}`, `{"nmae":"Ann","mail":"ann","tags":["a"],"wait":"1ms"}`,
	)},
	{name: "wrong_compared", at: few, shows: "Arguments that break rules about several fields.", steps: calls("compare",
		`{"from":1,"to":2,"card":"c"}`, `{"from":2,"to":1,"card":"c"}`, `{"from":2}`, `{"from":1,"to":2}`, `{"from":1,"to":2,"cash":"c"}`, `{"from":1,"to":2,"card":"c","cash":"c"}`, `{"from":1,"to":2,"card":"c","password":"a","again":"b","both":"x"}`,
		`{"from":1,"to":2,"card":"c","kind":"loan"}`, `{"from":1,"to":2,"card":"c","kind":"loan","until":"now"}`, `{"from":1,"to":2,"card":"c","password":"a","again":"a"}`, `{"from":"1","to":0}`,
	)},
	{name: "wrong_defaults", at: plain, shows: "Arguments that break rules of fields with defaults, and plain parameters.", steps: slices.Concat(
		calls("default", `{"number":0}`, `{"number":51}`, `{"level":"none"}`, `{"inner":[{"size":"x"}]}`, `{"tree":{}}`, `{"text":null,"number":null,"list":null}`),
		calls("add", `{"a":-1,"b":2}`, `{"a":1}`, `{}`, `{"a":1,"b":2,"c":"left"}`, `{"a":1,"b":2,"d":3}`, `{"a":"1","b":"2"}`), calls("fields", `{"numbers":{"a":"x"}}`, `{}`),
		calls("text", `{"a":1}`), calls("fail", `{"how":"other"}`),
	)},
	{name: "repaired", at: plain, options: "repair", shows: "With leniency, arguments that can mean only one thing are accepted.", steps: slices.Concat(
		calls("everything", `{"int":"7","bool":"true","matrix":"[[1,2]]","nested":"{\"a\":\"1\"}","string":7,"levels":"low"}`, `{"int":"x"}`, `{"int":" 7"}`), calls("check", `{"name":"Ann","size":"2","tags":"[\"aa\"]"}`, `{"name":"Ann","size":"4"}`),
		calls("add", `{"a":"1","b":"2"}`), []string{`tools/call {"name":"add","arguments":"{\"a\":1,\"b\":2}"}`},
	)},
}

var protocolErrors = []row{
	{name: "malformed", at: each, shows: "Messages that are not JSON, or not JSON-RPC.", steps: []string{
		`{`, `{"jsonrpc":"2.0","id":1,"method":"ping"}}`, `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, `{"jsonrpc":"2.0","id":1,"method":"ping",}`, `"\"text\"\n"`, `"7\n"`, `"null\n"`, `"nonsense\n"`, `"\n"`, `"   \n"`,
		`{"id":1,"method":"ping"}`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":2.0,"id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1,"method":7}`, `{"jsonrpc":"2.0","id":1,"method":""}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":7}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"error":{}}`, `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, `{}`, `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":1,"method":"ping","extra":true}`,
	}},
	{name: "ids", at: each, shows: "IDs of every kind, good and bad.", steps: ids(
		`"a"`, `""`, `"é\n"`, `0`, `-1`, `9007199254740993`, `9223372036854775807`, `9223372036854775808`, `1.0`, `1.5`, `1e2`, `null`, `true`, `[]`, `{}`, `"<300 times x>"`,
	)},
	{name: "duplicates", at: some, shows: "Members that occur twice, in another case, or nested too deep, and invalid UTF-8.", steps: []string{
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"text",$meta}}`, `{"jsonrpc":"2.0","id":2,"method":"ping","method":"tools/list","params":{$meta}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"text","name":"number",$meta}}`, `{"jsonrpc":"2.0","ID":4,"method":"tools/call","params":{"name":"text",$meta}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"Name":"text",$meta}}`, `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"everything","arguments":{"any":<200 times [><200 times ]>},$meta}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"everything","arguments":{"any":<2000 times [><2000 times ]>},$meta}}`,
		`"{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":\"ping\"}\n"`,
		`"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n"`, `"{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"ping\"}\r\n"`, `"{\"jsonrpc\":\"2.0\",\"id\":\"a\tb\",\"method\":\"ping\"}\n"`,
		`"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"\xff\"}\n"`, `"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}\n"`,
	}},
}

// tools are steps that call tools without arguments.
func tools(names ...string) []string {
	var steps []string
	for _, name := range names {
		steps = append(steps, call(name, "{}"))
	}
	return steps
}

// ids are steps with requests that have the IDs.
func ids(ids ...string) []string {
	var steps []string
	for _, id := range ids {
		steps = append(steps, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"nothing",$meta}}`)
	}
	return steps
}

var flows = []row{
	{name: "progress", at: each, shows: "Progress, for clients that ask for it.", steps: []string{
		`tools/call {"name":"count","arguments":{"upto":3},"_meta":{"progressToken":"p"}}`, `tools/call {"name":"count","arguments":{"upto":1},"_meta":{"progressToken":7}}`,
		call("count", `{"upto":1}`), `tools/call {"name":"count","arguments":{"upto":1},"_meta":{"progressToken":{}}}`,
		`tools/call {"name":"iterator","arguments":{},"_meta":{"progressToken":"i"}}`,
	}},
	{name: "logging", at: legacies, shows: "Log messages at the level that the session asked for.", steps: []string{
		call("count", `{"upto":1}`), `logging/setLevel {"level":"info"}`, call("count", `{"upto":1}`), `logging/setLevel {"level":"debug"}`, call("count", `{"upto":0}`),
		`logging/setLevel {"level":"loud"}`, "logging/setLevel", `logging/setLevel {"level":"emergency"}`, call("count", `{"upto":1}`),
	}},
	{name: "logging", at: "*/2026*", shows: "Log messages at the level that the request asks for.", steps: []string{
		call("count", `{"upto":1}`), `tools/call {"name":"count","arguments":{"upto":1},"_meta":{"io.modelcontextprotocol/logLevel":"info"}}`,
		`tools/call {"name":"count","arguments":{"upto":1},"_meta":{"io.modelcontextprotocol/logLevel":"debug","progressToken":1}}`,
		`tools/call {"name":"count","arguments":{"upto":1},"_meta":{"io.modelcontextprotocol/logLevel":"loud"}}`,
	}},
	{name: "cancel", at: "stdio/2025-06-18 stdio/2026* websocket/2026*", shows: "Cancelled calls have no response, and other cancellations have no effect.", steps: []string{
		call("sleep", `{"seconds":3}`), `!notifications/cancelled {"requestId":1,"reason":"enough"}`, "# wait 4s", call("hang", "{}"),
		`!notifications/cancelled {"requestId":"2"}`, `!notifications/cancelled {"requestId":99}`, "!notifications/cancelled", `!notifications/cancelled {"requestId":2}`, "# wait 4s",
		call("text", "{}"), `!notifications/cancelled {"requestId":3}`,
	}},
	{name: "cancel", at: "http/2025-03-26 http/2025-11-25", shows: "A cancelled call, and one whose client disconnects.", steps: []string{
		call("sleep", `{"seconds":3}`), `!notifications/cancelled {"requestId":1,"reason":"enough"}`, "# wait 4s",
		call("sleep", `{"seconds":3}`), "# disconnect 5", "# wait 4s", call("text", "{}"),
	}},
	{name: "cancel", at: "http/2026*", shows: "Over HTTP, a modern client disconnects to cancel.", steps: []string{
		call("sleep", `{"seconds":3}`), `!notifications/cancelled {"requestId":1,"reason":"enough"}`, "# wait 1s", "# disconnect 1", "# wait 4s", call("text", "{}"),
	}},
	{name: "timeout", at: few, shows: "Tools with a time limit, a method that ignores its end, and calls that overtake others.", steps: []string{
		call("sleep", `{"seconds":4}`), call("sleep", `{"seconds":10}`), call("text", "{}"), "# wait 4s", "# wait 2s", "# wait 5s",
	}},
	{name: "in_flight", at: "stdio/2025-06-18 http/2026* websocket/2026*", options: "small", shows: "More calls and bytes at once than the options allow.", steps: []string{
		call("sleep", `{"seconds":2}`), call("sleep", `{"seconds":2}`), call("text", "{}"), "ping", "# wait 3s", call("text", "{}"),
		`{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"<10001 times x>"}}`, call("text", "{}"),
	}},
	{name: "same_id", at: few, shows: "Two calls in flight with the same ID.", steps: []string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"sleep","arguments":{"seconds":1},$meta}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"text",$meta}}`, "# wait 2s",
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"text",$meta}}`,
	}},
}

// answer is a step that answers the n-th question of the server.
func answer(n int, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":<ask %d>,"result":%s}`, n, result)
}

const (
	asking  = "stdio/2025-06-18 stdio/2025-11-25 http/2025-06-18 http/2025-11-25 websocket/2025-11-25"
	accept  = `{"action":"accept","content":{"confirm":true}}`
	profile = `{"action":"accept","content":{"name":"Ann","age":7,"mail":"ann@example.com","color":"red","level":"low","many":["a","b"]}}`
	sampled = `{"role":"assistant","content":{"type":"text","text":"Hello."},"model":"m","stopReason":"endTurn"}`
)

var questions = []row{
	{name: "ask", at: asking, shows: "Questions as requests of the server.", steps: []string{
		call("sure", "{}"), answer(1, accept), call("form", "{}"), answer(2, profile), call("pick", "{}"), answer(3, `{"action":"accept","content":{"choice":"tea"}}`),
	}},
	{name: "ask_refused", at: "stdio/2025-11-25 http/2025-06-18", shows: "Questions that users decline or cancel, and answers that are wrong.", steps: []string{
		call("sure", "{}"), answer(1, `{"action":"decline"}`), call("sure", "{}"), answer(2, `{"action":"cancel"}`), call("form", "{}"), answer(3, `{"action":"decline"}`),
		call("form", "{}"), answer(4, `{"action":"accept","content":{"name":"A","age":200,"mail":"x","level":"odd","many":["d"],"other":1}}`),
		call("form", "{}"), answer(5, `{"action":"accept"}`), call("form", "{}"), answer(6, `{"action":"perhaps"}`), call("form", "{}"), answer(7, `7`),
		call("form", "{}"), `{"jsonrpc":"2.0","id":<ask 8>,"error":{"code":-32603,"message":"no window","data":{"a":1}}}`,
	}},
	{name: "ask_model", at: "stdio/202[45]* http/2025-03-26 http/2025-11-25 websocket/2025-03-26", shows: "Sampling and roots.", steps: []string{
		call("model", "{}"), answer(1, sampled), call("folders", "{}"), answer(2, `{"roots":[{"uri":"file:///a","name":"a"},{"uri":"file:///b"}]}`),
		call("model", "{}"), `{"jsonrpc":"2.0","id":<ask 3>,"error":{"code":-1,"message":"User rejected sampling request"}}`, call("model", "{}"), answer(4, `{"role":"x"}`),
		call("folders", "{}"), answer(5, `{"roots":[{"uri":"http://x"}]}`),
	}},
	{name: "ask_url", at: "stdio/2025-06-18 stdio/2025-11-25 http/2025-11-25", shows: "A URL to open, which clients know since 2025-11-25.", steps: []string{
		call("visit", "{}"), answer(1, `{"action":"accept"}`), call("visit", "{}"), answer(2, `{"action":"decline"}`),
	}},
	{name: "ask_more", at: asking, shows: "Questions one after the other and at once, in tools, prompts and resources.", steps: []string{
		call("book", "{}"), answer(1, `{"action":"accept","content":{"choice":"Rome"}}`), answer(2, accept),
		call("both", "{}"), answer(3, `{"action":"accept","content":{"choice":"L"}}`), answer(4, accept),
		`prompts/get {"name":"interview"}`, answer(5, `{"action":"accept","content":{"name":"Ann"}}`), `resources/read {"uri":"private://page"}`, answer(6, accept),
	}},
	{name: "ask_undeclared", at: "stdio/2025-03-26 stdio/2025-11-25 http/2025-11-25", caps: "{}", shows: "Questions to a client that declared nothing.", steps: tools("sure", "visit", "model", "folders", "both")},
	{name: "ask_late", at: "stdio/2025-11-25 http/2025-11-25", shows: "A question that nobody answers, answers to no question, and a call that is cancelled while it asks.", steps: []string{
		call("sure", "{}"), "# wait 70s", answer(1, accept), `{"jsonrpc":"2.0","id":77,"result":{}}`, call("sure", "{}"), `!notifications/cancelled {"requestId":2}`, answer(2, accept),
	}},
	{name: "ask_undeliverable", at: "http/2025-11-25", options: "stateless", shows: "Questions of a server without sessions.", steps: tools("sure", "text")},
}

// again is a step that calls a tool again with the state and the answer to the question, each by number.
func again(tool string, state int, answers ...string) string {
	return fmt.Sprintf(`tools/call {"name":%q,"arguments":{},"requestState":"<state %d>","inputResponses":{%s}}`, tool, state, strings.Join(answers, ","))
}

// to is an answer to the n-th question.
func to(n int, answer string) string { return fmt.Sprintf(`"<key %d>":%s`, n, answer) }

var rounds = []row{
	{name: "ask", at: "*/2026*", shows: "Questions in rounds: the client sends the call again with the answer.", steps: []string{
		call("sure", "{}"), again("sure", 1, to(1, accept)), call("form", "{}"), again("form", 2, to(2, profile)),
		call("pick", "{}"), again("pick", 3, to(3, `{"action":"accept","content":{"choice":"tea"}}`)), call("visit", "{}"), again("visit", 4, to(4, `{"action":"accept"}`)),
		call("model", "{}"), again("model", 5, to(5, sampled)), call("folders", "{}"), again("folders", 6, to(6, `{"roots":[{"uri":"file:///a"}]}`)),
	}},
	{name: "ask_refused", at: "stdio/2026* http/2026*", shows: "Questions that users decline or cancel, and answers that are wrong.", steps: []string{
		call("sure", "{}"), again("sure", 1, to(1, `{"action":"decline"}`)), again("sure", 1, to(1, `{"action":"cancel"}`)), again("sure", 1, to(1, `{"action":"perhaps"}`)),
		again("sure", 1, to(1, `7`)), again("sure", 1, `"other":{"action":"accept"}`), again("sure", 1),
		call("form", "{}"), again("form", 3, to(2, `{"action":"accept","content":{"name":"A","age":200,"mail":"x","level":"odd","many":["d"],"other":1}}`)),
		again("form", 3, to(2, `{"action":"accept"}`)), again("form", 3, to(2, `{"action":"decline"}`)),
	}},
	{name: "ask_more", at: "*/2026*", shows: "Questions one after the other and at once, in tools, prompts and resources.", steps: []string{
		call("book", "{}"), again("book", 1, to(1, `{"action":"accept","content":{"choice":"Rome"}}`)), again("book", 2, to(2, accept)),
		call("both", "{}"), again("both", 3, to(4, accept)), again("both", 4, to(3, `{"action":"accept","content":{"choice":"L"}}`)),
		`prompts/get {"name":"interview"}`, `prompts/get {"name":"interview","requestState":"<state 5>","inputResponses":{"<key 5>":{"action":"accept","content":{"name":"Ann"}}}}`,
		`resources/read {"uri":"private://page"}`, `resources/read {"uri":"private://page","requestState":"<state 6>","inputResponses":{"<key 6>":{"action":"accept","content":{"confirm":true}}}}`,
	}},
	{name: "ask_states", at: "stdio/2026* http/2026*", shows: "States that are wrong, foreign, used twice or too old.", steps: []string{
		call("sure", "{}"), again("pick", 1, to(1, accept)), `tools/call {"name":"sure","arguments":{"a":1},"requestState":"<state 1>","inputResponses":{"<key 1>":{"action":"accept"}}}`,
		`tools/call {"name":"sure","arguments":{},"requestState":"nonsense","inputResponses":{"<key 1>":{"action":"accept"}}}`,
		`tools/call {"name":"sure","arguments":{},"requestState":7,"inputResponses":{}}`, `tools/call {"name":"sure","arguments":{},"requestState":"<state 1>","inputResponses":[]}`,
		`tools/call {"name":"sure","arguments":{},"inputResponses":{"<key 1>":{"action":"accept","content":{"confirm":true}}}}`,
		`tools/call {"name":"sure","arguments":{},"requestState":"<state 1>x","inputResponses":{}}`, again("sure", 1, to(1, accept)), again("sure", 1, to(1, accept)),
		"# wait 61m", again("sure", 1, to(1, accept)), `tools/list {"requestState":"<state 1>"}`,
	}},
	{name: "ask_states_of_others", at: "http/2026*", shows: "A state of another principal.", steps: []string{
		"X-User: ann\nX-Scopes: a\n" + call("sure", "{}"), "X-User: bob\nX-Scopes: a\n" + again("sure", 1, to(1, accept)), again("sure", 1, to(1, accept)),
		"X-User: ann\nX-Scopes: b\n" + again("sure", 1, to(1, accept)),
	}},
	{name: "ask_undeclared", at: "stdio/2026* http/2026*", caps: "{}", shows: "Questions to a client that declared nothing.", steps: tools("sure", "visit", "model", "folders", "both")},
	{name: "ask_some_undeclared", at: "stdio/2026*", caps: `{"elicitation":{},"roots":{}}`, shows: "Questions to a client that declared some.", steps: tools("sure", "visit", "model", "folders")},
}

// changes are steps that change each list.
var changes = calls("change", `{"what":"tool"}`, `{"what":"prompt"}`, `{"what":"resource"}`, `{"what":"template"}`, `{"what":"update"}`,
	`{"what":"untool"}`, `{"what":"unprompt"}`, `{"what":"unresource"}`, `{"what":"unresource"}`)

var subscriptions = []row{
	{name: "changes", at: "stdio/202[45]* websocket/2025-06-18", shows: "Notifications of changed lists, and of a resource that the client subscribed to.", steps: slices.Concat(
		[]string{`resources/subscribe {"uri":"library://rules"}`}, changes, []string{"# wait 1s", `tools/call {"name":"aaa"}`, `resources/unsubscribe {"uri":"library://rules"}`, call("change", `{"what":"update"}`),
			`resources/unsubscribe {"uri":"library://rules"}`, `resources/subscribe {"uri":"library://none"}`, `resources/subscribe {"uri":"library://vault"}`, `resources/subscribe {"uri":"book://978"}`,
			"resources/subscribe", `resources/subscribe {"uri":7}`})},
	{name: "changes", at: "http/2025-03-26 http/2025-11-25", shows: "Notifications on the stream that the client opened with GET.", steps: slices.Concat(
		[]string{getStream, `resources/subscribe {"uri":"library://rules"}`}, changes, []string{"# wait 1s", "# wait 25s", getStream, "# disconnect 3", call("change", `{"what":"update"}`), getStream})},
	{name: "listen", at: "*/2026*", shows: "A subscription, and what it is notified of.", steps: slices.Concat(
		[]string{`subscriptions/listen {"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["library://rules","library://vault"]}}`},
		changes, []string{"# wait 1s"})},
	{name: "listen_some", at: "stdio/2026* http/2026*", shows: "Subscriptions to some changes, and wrong ones.", steps: slices.Concat(
		[]string{`subscriptions/listen {"notifications":{"toolsListChanged":true}}`, `subscriptions/listen {"notifications":{}}`, "subscriptions/listen", `subscriptions/listen {"notifications":[]}`,
			`subscriptions/listen {"notifications":{"unknown":true}}`, `subscriptions/listen {"notifications":{"toolsListChanged":"yes"}}`, `subscriptions/listen {"notifications":{"resourceSubscriptions":["library://none",7]}}`},
		changes[:2], []string{"# wait 30s"})},
	{name: "listen_end", at: "stdio/2026* websocket/2026*", shows: "A subscription ends when the client cancels it.", steps: []string{
		`subscriptions/listen {"notifications":{"toolsListChanged":true}}`, `!notifications/cancelled {"requestId":1}`, changes[0], `subscriptions/listen {"notifications":{"toolsListChanged":true}}`, "# disconnect",
	}},
	{name: "listen_end", at: "http/2026*", options: "small", shows: "A subscription ends when the client disconnects; the options allow one at a time.", steps: []string{
		`subscriptions/listen {"notifications":{"toolsListChanged":true}}`, `subscriptions/listen {"notifications":{"toolsListChanged":true}}`, "# disconnect 1", "# wait 1s", changes[0],
		`subscriptions/listen {"notifications":{"toolsListChanged":true}}`, "# wait 26s",
	}},
}

var batches = []row{
	{name: "batches", at: "stdio/2025-03-26 http/2025-03-26 websocket/2025-03-26", shows: "Batches, which only 2025-03-26 has.", steps: []string{
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`[{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"sleep","arguments":{"seconds":1}}},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/unknown"}]`,
		"# wait 2s", `[{"jsonrpc":"2.0","method":"notifications/unknown"}]`, `[]`, `[7]`, `[{"id":4}]`, `[7,{"id":4},null]`, `[[{"jsonrpc":"2.0","id":5,"method":"ping"}]]`,
		`[{"jsonrpc":"2.0","id":6,"method":"ping"}`, `[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"count","arguments":{"upto":1},"_meta":{"progressToken":1}}}]`,
		`[{"jsonrpc":"2.0","id":8,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}]`,
		`[{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"model"}}]`, `[{"jsonrpc":"2.0","id":<ask 1>,"result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}}]`,
		`[{"jsonrpc":"2.0","id":99,"result":{}}]`, `[{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"sleep","arguments":{"seconds":1}}},{"jsonrpc":"2.0","id":10,"method":"ping"}]`,
		"# wait 2s", `[{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"sleep","arguments":{"seconds":1}}}]`, `!notifications/cancelled {"requestId":11}`, "# wait 2s",
	}},
	{name: "batches", at: "stdio/2024* stdio/2025-06-18 stdio/2026* http/2025-06-18 http/2026*", shows: "Batches in versions that have none.", steps: []string{
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `[]`,
	}},
}

const (
	getStream   = "GET /mcp\nAccept: text/event-stream\n$session\n"
	eventStream = "Accept: application/json, text/event-stream\nContent-Type: application/json\n"
)

// resume is a step that resumes a stream after an event.
func resume(event string) string {
	return "GET /mcp\nAccept: text/event-stream\nLast-Event-ID: " + event + "\n$session\n"
}

var sessions = []row{
	{name: "session", at: "http/2025*", shows: "A session ends with DELETE; unknown, missing and wrong ones.", steps: []string{
		"ping", "POST /mcp\n" + eventStream + "\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "POST /mcp\n" + eventStream + "Mcp-Session-Id: unknown\n\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		"POST /mcp\n" + eventStream + "Mcp-Session-Id: <session 1>\nMcp-Protocol-Version: 1999-01-01\n\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		"POST /mcp\n" + eventStream + "Mcp-Session-Id: <session 1>\nMcp-Protocol-Version: 2024-11-05\n\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		"POST /mcp\n" + eventStream + "Mcp-Session-Id: <session 1>\n\n$init", "GET /mcp\nAccept: text/event-stream\n", "GET /mcp\nAccept: application/json\n$session\n", "GET /mcp\n$session\n",
		"DELETE /mcp\n", "DELETE /mcp\nMcp-Session-Id: unknown\n", "DELETE /mcp\n$session\n", "ping", getStream, "DELETE /mcp\n$session\n", `{"jsonrpc":"2.0","id":7,"result":{}}`,
	}},
	{name: "session_of_others", at: "http/2025-06-18 http/2025-11-25", bare: true, shows: "A session belongs to the principal that began it.", steps: []string{
		"X-User: ann\nX-Scopes: a\n$init", "X-User: ann\nX-Scopes: a\nping", "X-User: bob\nX-Scopes: a\nping", "ping",
		"DELETE /mcp\nX-User: bob\nX-Scopes: a\n$session\n", "X-User: ann\nX-Scopes: b\nping",
	}},
	{name: "session_idle", at: "http/2025-11-25", options: "small", shows: "A session that is not used ends, and a new one takes the place of an idle one.", steps: []string{
		"ping", "# wait 29m", "ping", "# wait 31m", "ping", "$init", "$init", "POST /mcp\n" + eventStream + "Mcp-Session-Id: <session 2>\n\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	}},
	{name: "session_delete_in_flight", at: "http/2025-11-25", shows: "A session ends while a call and a stream are open.", steps: []string{
		getStream, call("sleep", `{"seconds":3}`), call("sure", "{}"), "DELETE /mcp\n$session\n", "# wait 4s",
	}},
	{name: "resume", at: "http/2025-03-26 http/2025-06-18 http/2025-11-25", shows: "A stream breaks, and the client resumes it.", steps: []string{
		`tools/call {"name":"hang","arguments":{},"_meta":{"progressToken":"p"}}`, "# wait 1s", "# wait 1s", "# disconnect 3", resume("<event 1>"), "# wait 2s", resume("<event 2>"),
		resume("<event 4>"), resume("nonsense"), resume("99-1"), getStream, call("change", `{"what":"tool"}`),
	}},
	{name: "resume_session", at: "http/2025-06-18 http/2025-11-25", shows: "The stream of the session breaks, and the client resumes it.", steps: []string{
		getStream, call("change", `{"what":"tool"}`), call("change", `{"what":"prompt"}`), "# disconnect 3", call("change", `{"what":"untool"}`), "# wait 1s", resume("<event 2>"), call("change", `{"what":"unprompt"}`),
	}},
	{name: "leave", at: "http/2025-06-18 http/2025-11-25 http/2026* stdio/2025-11-25", shows: "A method closes its stream and goes on.", steps: []string{call("leave", "{}"), "# wait 2s"}},
	{name: "leave_and_resume", at: "http/2025-11-25", shows: "A method closes its stream, and the client resumes it.", steps: []string{call("leave", "{}"), resume("<event 1>"), "# wait 2s"}},
	{name: "stateless", at: "http/2025-03-26 http/2025-11-25", options: "stateless", shows: "Without sessions.", steps: []string{
		"$init", `tools/call {"name":"count","arguments":{"upto":1},"_meta":{"progressToken":1}}`, getStream, "DELETE /mcp\n", `logging/setLevel {"level":"info"}`, "Mcp-Session-Id: x\nping", `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`resources/subscribe {"uri":"library://rules"}`,
	}},
	{name: "json_only", at: "http/2025-11-25 http/2026*", options: "json-only", shows: "Without streams.", steps: []string{
		`tools/call {"name":"count","arguments":{"upto":1},"_meta":{"progressToken":1}}`, getStream, call("sure", "{}"), `subscriptions/listen {"notifications":{"toolsListChanged":true}}`,
	}},
}

// post is a step with a modern call of a tool and header fields of its own.
func post(fields, message string) string {
	return "POST /mcp\n" + eventStream + fields + "\n" + message
}

const (
	modernText  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"text","arguments":{},$meta}}`
	modernWhere = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"where","arguments":{"region":"eu-é","count":3},$meta}}`
	good        = "Mcp-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\n"
)

var headerChecks = []row{
	{name: "headers", at: "http/2026*", shows: "Header fields that repeat the body, missing and different.", steps: []string{
		post(good+"Mcp-Name: text\n", modernText), post("", modernText), post("Mcp-Method: tools/call\nMcp-Name: text\n", modernText), post("Mcp-Protocol-Version: 2025-11-25\nMcp-Method: tools/call\nMcp-Name: text\n", modernText),
		post("Mcp-Protocol-Version: 2099-01-01\nMcp-Method: tools/call\nMcp-Name: text\n", modernText), post("Mcp-Protocol-Version: 2026-07-28\nMcp-Name: text\n", modernText), post(good, modernText),
		post(good+"Mcp-Name: number\n", modernText), post("Mcp-Protocol-Version: 2026-07-28\nMcp-Method: tools/list\nMcp-Name: text\n", modernText), post(good+"Mcp-Name: =?base64?dGV4dA==?=\n", modernText),
		post(good+"Mcp-Name: =?base64?!?=\n", modernText), post(good+"Mcp-Name: text\nMcp-Name: text\n", modernText), post(good+"Mcp-Name:   text  \n", modernText), post(good+"Mcp-Name: TEXT\n", modernText),
		post(good+"Mcp-Name: text\nMcp-Session-Id: x\n", modernText), "GET /mcp\nAccept: text/event-stream\nMcp-Protocol-Version: 2026-07-28\n", "DELETE /mcp\nMcp-Protocol-Version: 2026-07-28\n",
	}},
	{name: "headers_of_arguments", at: "http/2026*", shows: "Header fields that repeat arguments.", steps: []string{
		post(good+"Mcp-Name: where\nMcp-Param-Region: =?base64?ZXUtw6k=?=\nMcp-Param-Count: 3\n", modernWhere), post(good+"Mcp-Name: where\n", modernWhere),
		post(good+"Mcp-Name: where\nMcp-Param-Region: us\nMcp-Param-Count: 3\n", modernWhere), post(good+"Mcp-Name: where\nMcp-Param-Region: =?base64?ZXUtw6k=?=\nMcp-Param-Count: 03\n", modernWhere),
		post(good+"Mcp-Name: where\nMcp-Param-Region: x\n", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"where","arguments":{},$meta}}`),
		post(good+"Mcp-Name: where\nMcp-Param-Other: x\n", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"where","arguments":{},$meta}}`),
	}},
	{name: "http", at: "http/2025-06-18 http/2026*", shows: "Requests that are wrong as HTTP.", steps: []string{
		"PUT /mcp\n$session\n\n{}", "OPTIONS /mcp\nOrigin: https://example.com\nAccess-Control-Request-Method: POST\n", "HEAD /mcp\n$session\n", "POST /mcp\nContent-Type: text/plain\nAccept: application/json, text/event-stream\n$session\n\n{}",
		"POST /mcp\nAccept: application/json, text/event-stream\n$session\n\n{}", "POST /mcp\nContent-Type: application/json; charset=utf-8\nAccept: */*\n$session\n\n{}", "POST /mcp\nContent-Type: application/json\n$session\n\n{}",
		"POST /mcp\nContent-Type: application/json\nAccept: application/json\n$session\n\n{}", "POST /mcp\nContent-Type: application/json\nAccept: text/html\n$session\n\n{}",
		"POST /mcp\nContent-Encoding: gzip\n" + eventStream + "$session\n\n{}", "POST /mcp\n" + eventStream + "$session\nOrigin: https://example.com\n\n{}", "POST /mcp\n" + eventStream + "$session\nOrigin: http://localhost:3000\n\n{}",
		"POST /mcp\n" + eventStream + "$session\nOrigin: null\n\n{}", "POST /mcp\nHost: example.com\n" + eventStream + "$session\n\n{}", "POST /mcp\nHost: localhost\n" + eventStream + "$session\n\n{}", "POST /mcp\n" + eventStream + "$session\n",
		"POST /mcp/other?x=1\n" + eventStream + "$session\n\n{}",
	}},
	{name: "families", at: "http/2025-06-18", shows: "Legacy and modern requests at one URL.", steps: []string{
		"ping", post(good+"Mcp-Name: injected\n", modernInjected), modernInjected, "ping",
	}},
	{name: "families", at: "stdio/2025-06-18 websocket/2025-06-18", shows: "Legacy and modern requests on one connection.", steps: []string{"ping", modernInjected, "ping"}},
}

const modernInjected = `{"jsonrpc":"2.0","id":"m","method":"tools/call","params":{"name":"injected",` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

// framed is a step with messages that have headers.
func framed(messages ...string) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(m), m)
	}
	return strconv.Quote(b.String())
}

const pinged = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

var lineEnds = []row{
	{name: "content_length", at: "stdio/2025-06-18", options: "any-framing", bare: true, shows: "Messages with the header Content-Length.", steps: []string{
		framed(initialize("2025-06-18", "{}")), framed(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), framed(pinged), framed("{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 2, \"method\": \"ping\"\n}"),
		framed("nonsense"), strconv.Quote("content-type: x\r\ncontent-length:40\n\n" + pinged), strconv.Quote("\r\nContent-Length: 40\r\n\r\n" + pinged), framed(""), framed(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"text"}}`), strconv.Quote("Content-Length: 5\r\n\r\n{"), "# disconnect",
	}},
	{name: "content_length_wrong", at: "stdio/2025-06-18", options: "any-framing", bare: true, shows: "A header that is wrong.", steps: []string{framed(pinged), strconv.Quote("Content-Length: x\r\n\r\n" + pinged)}},
	{name: "content_length_lines", at: "stdio/2026*", options: "any-framing", shows: "Lines, where headers are allowed, too.", steps: []string{call("text", "{}"), framed(pinged)}},
	{name: "content_length_refused", at: "stdio/2025-06-18", shows: "Headers where only lines are allowed.", steps: []string{framed(pinged), "ping"}},
	{name: "lines", at: "stdio/2025-06-18", shows: "Several messages in one write, one in several, and blank lines.", steps: []string{
		strconv.Quote(pinged + "\n\n\r\n" + `{"jsonrpc":"2.0","method":"notifications/unknown"}` + "\r\n"), strconv.Quote(pinged[:10]), strconv.Quote(pinged[10:] + "\n"), strconv.Quote("{\n}\n"), strconv.Quote(pinged), "# disconnect",
	}},
	{name: "end", at: "stdio/2025-06-18 stdio/2026* websocket/2025-11-25", shows: "The client disconnects while a call is in flight.", steps: []string{call("sleep", `{"seconds":2}`), "# disconnect", "# wait 3s"}},
}

// toSSE is a step that sends a message to the endpoint of an SSE stream.
func toSSE(message string) string {
	return "POST <endpoint 1>\nContent-Type: application/json\n\n" + message
}

var others = []row{
	{name: "raw", at: each, shows: "A tool whose schema is written by hand.", steps: calls("raw",
		`{"name":"Ann"}`, `{"name":"A"}`, `{"name":"Ann","count":1.5,"kind":"a"}`, `{"name":"Ann","kind":"c"}`, `{"name":"Ann","list":[{"x":1},{}],"other":1}`, `{"name":"Ann","list":[7]}`, `{}`, `{"name":"Ann","count":1}`, `{"name":7}`, `{"name":null}`,
	)},
	{name: "own_method", at: each, shows: "A method of the program.", steps: []string{
		`example.com/echo {"sku":"abcd","count":1}`, `example.com/echo {"sku":"abc","count":0,"other":1}`, "example.com/echo", "example.com/none",
	}},
	{name: "mounted", at: "stdio/2025-06-18 http/2025-11-25", options: "mounted", shows: "A server that is mounted in another, and changes.", steps: []string{
		`resources/subscribe {"uri":"child://page"}`, "resources/templates/list", "prompts/list", `prompts/get {"name":"child_greet","arguments":{"name":"Ann"}}`, `resources/read {"uri":"child://page"}`,
		`resources/read {"uri":"child://pages/7"}`, `resources/read {"uri":"child://pages/x"}`, call("child_locked", "{}"), call("child_none", "{}"), call("pay", "{}"), call("child_pay", "{}"), answer(1, accept),
		call("change", `{"what":"child"}`), call("child_aaa", "{}"), call("change", `{"what":"unchild"}`), call("child_aaa", "{}"),
	}},
	{name: "mounted", at: "stdio/2026* http/2026*", options: "mounted", shows: "A server that is mounted in another, and changes.", steps: []string{
		`subscriptions/listen {"notifications":{"toolsListChanged":true,"resourceSubscriptions":["child://page"]}}`, `prompts/get {"name":"child_greet","arguments":{"name":"Ann"}}`, `resources/read {"uri":"child://page"}`,
		call("child_locked", "{}"), call("child_pay", "{}"), again("child_pay", 1, to(1, accept)), call("change", `{"what":"child"}`), call("child_aaa", "{}"), call("change", `{"what":"unchild"}`), call("child_aaa", "{}"),
	}},
	{name: "sse", at: "sse/2024*", bare: true, shows: "HTTP+SSE: the stream names the endpoint for messages.", steps: []string{
		"GET /sse\nAccept: text/event-stream\n", toSSE(initialize(versions[0], everything)), toSSE(`{"jsonrpc":"2.0","method":"notifications/initialized"}`),
		toSSE(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"upto":1},"_meta":{"progressToken":1}}}`), toSSE(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"folders"}}`),
		toSSE(`{"jsonrpc":"2.0","id":<ask 1>,"result":{"roots":[{"uri":"file:///a"}]}}`), toSSE(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"sleep","arguments":{"seconds":1}}}`),
		toSSE(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`), toSSE("nonsense"), toSSE("[]"), toSSE(`{"jsonrpc":"2.0","id":4,"method":"unknown"}`), "# wait 30s", "# disconnect 1", toSSE(pinged),
	}},
	{name: "sse_wrong", at: "sse/2024*", bare: true, shows: "HTTP+SSE: requests that are wrong.", steps: []string{
		"GET /sse\nAccept: application/json\n", "POST /sse\nContent-Type: application/json\n\n" + pinged, "POST /sse?sessionId=unknown\nContent-Type: application/json\n\n" + pinged, "PUT /sse\n", "GET /sse\nAccept: text/event-stream\nOrigin: https://example.com\n",
		"GET /sse\nAccept: text/event-stream\n", "POST <endpoint 1>\nContent-Type: text/plain\n\n" + pinged, "POST <endpoint 1>\nX-User: ann\nX-Scopes: a\nContent-Type: application/json\n\n" + pinged, toSSE(""), toSSE(pinged),
	}},
}
