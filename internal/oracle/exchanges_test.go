package oracle

import "slices"

// Patterns of transport/version.
const (
	legacy   = "stdio/202[45]* websocket/202[45]* http/2025*"
	most     = "stdio/* http/2025-03-26 http/2025-11-25 http/2026* websocket/2025-11-25"
	some     = "stdio/2024* stdio/2025-06-18 http/2025-11-25 http/2026*"
	few      = "stdio/2025-06-18 http/2026*"
	lined    = "stdio/* websocket/2025-06-18 websocket/2026*"
	httpOnly = "http/2025* http/2026*"
)

// rows are the exchanges.
var rows = slices.Concat(lifecycle, lists, results, arguments, protocolErrors)

var lifecycle = []row{
	{name: "hello", at: legacy + " http/2024*", shows: "The handshake, a ping, and a second handshake.", bare: true, steps: []string{
		"$init", "!notifications/initialized", "ping", "$init",
	}},
	{name: "hello_wrong", at: legacy, shows: "Handshakes with an unknown version, a modern one, and wrong params.", bare: true, steps: []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":7,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"capabilities":[],"clientInfo":"c"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"initialize"}`,
	}},
	{name: "too_early", at: legacy, shows: "Requests before the handshake.", bare: true, steps: []string{
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
	{name: "newer_methods", at: legacy, shows: "Methods that only newer versions have, and one that no version has.", steps: []string{
		"server/discover", `subscriptions/listen {"notifications":{}}`, "tools/unknown", "notifications/unknown", "!notifications/unknown", "!unknown",
	}},
}

var lists = []row{
	{name: "lists", shows: "Lists in pages of four.", steps: []string{
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
	{name: "errors_exposed", at: "stdio/2025-06-18 stdio/2026*", options: "exposed", shows: "With ExposeErrors, callers see all errors.", steps: slices.Concat(
		calls("fail", `{"how":"wrapped"}`, `{"how":"secret"}`, `{"how":"panic"}`, `{"how":"missing"}`), []string{`resources/read {"uri":"library://fault"}`})},
	{name: "unknown_tool", at: most, shows: "Calls of tools that do not exist, and without a proper name.", steps: []string{
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
	`"intMap":{"1":true,"-2":false},"level":"odd","loud":"high","levels":["low"],"page":{"items":[{"tenant":"t"}],"next":null},"tree":{"name":"r","kids":[{"name":"k"}]},` +
	`"trees":{"x":{"name":"y"}},"nested":{"a":1,"b":{"c":"d"}},"old":"o","pattern":"a,b","step":5,"tenant":"me","name":"n","Untagged":"u"}`

var arguments = []row{
	{name: "kinds", at: some, shows: "Arguments of every kind, which come back.", steps: slices.Concat(
		calls("everything", kinds, `{}`, `{"any":null,"pointer":null,"tree":null,"int":null,"list":null}`, `{"nested":{"a":1,"b":{}}}`), calls("default", `{}`, `{"inner":[{},{"size":5}]}`,
			`{"text":"","number":1,"list":[],"map":{},"tree":{"name":"other"}}`),
		calls("add", `{"a":1,"b":2}`, `{"a":1,"b":2.5,"c":"up"}`, `{"a":9007199254740993,"b":0}`), calls("fields", `{"numbers":{"a":1}}`), []string{`tools/call {"name":"text"}`, call("text", "null")})},
	{name: "wrong_kinds", at: few, shows: "Arguments of the wrong kind.", steps: calls("everything",
		`{"bool":"true"}`, `{"int":"7"}`, `{"int":1.5}`, `{"int":1.0}`, `{"int":1e2}`, `{"int":9223372036854775808}`, `{"int8":128}`, `{"int8":-129}`, `{"int64":9223372036854775808}`,
		`{"int64":-9223372036854775809}`, `{"uint":-1}`, `{"uint16":65536}`, `{"uint64":18446744073709551616}`, `{"float":"1"}`, `{"float":1e400}`, `{"float32":1e39}`, `{"string":7}`,
		`{"pointer":7}`, `{"bytes":"a"}`, `{"bytes":[1,2]}`, `{"four":"AQID"}`, `{"four":[1,2,3,4]}`, `{"four":[1,2,3]}`, `{"time":"yesterday"}`, `{"time":7}`, `{"duration":"5 s"}`, `{"duration":5000000000}`,
		`{"url":"::"}`, `{"addr":"1.2.3"}`, `{"hex":"xyz"}`, `{"hex":255}`, `{"point":"1,2"}`, `{"point":[1]}`, `{"big":"7"}`, `{"big":1.5}`, `{"number":"1"}`, `{"number":true}`,
		`{"pair":[1]}`, `{"pair":[1,2,3]}`, `{"matrix":[[1],2]}`, `{"pointers":[1,null]}`, `{"pointers":1}`, `{"map":{"a":1}}`, `{"map":[]}`, `{"intMap":{"x":true}}`, `{"intMap":{"1":1}}`,
		`{"loud":"shrill"}`, `{"level":7}`, `{"levels":"low"}`, `{"page":{"items":[{"tenant":1}]}}`, `{"page":{}}`, `{"tree":{"kids":[{"name":""}]}}`, `{"tree":{"name":"r","kids":[{"name":"1"},{"name":"2"},{"name":"3"}]}}`,
		`{"trees":{"x":{}}}`, `{"nested":{}}`, `{"nested":{"a":"1","b":{"c":1}}}`, `{"nested":[]}`, `{"pattern":"ab"}`, `{"step":7}`, `{"step":15}`, `{"strnig":"tea"}`, `{"Hidden":"h"}`, `{"untagged":"u"}`,
		`{"int":1,"int":2}`, `{"nested":{"a":1,"a":2}}`, `{"bool":1,"int":"x","string":[],"unknown":1}`, `[]`, `"{}"`, `7`,
	)},
	{name: "wrong_rules", at: few, shows: "Arguments that break rules.", steps: calls("check",
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
	{name: "wrong_defaults", at: "stdio/2025-06-18 stdio/2026*", shows: "Arguments that break rules of fields with defaults, and plain parameters.", steps: slices.Concat(
		calls("default", `{"number":0}`, `{"number":51}`, `{"level":"none"}`, `{"inner":[{"size":"x"}]}`, `{"tree":{}}`, `{"text":null,"number":null,"list":null}`),
		calls("add", `{"a":-1,"b":2}`, `{"a":1}`, `{}`, `{"a":1,"b":2,"c":"left"}`, `{"a":1,"b":2,"d":3}`, `{"a":"1","b":"2"}`), calls("fields", `{"numbers":{"a":"x"}}`, `{}`),
		calls("text", `{"a":1}`), calls("fail", `{"how":"other"}`),
	)},
	{name: "repaired", at: "stdio/2025-06-18 stdio/2026*", options: "repair", shows: "With Repair, arguments that can mean only one thing are accepted.", steps: slices.Concat(
		calls("everything", `{"int":"7","bool":"true","matrix":"[[1,2]]","nested":"{\"a\":\"1\"}","string":7,"levels":"low"}`, `{"int":"x"}`, `{"int":" 7"}`), calls("check", `{"name":"Ann","size":"2","tags":"[\"aa\"]"}`, `{"name":"Ann","size":"4"}`),
		calls("add", `{"a":"1","b":"2"}`), []string{`tools/call {"name":"add","arguments":"{\"a\":1,\"b\":2}"}`},
	)},
}

var protocolErrors = []row{
	{name: "malformed", at: most, shows: "Messages that are not JSON, or not JSON-RPC.", steps: []string{
		`{`, `{"jsonrpc":"2.0","id":1,"method":"ping"}}`, `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, `{"jsonrpc":"2.0","id":1,"method":"ping",}`, `"\"text\"\n"`, `"7\n"`, `"null\n"`, `"nonsense\n"`, `"\n"`, `"   \n"`,
		`{"id":1,"method":"ping"}`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":2.0,"id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1,"method":7}`, `{"jsonrpc":"2.0","id":1,"method":""}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":7}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"error":{}}`, `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, `{}`, `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":1,"method":"ping","extra":true}`,
	}},
	{name: "ids", at: most, shows: "IDs of every kind, good and bad.", steps: ids(
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
